"""The backend for NVIDIA GPUs: claims the device type ``cuda``; its kernels are not in this version yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from candelabra.backends import Registrar

__version__ = "0.1.0"

hookimpl = pluggy.HookimplMarker("candelabra")


@hookimpl
def candelabra_register_backend(registrar: Registrar) -> None:
    """Say that there are no kernels yet: the device stays unavailable, with this reason."""
    raise RuntimeError(f"candelabra-backend-cuda {__version__} holds no kernels yet; use device='cpu'")
