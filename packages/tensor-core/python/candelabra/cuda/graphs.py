"""Graphs of CUDA: recorded work that runs again as one."""

from __future__ import annotations

import sys

from candelabra import _C
from candelabra.accelerator import StreamContext

from .devices import current_device, is_initialized, resolve, synchronize
from .memory import empty_cache
from .streams import Stream, current_stream, stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, ClassVar

    from candelabra._C import Tensor
    from candelabra._C import device as _Device


def is_current_stream_capturing() -> bool:
    """Tell whether what is queued on the current stream goes to a graph."""
    if not is_initialized():
        return False
    where = resolve()
    return _C.stream_is_capturing(where, _C.current_stream(where))


def graph_pool_handle() -> tuple[int, int]:
    """Return a pool of memory for several graphs that do not run at the same time."""
    where = resolve()
    return _Pool(where).id


class _Pool:
    """A pool of memory of one GPU, kept for graphs as long as one of them or a handle is there."""

    known: dict[tuple[int, int], _Pool] = {}

    def __init__(self, device: _Device) -> None:
        self.device = device
        self.address: int = _C.pool_create(device)
        self.id = (device.index or 0, self.address)
        _Pool.known[self.id] = self


_MODES = {"global": 0, "thread_local": 1, "relaxed": 2}


class CUDAGraph:
    """Work of a GPU that was recorded once and runs again at the cost of one launch.

    Tensors that are used in it keep their memory: before `replay`, new input is copied into the same tensors. Random numbers are drawn
    anew in every replay, as without the graph.

    Parameters
    ----------
    keep_graph : bool
        Without a meaning here: the recording is kept.

    Examples
    --------
    >>> import candelabra
    >>> if candelabra.cuda.is_available():
    ...     x = candelabra.zeros(3, device="cuda")
    ...     g = candelabra.cuda.CUDAGraph()
    ...     with candelabra.cuda.graph(g):
    ...         y = x + 1
    ...     g.replay()
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self._device: _Device | None = None
        self._stream = 0
        self._pool: _Pool | None = None
        self._graph = 0
        self._offset = 0
        self._drawn = 0

    def capture_begin(self, pool: tuple[int, int] | None = None, capture_error_mode: str = "global") -> None:
        """Record what is queued on the current stream from now on.

        Parameters
        ----------
        pool : tuple, optional
            Where memory comes from: of `graph_pool_handle` or another graph's `pool`.
        capture_error_mode : str
            ``"global"``, ``"thread_local"`` or ``"relaxed"``: whose calls that cannot be recorded are errors.

        Raises
        ------
        RuntimeError
            When the current stream is the default one, or something is recorded there already.
        """
        if self._graph or self._stream:
            raise RuntimeError("This CUDAGraph instance already owns a captured graph; reset() it, or make another")
        if capture_error_mode not in _MODES:
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}"
            )
        self._device = resolve()
        if pool is None:
            chosen = _Pool(self._device)
        elif tuple(pool) in _Pool.known:
            chosen = _Pool.known[tuple(pool)]  # type: ignore[index]
            _C.pool_retain(chosen.device, chosen.address)
        else:
            raise RuntimeError(f"{pool} is no pool of memory: take that of graph_pool_handle() or of another graph")
        self._pool = chosen
        self._stream = _C.current_stream(self._device)
        try:
            self._offset = _C.graph_begin(self._device, self._stream, chosen.address, _MODES[capture_error_mode])
        except BaseException:
            self._stream = 0
            self._let_go()
            raise

    def capture_end(self) -> None:
        """End the recording; what was recorded has not run.

        Raises
        ------
        RuntimeError
            When something was called in between that cannot be recorded.
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
        """Queue what was recorded on the current stream."""
        if not self._graph or self._device is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        _C.graph_launch(self._device, self._graph, self._drawn)

    def reset(self) -> None:
        """Forget the recording, and give its memory back."""
        if self._graph and self._device is not None:
            _C.graph_destroy(self._device, self._graph)
            self._graph = 0
        self._let_go()

    def pool(self) -> tuple[int, int]:
        """Return where the graph's memory comes from, for other graphs."""
        if self._pool is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._pool.id

    def debug_dump(self, debug_path: str) -> None:
        """Write the graph to a file, in the language of Graphviz."""
        if not self._graph or self._device is None:
            raise RuntimeError("debug_dump() without a preceding successful capture")
        _C.graph_write_dot(self._device, self._graph, debug_path)

    def _let_go(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            _C.pool_release(pool.device, pool.address)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing() and (getattr(self, "_graph", None) or getattr(self, "_pool", None) is not None):
            self.reset()


class graph:
    """Records what is queued inside of a ``with`` to a graph, on a stream of its own.

    Parameters
    ----------
    cuda_graph : CUDAGraph
        What it is recorded to.
    pool : tuple, optional
        Where memory comes from: of `graph_pool_handle` or another graph's ``pool()``.
    stream : Stream, optional
        Which is recorded; one for all graphs of the current device by default.
    capture_error_mode : str
        See `CUDAGraph.capture_begin`.
    """

    _streams: ClassVar[dict[int, Stream]] = {}

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: tuple[int, int] | None = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        if stream is None:
            device = current_device()
            stream = self._streams.get(device)
            if stream is None:
                stream = self._streams[device] = Stream()
        self.cuda_graph = cuda_graph
        self.pool = pool
        self.capture_stream = stream
        self.capture_error_mode = capture_error_mode
        self._context = StreamContext(stream)

    def __enter__(self) -> None:
        import gc

        synchronize()
        gc.collect()
        empty_cache()
        self._context.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self._context.__exit__(None, None, None)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.cuda_graph.capture_end()
        finally:
            self._context.__exit__(kind, error, trace)


def make_graphed_callables(
    callables: Callable[..., Any], sample_args: tuple[Tensor, ...], num_warmup_iters: int = 3, pool: tuple[int, int] | None = None
) -> Callable[..., Any]:
    """Return a function that replays a graph of a function of tensors, without gradients.

    Parameters
    ----------
    callables : callable
        Of tensors, with tensors as its result.
    sample_args : tuple of Tensor
        Arguments of the sizes, dtypes and devices that it will be called with.
    num_warmup_iters : int
        How often it is called before it is recorded.
    pool : tuple, optional
        See `graph`.

    Returns
    -------
    callable
        Copies its arguments to those of the recording, replays, and returns copies of the results.

    Raises
    ------
    RuntimeError
        When an argument requires grad: gradients of a recording are not recorded.
    """
    import candelabra

    if any(argument.requires_grad for argument in sample_args):
        raise RuntimeError("make_graphed_callables(): arguments that require grad cannot be recorded; detach() them")
    inputs = tuple(argument.clone() for argument in sample_args)
    side = Stream()
    side.wait_stream(current_stream())
    with stream(side), candelabra.no_grad():
        for _ in range(num_warmup_iters):
            callables(*inputs)
    current_stream().wait_stream(side)
    recorded = CUDAGraph()
    with candelabra.no_grad(), graph(recorded, pool):
        results = callables(*inputs)

    def replayed(*arguments: Tensor) -> Any:
        if len(arguments) != len(inputs):
            raise TypeError(f"the recorded function takes {len(inputs)} tensors, but got {len(arguments)}")
        with candelabra.no_grad():
            for kept, given in zip(inputs, arguments, strict=True):
                kept.copy_(given)
            recorded.replay()
            return results.clone() if isinstance(results, _C.Tensor) else type(results)(result.clone() for result in results)

    return replayed
