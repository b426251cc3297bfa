"""NVIDIA GPUs under PyTorch's names: a thin layer over `candelabra.accelerator` for the device type ``cuda``.

Without the backend, a driver or a GPU, `is_available` is False and `device_count` 0; whatever needs a device raises an error that
says what is missing. Importing this module loads nothing.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import ModuleType

from candelabra import _C, accelerator, backends
from candelabra._C import OutOfMemoryError
from candelabra.accelerator import DeviceContext, DeviceProperties, StreamContext

from . import amp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType
    from typing import Any

    from candelabra._C import Generator, Tensor
    from candelabra._C import device as _Device
    from candelabra.types import Device

__all__ = [
    "CUDAGraph", "Event", "ExternalStream", "OutOfMemoryError", "Stream", "StreamContext", "amp", "can_device_access_peer",
    "current_device", "current_stream", "default_generators", "default_stream", "device", "device_count", "device_of", "empty_cache",
    "get_arch_list", "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "get_rng_state_all", "graph",
    "graph_pool_handle", "init", "initial_seed", "ipc_collect", "is_available", "is_bf16_supported", "is_current_stream_capturing",
    "is_initialized", "make_graphed_callables", "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved",
    "mem_get_info", "memory_allocated", "memory_reserved", "memory_snapshot", "memory_stats", "memory_summary", "nvtx",
    "reset_accumulated_memory_stats", "reset_peak_memory_stats", "seed", "seed_all", "set_device",
    "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream", "stream", "synchronize",
]  # fmt: skip

_TYPE = "cuda"


def _resolve(device: Any = None) -> _Device:
    return accelerator.resolve(device, _TYPE)


# ---- devices


def is_available() -> bool:
    """Tell whether an NVIDIA GPU can be used.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.is_available() in (True, False)
    True
    """
    return backends.is_available(_TYPE)


def is_initialized() -> bool:
    """Tell whether the backend is loaded.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.is_initialized() in (True, False)
    True
    """
    return _TYPE in _C.loaded_device_types()


def init() -> None:
    """Load the backend, which the first use of a device does by itself.

    Raises
    ------
    BackendError
        When it is not installed, or there is no driver or GPU.
    """
    backends.load(_TYPE)


def device_count() -> int:
    """Return the number of GPUs; 0 where none can be used.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.device_count() >= 0
    True
    """
    return backends.device_count(_TYPE) if is_available() else 0


def current_device() -> int:
    """Return the number of this thread's current GPU.

    Raises
    ------
    BackendError
        When there is none.
    """
    backends.load(_TYPE)
    return accelerator.current_index(_TYPE)


def set_device(device: Device | int) -> None:
    """Make a GPU this thread's current one; a negative number changes nothing."""
    if isinstance(device, int) and device < 0:
        return
    _C.set_current_index(_resolve(device))


class device(DeviceContext):
    """Makes a GPU the current one inside of a ``with``.

    Parameters
    ----------
    device : device, str, int or None
        None and a negative number change nothing.
    """

    def __init__(self, device: Any) -> None:
        super().__init__(device, _TYPE)


class device_of(device):
    """Makes the GPU of a tensor the current one inside of a ``with``; a tensor elsewhere changes nothing."""

    def __init__(self, obj: Tensor) -> None:
        super().__init__(obj.device.index if obj.device.type == _TYPE else None)


def get_device_properties(device: Device | int = None) -> DeviceProperties:
    """Return what a GPU can do: ``name``, ``major``, ``minor``, ``total_memory``, ``multi_processor_count`` and more."""
    return DeviceProperties(_resolve(device))


def get_device_name(device: Device | int = None) -> str:
    """Return the name of a GPU."""
    return get_device_properties(device).name


def get_device_capability(device: Device | int = None) -> tuple[int, int]:
    """Return the compute capability of a GPU, for instance ``(9, 0)``."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def get_arch_list() -> list[str]:
    """Return the architectures that the backend has kernels for, for instance ``["sm_80", "sm_90"]``; empty where it cannot be used."""
    if not is_available():
        return []
    described = (_C.backend_info(_TYPE)["description"] or "").partition("\n")[0].partition(":")[2]
    return [f"sm_{number.strip()}" for number in described.split(" and ")[0].split(",") if number.strip()]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Tell whether the current GPU computes in bfloat16; all do that the backend supports."""
    return is_available() and get_device_properties().major >= 8


def can_device_access_peer(device: Device | int, peer_device: Device | int) -> bool:
    """Tell whether a GPU reaches the memory of another one."""
    return _C.can_access_peer(_resolve(device), _resolve(peer_device))


def synchronize(device: Device | int = None) -> None:
    """Wait until everything queued on a GPU is done.

    Parameters
    ----------
    device : device, str or int, optional
        The current one by default.

    Raises
    ------
    BackendError
        When there is no GPU.
    RuntimeError
        When a kernel has failed; the message names it where it is known.
    """
    _C.synchronize(_resolve(device))


