"""The interface of plugins that bring an engine for collectives."""

from __future__ import annotations

import pluggy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .engines.interface import Engine

hookspec = pluggy.HookspecMarker("candelabra")
hookimpl = pluggy.HookimplMarker("candelabra")


@hookspec(firstresult=True)
def candelabra_process_group_engine() -> Engine | None:
    """Return the engine.

    Called once in a process, when a process group first needs the engine. The entry point in the
    group ``candelabra.process_groups`` has the engine's name, and refers to the plugin: a module or
    another object with this function, decorated by ``candelabra.distributed.hookspec.hookimpl``.
    """
