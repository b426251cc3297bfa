"""Device type ``opencl``: a plugin with one hook, which names the shared library beside this
file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pluggy
from candelabra_opencl_probe import intel_runtime
from candelabra_opencl_probe.asking import prepare

from candelabra.backends import set_option

if TYPE_CHECKING:
    from candelabra.backends import Registrar

hookimpl = pluggy.HookimplMarker("candelabra")


@hookimpl
def candelabra_register_backend(registrar: Registrar) -> None:
    """Register the library, and let the CPU compute what it has no kernel for."""
    folder = intel_runtime()
    if folder is not None:
        set_option("opencl", "library", prepare(folder))
    registrar.library(Path(__file__).parent / "libcandelabra_opencl.so")
    registrar.cpu_fallback()
