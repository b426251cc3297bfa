"""Named ranges and marks for NVIDIA's profilers; nothing happens without one, or without a GPU."""

from __future__ import annotations

from contextlib import contextmanager

from candelabra import _C

from .devices import TYPE, is_initialized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def range_push(msg: str) -> None:
    """Begin a range."""
    if is_initialized():
        _C.profiler_mark(TYPE, "push", msg)


def range_pop() -> None:
    """End the range that was begun last."""
    if is_initialized():
        _C.profiler_mark(TYPE, "pop", "")


def mark(msg: str) -> None:
    """Mark this moment."""
    if is_initialized():
        _C.profiler_mark(TYPE, "mark", msg)


@contextmanager
def range(msg: str, *args: Any, **keywords: Any) -> Iterator[None]:
    """Make what is inside of a ``with`` a range; `msg` is formatted with the arguments."""
    range_push(msg.format(*args, **keywords))
    try:
        yield
    finally:
        range_pop()


def range_start(msg: str) -> int:
    """Begin a range that another thread may end, and return its number."""
    return _C.profiler_range_start(TYPE, msg) if is_initialized() else 0


def range_end(range_id: int) -> None:
    """End a range that `range_start` began."""
    if is_initialized():
        _C.profiler_range_end(TYPE, range_id)
