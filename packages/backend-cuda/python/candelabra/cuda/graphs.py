"""Graphs of CUDA: recorded work that runs again as one."""

from __future__ import annotations

from candelabra import _C
from candelabra.accelerator import StreamContext
from candelabra.accelerator.graphs import Pool, Recording

from .devices import TYPE, current_device, is_initialized, resolve, synchronize
from .memory import empty_cache
from .streams import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import ClassVar


def is_current_stream_capturing() -> bool:
    """Tell whether what is queued on the current stream goes to a graph."""
    if not is_initialized():
        return False
    where = resolve()
    return _C.stream_is_capturing(where, _C.current_stream(where))


def graph_pool_handle() -> tuple[int, int]:
    """Return a pool of memory for several graphs that do not run at the same time."""
    where = resolve()
    return Pool(where).id


class CUDAGraph(Recording):
    """Work of a GPU that was recorded once and runs again at the cost of one launch.

    Tensors that are used in it keep their memory: before `replay`, new input is copied into the
    same tensors. Random numbers are drawn anew in every replay, as without the graph.

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

    _device_type = TYPE

    def __init__(self, keep_graph: bool = False) -> None:
        super().__init__()

    def capture_begin(self, pool: tuple[int, int] | None = None, capture_error_mode: str = "global") -> None:
        """Record what is queued on the current stream from now on.

        Parameters
        ----------
        pool : tuple, optional
            Where memory comes from: of `graph_pool_handle` or another graph's `pool`.
        capture_error_mode : str
            ``"global"``, ``"thread_local"`` or ``"relaxed"``: whose calls that cannot be recorded
            are errors.

        Raises
        ------
        RuntimeError
            When the current stream is the default one, or something is recorded there already.
        """
        self._begin(pool, capture_error_mode)


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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.cuda_graph.capture_end()
        finally:
            self._context.__exit__(kind, error, trace)