def ipc_collect() -> None:
    """Let go of memory that was sent to other processes (`candelabra.multiprocessing`) and that none of them uses any more.

    A thread does the same, a moment after the last of them has let go.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.ipc_collect()
    """
    sharing = sys.modules.get("candelabra.multiprocessing.device_memory")
    if sharing is not None:
        sharing.collect()


# ---- streams and events


class Stream(accelerator.Stream):
    """A queue of work of a GPU, done in the order in which it is queued.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU by default.
    priority : int
        Lower numbers come first.
    """

    _device_type = _TYPE

    @property
    def cuda_stream(self) -> int:
        """The ``cudaStream_t``."""
        return self.stream_id

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Return the least and the greatest priority."""
        return _C.stream_priorities(_resolve())

    def __repr__(self) -> str:
        return f"<candelabra.cuda.Stream device={self.device} cuda_stream={self.stream_id:#x}>"


class ExternalStream(Stream):
    """A stream that somebody else made, by its address.

    Parameters
    ----------
    stream_ptr : int
        A ``cudaStream_t``, which has to outlive this object.
    device : device, str or int, optional
        The stream's GPU; the current one by default.
    """

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        super().__init__(device, stream_ptr=stream_ptr)


class Event(accelerator.Event):
    """A place in the work of a stream.

    Parameters
    ----------
    enable_timing : bool
        Whether `elapsed_time` is to be asked for.
    blocking : bool
        Whether who waits sleeps meanwhile.
    interprocess : bool
        Whether other processes can open it.
    """

    _device_type = _TYPE

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        super().__init__(None, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)

    @classmethod
    def from_ipc_handle(cls, device: Device | int, handle: bytes) -> Event:
        """Open an event of another process by what its `ipc_handle` returned."""
        event = cls.__new__(cls)
        event.device = _resolve(device)
        event.enable_timing = False
        event.event_id = _C.ipc_open_event(event.device, handle)
        event._recorded = True
        return event

    @property
    def cuda_event(self) -> int:
        """The ``cudaEvent_t``."""
        return self.event_id

    def __repr__(self) -> str:
        return f"<candelabra.cuda.Event {self.event_id:#x}>"


def _stream_of(found: accelerator.Stream) -> Stream:
    return found if isinstance(found, Stream) else ExternalStream(found.stream_id, found.device)


def current_stream(device: Device | int = None) -> Stream:
    """Return this thread's current stream of a GPU."""
    return _stream_of(accelerator.current_stream(_resolve(device)))


def default_stream(device: Device | int = None) -> Stream:
    """Return the stream that is current where no other was set."""
    return _stream_of(accelerator.default_stream(_resolve(device)))


def set_stream(stream: accelerator.Stream | None) -> None:
    """Make a stream this thread's current one; None changes nothing."""
    if stream is not None:
        accelerator.set_stream(stream)


def stream(stream: accelerator.Stream | None) -> StreamContext:
    """Return a context in which a stream is the current one.

    Examples
    --------
    >>> import candelabra
    >>> if candelabra.cuda.is_available():
    ...     with candelabra.cuda.stream(candelabra.cuda.Stream()):
    ...         x = candelabra.ones(3, device="cuda")
    """
    return StreamContext(stream)


# ---- memory


def memory_stats(device: Device | int = None) -> dict[str, int]:
    """Return the figures of a GPU's allocator; see `candelabra.accelerator.memory_stats`. Empty where there is no GPU."""
    return accelerator.memory_stats(_resolve(device)) if is_available() else {}


def _figure(device: Any, name: str) -> int:
    return memory_stats(device).get(name, 0)


def memory_allocated(device: Device | int = None) -> int:
    """Return the bytes that tensors of a GPU take; 0 where there is none.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.memory_allocated() >= 0
    True
    """
    return _figure(device, "allocated_bytes.all.current")


def max_memory_allocated(device: Device | int = None) -> int:
    """Return the most bytes that tensors of a GPU have taken since the start or `reset_peak_memory_stats`."""
    return _figure(device, "allocated_bytes.all.peak")


def memory_reserved(device: Device | int = None) -> int:
    """Return the bytes that the allocator of a GPU holds."""
    return _figure(device, "reserved_bytes.all.current")


def max_memory_reserved(device: Device | int = None) -> int:
    """Return the most bytes that the allocator of a GPU has held since the start or `reset_peak_memory_stats`."""
    return _figure(device, "reserved_bytes.all.peak")


def reset_peak_memory_stats(device: Device | int = None) -> None:
    """Start the peaks of a GPU's allocator anew."""
    accelerator.reset_peak_memory_stats(_resolve(device))


def reset_accumulated_memory_stats(device: Device | int = None) -> None:
    """Start the totals of a GPU's allocator anew."""
    accelerator.reset_accumulated_memory_stats(_resolve(device))


def memory_summary(device: Device | int = None, abbreviated: bool = False) -> str:
    """Return the figures of a GPU's allocator as a table."""
    return accelerator.memory_summary(_resolve(device), abbreviated)


def memory_snapshot(device: Device | int = None) -> list[dict[str, Any]]:
    """Return the segments of the allocators of all GPUs, or of one, each with its blocks; see `candelabra.accelerator.memory_snapshot`."""
    if device is not None:
        return accelerator.memory_snapshot(_resolve(device))
    return [segment for index in range(device_count()) for segment in accelerator.memory_snapshot(_resolve(index))]


