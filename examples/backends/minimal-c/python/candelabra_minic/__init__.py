"""Device type ``minic``: a plugin with one hook, which names the shared library beside this
file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from candelabra.backends import Registrar

hookimpl = pluggy.HookimplMarker("candelabra")


@hookimpl
def candelabra_register_backend(registrar: Registrar) -> None:
    """Register the library with the memory functions and the kernels."""
    registrar.library(Path(__file__).parent / "libminic.so")
