"""The installed engines: which there are, and which one serves a backend's name."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

import pluggy

from candelabra import _C

from .. import hookspec

if TYPE_CHECKING:
    from .interface import Engine

#: The entry-point group of engines.
GROUP = "candelabra.process_groups"
#: Names of PyTorch's backends for engines of ours.
ALIASES = {"gloo": "mpi"}
#: Where an engine that is missing comes from.
_DISTRIBUTIONS = {
    "mpi": "candelabra-collectives-mpi",
    "nccl": "candelabra-distributed",
    "fake": "candelabra-distributed",
}
#: The engines of device types, if a program names none.
DEFAULTS = {"cpu": "mpi", "cuda": "nccl"}

_engines: dict[str, Engine] = {}
_added: dict[str, Callable[[], Engine]] = {}
_warned: set[str] = set()


def installed() -> dict[str, EntryPoint]:
    """Return the entry points of the installed engines by name, without loading any.

    Examples
    --------
    >>> from candelabra.distributed.engines import registry
    >>> "fake" in registry.installed()
    True
    """
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def add(name: str, factory: Callable[[], Engine]) -> None:
    """Add an engine for this process, besides those of the entry points.

    Raises
    ------
    RuntimeError
        The name is taken.
    """
    if name in _added or name in ALIASES or name in installed():
        raise RuntimeError(f"{name} c10d backend already exist")
    _added[name] = factory


def is_known(name: str) -> bool:
    """Return whether there is an engine for a backend's name."""
    name = ALIASES.get(name.lower(), name.lower())
    return name in _added or name in installed()


def engine_of(name: str) -> Engine:
    """Return the engine for a backend's name, loaded on first use.

    Raises
    ------
    ValueError
        There is no such engine.
    RuntimeError
        Its plugin does not load, or gives no engine.
    """
    wanted = ALIASES.get(name, name)
    if wanted != name and name not in _warned:
        _warned.add(name)
        _C.warn(
            f"the backend {name!r} is carried out by {wanted!r} here: Candelabra has no {name} of its own",
        )
    if wanted not in _engines:
        _engines[wanted] = _load(wanted)
    return _engines[wanted]


def _load(name: str) -> Engine:
    if name in _added:
        return _added[name]()
    entry = installed().get(name)
    if entry is None:
        known = sorted({*installed(), *_added})
        hint = f": pip install {_DISTRIBUTIONS[name]}" if name in _DISTRIBUTIONS else ""
        raise ValueError(f"Invalid backend: '{name}' is not installed{hint}; installed: {', '.join(known)}")
    manager = pluggy.PluginManager("candelabra")
    manager.add_hookspecs(hookspec)
    try:
        manager.register(entry.load(), name)
        engine: Engine | None = manager.hook.candelabra_process_group_engine()
    except Exception as error:
        raise RuntimeError(f"the engine {name!r} ({entry.value}) does not load: {error}") from error
    if engine is None:
        raise RuntimeError(f"the plugin {entry.value} gives no engine: it has no hook candelabra_process_group_engine")
    return engine


def parse(backend: str | None) -> dict[str, str]:
    """Return the backends' names by device type.

    Parameters
    ----------
    backend : str or None
        A name, pairs like ``"cpu:gloo,cuda:nccl"``, or None for the engines that are installed.

    Examples
    --------
    >>> from candelabra.distributed.engines import registry
    >>> registry.parse("cpu:gloo,cuda:nccl")
    {'cpu': 'gloo', 'cuda': 'nccl'}
    >>> registry.parse("fake")
    {'cpu': 'fake', 'cuda': 'fake'}
    """
    if backend is None or backend == "undefined":
        return dict(DEFAULTS)
    text = backend.lower()
    if ":" not in text:
        if not is_known(text) and ALIASES.get(text, text) not in _DISTRIBUTIONS:
            known = sorted({*installed(), *_added, *ALIASES})
            raise ValueError(f"Invalid backend: '{backend}'; there are {', '.join(known)}")
        return dict.fromkeys(_device_types(text), text)
    found: dict[str, str] = {}
    for pair in text.split(","):
        device, colon, name = pair.partition(":")
        if not colon or not device or not name:
            raise ValueError(
                f"Invalid device:backend pairing: {backend}; expected DEVICE:BACKEND pairs such as cpu:gloo,cuda:nccl"
            )
        if device in found:
            raise ValueError(f"Duplicate device type {device} in backend string: {backend}")
        found[device] = name
    return found


def _device_types(name: str) -> tuple[str, ...]:
    wanted = ALIASES.get(name, name)
    known = {"mpi": ("cpu",), "nccl": ("cuda",), "fake": ("cpu", "cuda")}
    return known[wanted] if wanted in known else engine_of(name).device_types