def empty_cache() -> None:
    """Give memory that allocators hold and nobody uses back, of all GPUs; nothing where there is none.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.empty_cache()
    """
    for index in range(device_count()):
        accelerator.empty_cache(_resolve(index))


def mem_get_info(device: Device | int = None) -> tuple[int, int]:
    """Return the free and the total memory of a GPU in bytes, whoever uses it."""
    return _C.memory_info(_resolve(device))


def set_per_process_memory_fraction(fraction: float, device: Device | int = None) -> None:
    """Let this process have no more than a part of a GPU's memory.

    Parameters
    ----------
    fraction : float
        Of the whole, from 0 to 1.
    device : device, str or int, optional
        The current GPU by default.
    """
    accelerator.set_memory_fraction(fraction, _resolve(device))


# ---- random numbers


def manual_seed(seed: int) -> None:
    """Start the random numbers of the current GPU from a seed; nothing where there is none.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.manual_seed(0)
    """
    if is_available():
        _C.default_generator(_resolve()).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Start the random numbers of all GPUs from a seed; nothing where there is none.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.manual_seed_all(0)
    """
    for index in range(device_count()):
        _C.default_generator(_resolve(index)).manual_seed(int(seed))


def seed() -> None:
    """Start the random numbers of the current GPU from a seed that the system picks."""
    if is_available():
        _C.default_generator(_resolve()).seed()


def seed_all() -> None:
    """Start the random numbers of all GPUs from one seed that the system picks."""
    if is_available():
        manual_seed_all(_C.default_generator(_resolve(0)).seed())


def initial_seed() -> int:
    """Return the seed that the random numbers of the current GPU began with."""
    return _C.default_generator(_resolve()).initial_seed()


def get_rng_state(device: Device | int = _TYPE) -> Tensor:
    """Return the state of the random numbers of a GPU, as a uint8 tensor."""
    return _C.default_generator(_resolve(device)).get_state()


def get_rng_state_all() -> list[Tensor]:
    """Return the states of the random numbers of all GPUs."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state: Tensor, device: Device | int = _TYPE) -> None:
    """Go on with the random numbers of a GPU from a state."""
    _C.default_generator(_resolve(device)).set_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Go on with the random numbers of all GPUs from their states."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


# ---- graphs


def is_current_stream_capturing() -> bool:
    """Tell whether what is queued on the current stream goes to a graph."""
    if not is_initialized():
        return False
    where = _resolve()
    return _C.stream_is_capturing(where, _C.current_stream(where))


def graph_pool_handle() -> tuple[int, int]:
    """Return a pool of memory for several graphs that do not run at the same time."""
    where = _resolve()
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
        self._device = _resolve()
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
        if not is_finalizing() and (getattr(self, "_graph", 0) or getattr(self, "_pool", None) is not None):
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
        Which is recorded; one for all graphs by default.
    capture_error_mode : str
        See `CUDAGraph.capture_begin`.
    """

    default_capture_stream: Stream | None = None

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: tuple[int, int] | None = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        if stream is None:
            if graph.default_capture_stream is None:
                graph.default_capture_stream = Stream()
            stream = graph.default_capture_stream
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


# ---- marks for profilers


class _Nvtx(ModuleType):
    """Named ranges and marks for NVIDIA's profilers; nothing happens without one, or without a GPU."""

    @staticmethod
    def range_push(msg: str) -> None:
        """Begin a range."""
        if is_initialized():
            _C.profiler_mark(_TYPE, "push", msg)

    @staticmethod
    def range_pop() -> None:
        """End the range that was begun last."""
        if is_initialized():
            _C.profiler_mark(_TYPE, "pop", "")

    @staticmethod
    def mark(msg: str) -> None:
        """Mark this moment."""
        if is_initialized():
            _C.profiler_mark(_TYPE, "mark", msg)

    @staticmethod
    @contextmanager
    def range(msg: str, *args: Any, **keywords: Any) -> Iterator[None]:
        """Make what is inside of a ``with`` a range; `msg` is formatted with the arguments."""
        _Nvtx.range_push(msg.format(*args, **keywords))
        try:
            yield
        finally:
            _Nvtx.range_pop()


nvtx = _Nvtx(f"{__name__}.nvtx")
sys.modules[nvtx.__name__] = nvtx


def __getattr__(name: str) -> Any:
    if name == "default_generators":
        generators: tuple[Generator, ...] = tuple(_C.default_generator(_resolve(index)) for index in range(device_count()))
        return generators
    if name in ("FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "ByteTensor", "CharTensor", "ShortTensor", "IntTensor",
                "LongTensor", "BoolTensor"):  # fmt: skip
        raise AttributeError(
            f"module 'candelabra.cuda' has no attribute '{name}': use candelabra.tensor(..., device='cuda')",
            name=name,
            obj=sys.modules[__name__],
        )
    raise AttributeError(f"module 'candelabra.cuda' has no attribute '{name}'", name=name, obj=sys.modules[__name__])
