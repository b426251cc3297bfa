"""What a backend plugin implements."""

from __future__ import annotations

import pluggy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .registrar import Registrar

hookspec = pluggy.HookspecMarker("candelabra")
hookimpl = pluggy.HookimplMarker("candelabra")


@hookspec
def candelabra_register_backend(registrar: Registrar) -> None:
    """Register the kernels of one device type.

    Called once, the first time that the device type of the plugin's entry point is used. The plugin
    is what the entry point in the group ``candelabra.backends`` names: a module or any object with
    this function, decorated by ``candelabra.backends.hookimpl``. The name of the entry point is the
    device type.

    Parameters
    ----------
    registrar
        ``registrar.library(path)`` takes a shared library, ``registrar.kernel(name, function)`` a
        Python kernel; ``registrar.device_type`` is the device type that is being loaded.
    """
