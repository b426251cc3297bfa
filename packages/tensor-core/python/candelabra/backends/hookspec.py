"""The interface of backend plugins."""

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

    Called once, when the device type is first used. The entry point in the group
    ``candelabra.backends`` has the device type as its name, and refers to the plugin: a module or
    another object with this function, decorated by ``candelabra.backends.hookimpl``.

    Parameters
    ----------
    registrar
        ``registrar.library(path)`` takes a shared library, ``registrar.kernel(name, function)`` a
        Python kernel; ``registrar.device_type`` is the device type that is being loaded.
    """
