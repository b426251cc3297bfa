"""Graphs of an accelerator: captured work that is replayed as a unit, and the memory pools of
graphs.
"""

from __future__ import annotations

import sys

from candelabra import _C

from .devices import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from candelabra._C import device as _Device


class Pool:
    """The part of a memory pool on one device. Kept as long as a graph or its creator refers to
    it.
    """

    known: dict[tuple[int, int], Pool] = {}

    def __init__(self, device: _Device) -> None:
        self.device = device
        self.address: int = _C.pool_create(device)
        self.id = (device.index or 0, self.address)
        Pool.known[self.id] = self

    def release(self) -> None:
        """Release the pool: once for its creation and once for each time that it was retained."""
        _C.pool_release(self.device, self.address)


_MODES = {"default": 0, "global": 0, "thread_local": 1, "relaxed": 2}


class Recording:
    """Base of the graphs of all devices: capture, replay, reset."""

    #: The device type whose current device is captured; None for the accelerator's.
    _device_type: str | None = None

    def __init__(self) -> None:
        self._device: _Device | None = None
        self._stream = 0
        self._pool: Pool | None = None
        self._graph = 0
        self._offset = 0
        self._drawn = 0

    def _begin(self, pool: tuple[int, int] | None, mode: str) -> None:
        name = type(self).__name__
        if self._graph or self._stream:
            raise RuntimeError(f"This {name} instance already owns a captured graph; reset() it, or make another")
        if mode not in _MODES:
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {mode}"
            )
        self._device = resolve(None, self._device_type)
        if pool is None:
            chosen = Pool(self._device)
        elif tuple(pool) in Pool.known:
            chosen = Pool.known[tuple(pool)]  # type: ignore[index]
            _C.pool_retain(chosen.device, chosen.address)
        else:
            raise RuntimeError(f"{pool} is no pool of memory: take that of graph_pool_handle() or of another graph")
        self._pool = chosen
        self._stream = _C.current_stream(self._device)
        try:
            self._offset = _C.graph_begin(self._device, self._stream, chosen.address, _MODES[mode])
        except BaseException:
            self._stream = 0
            self._let_go()
            raise

    def capture_end(self) -> None:
        """End the capture. The captured work has not run.

        Raises
        ------
        RuntimeError
            If an operation that cannot be captured was called during the capture.
        """
        if not self._stream or self._device is None:
            raise RuntimeError("capture_end() without capture_begin()")
        stream, self._stream = self._stream, 0
        try:
            self._graph, self._drawn = _C.graph_end(self._device, stream, self._offset)
        except BaseException:
            self._let_go()
            raise

    def replay(self) -> None:
        """Queue the captured work on the current stream."""
        if not self._graph or self._device is None:
            raise RuntimeError(f"Called {type(self).__name__}::replay without a preceding successful capture.")
        _C.graph_launch(self._device, self._graph, self._drawn)

    def reset(self) -> None:
        """Delete the captured work and free its memory."""
        if self._graph and self._device is not None:
            _C.graph_destroy(self._device, self._graph)
            self._graph = 0
        self._let_go()

    def pool(self) -> tuple[int, int]:
        """Return the memory pool of the graph, for use by other graphs."""
        if self._pool is None:
            raise RuntimeError(f"Called {type(self).__name__}::pool() without a preceding successful capture.")
        return self._pool.id

    def debug_dump(self, debug_path: str) -> None:
        """Write the graph to a file in Graphviz's language."""
        if not self._graph or self._device is None:
            raise RuntimeError("debug_dump() without a preceding successful capture")
        _C.graph_write_dot(self._device, self._graph, debug_path)

    def _let_go(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.release()

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing() and (getattr(self, "_graph", None) or getattr(self, "_pool", None) is not None):
            self.reset()


class Graph(Recording):
    """Work of a device, captured in a ``with`` block on a stream other than the default one, and
    replayed as a unit.

    The captured work always uses the same memory. To run it on new input, copy the input into the
    same tensors before `replay`.

    Parameters
    ----------
    keep_graph : bool
        Ignored: the graph is always kept.
    pool : tuple, optional
        The memory pool: another graph's ``pool()``.
    capture_error_mode : str
        Whose calls that cannot be captured are errors: ``"default"``, ``"global"``,
        ``"thread_local"`` or ``"relaxed"``.

    Raises
    ------
    NotImplementedError
        On entry, if the accelerator does not support graphs.

    Examples
    --------
    >>> import candelabra
    >>> if candelabra.cuda.is_available():
    ...     x = candelabra.zeros(3, device="cuda")
    ...     g = candelabra.accelerator.Graph()
    ...     with candelabra.accelerator.Stream(), g:
    ...         y = x + 1
    ...     g.replay()
    """

    def __init__(
        self, keep_graph: bool = False, *, pool: tuple[int, int] | None = None, capture_error_mode: str = "default"
    ) -> None:
        super().__init__()
        self.graph_pool = pool
        self.capture_error_mode = capture_error_mode

    def capture_begin(self) -> None:
        """Start to capture the work queued on the current stream."""
        self._begin(self.graph_pool, self.capture_error_mode)

    def __enter__(self) -> Graph:
        self.capture_begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.capture_end()
