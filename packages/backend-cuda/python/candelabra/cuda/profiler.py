"""Which part of a program NVIDIA's profilers record: for ``nsys profile
--capture-range=cudaProfilerApi`` and the like.
"""

from __future__ import annotations

from contextlib import contextmanager

from candelabra import _C

from .devices import TYPE, init

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["profile", "start", "stop"]


def start() -> None:
    """Have the profiler that is attached record from now on; nothing happens without one.

    Raises
    ------
    BackendError
        When there is no GPU.
    AcceleratorError
        When the driver refuses.
    """
    init()
    _C.profiler_record(TYPE, True)


def stop() -> None:
    """Have the profiler record no longer; raises what `start` does."""
    init()
    _C.profiler_record(TYPE, False)


@contextmanager
def profile() -> Iterator[None]:
    """Have the profiler record what is inside of a ``with``.

    Examples
    --------
    >>> import candelabra
    >>> if candelabra.cuda.is_available():
    ...     with candelabra.cuda.profiler.profile():
    ...         x = candelabra.ones(3, device="cuda") + 1
    """
    start()
    try:
        yield
    finally:
        stop()
