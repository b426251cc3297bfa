"""Modules as programs of their own, beneath a function that cannot be replayed as a whole.

A module that the function reaches is replayed by itself when the function calls it. What cannot be
replayed either runs as written, and the modules that it calls are replayed in turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from candelabra import _C


class _Thread(threading.local):
    #: Whether modules that this thread calls are units, except the one that is about to be called.
    is_looking = False
    entered: Any = None


_thread = _Thread()


class modules_as_units:
    """While entered, modules that this thread calls are units, or none is.

    The call of `entered` itself, which is that of the function that runs, is not one.
    """

    __slots__ = ("_before", "_now")

    def __init__(self, is_looking: bool, entered: Any = None) -> None:
        self._now = (is_looking, entered)

    def __enter__(self) -> None:
        self._before = (_thread.is_looking, _thread.entered)
        _thread.is_looking, _thread.entered = self._now

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _thread.is_looking, _thread.entered = self._before


class Unit:
    """What replays the calls of one module. The module has it as ``_compiled_unit``."""

    # Without a dict, so that guards on the module's attributes do not look inside.
    __slots__ = ("_replayer",)

    def __init__(self, replayer: Callable[..., Any]) -> None:
        self._replayer = replayer

    def is_wanted(self, module: Any) -> bool:
        """Return whether this call of the module is a unit."""
        if not _thread.is_looking or _C.is_recording():
            return False
        if _thread.entered is module:
            _thread.entered = None
            return False
        return True

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Replay the call, or make it."""
        with modules_as_units(False):
            return self._replayer(*args, **kwargs)

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return (_no_unit, ())


def _no_unit() -> None:
    """Return what a copy of a module has: no unit."""


def make_units(modules: Iterable[Any], compile_module: Callable[[Any], Callable[..., Any]]) -> int:
    """Give modules units where they have none. Returns how many modules have one."""
    count = 0
    for module in modules:
        count += 1
        if module.__dict__.get("_compiled_unit") is None:
            module.__dict__["_compiled_unit"] = Unit(compile_module(module))
            module.__dict__["_hooked"] = True
    return count
