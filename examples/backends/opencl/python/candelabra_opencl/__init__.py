"""Device type ``opencl``: a plugin with one hook, which names the shared library beside this file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pluggy

from .loader import choose_loader

if TYPE_CHECKING:
    from candelabra.backends import Registrar

hookimpl = pluggy.HookimplMarker("candelabra")


@hookimpl
def candelabra_register_backend(registrar: Registrar) -> None:
    """Register the library, and let the CPU compute what it has no kernel for."""
    choose_loader()
    registrar.library(Path(__file__).parent / "libcandelabra_opencl.so")
    registrar.cpu_fallback()
