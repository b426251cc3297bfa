"""Markers of functions, and what this thread does."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from candelabra import _C

T = TypeVar("T")


class _Thread(threading.local):
    tracing = 0


_thread = _Thread()


def is_scripting() -> bool:
    """Return False: nothing is compiled from source, and Python code always runs as Python."""
    return False


def is_tracing() -> bool:
    """Return whether the caller runs inside a call that `trace` records."""
    return _thread.tracing > 0


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """Let `is_tracing` return True on this thread."""
    _thread.tracing += 1
    try:
        yield
    finally:
        _thread.tracing -= 1


def is_plain() -> bool:
    """Return whether nothing but autograd sees the operators of this thread."""
    hook = _C.set_dispatch_hook(None)
    _C.set_dispatch_hook(hook)
    return hook is None and not (_C.torch_function_modes() or _C.torch_dispatch_modes() or _C.is_recording())


def export(fn: T) -> T:
    """Return the function unchanged: every method of a module can be called."""
    return fn


def unused(fn: T) -> T:
    """Return the function unchanged: only functions that run are recorded."""
    return fn


def ignore(drop: Any = False, **options: Any) -> Any:
    """Return the function unchanged; also usable as a decorator with options."""
    return drop if callable(drop) else unused


def script_if_tracing(fn: Callable[..., T]) -> Callable[..., T]:
    """Return the function unchanged: a trace records the operators that it calls."""
    return fn
