"""The accelerator of this machine, whichever backend it comes from: devices, streams, events and memory under one set of names.

PyTorch's module ``torch.accelerator``. The accelerator is the device type of the first installed backend that is not the host's
memory and has a device, or the one that `use` or ``CANDELABRA_ACCELERATOR`` names. Every backend gets this module without a line of
its own: what it says in its tables (``candelabra/backend.h``, ``candelabra/accelerator.h``) is what can be done here.
"""

from __future__ import annotations

import os
import sys

from candelabra import _C, backends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Any

    from candelabra._C import Tensor, device
    from candelabra.types import Device

__all__ = [
    "DeviceContext", "Event", "Stream", "StreamContext", "current_accelerator", "current_device_idx", "current_device_index",
    "current_stream", "default_stream", "device_count", "device_index", "empty_cache", "get_device_capability", "get_device_properties",
    "get_memory_info", "is_available", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
    "memory_snapshot", "memory_stats", "memory_summary", "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx",
    "set_device_index", "set_memory_fraction", "set_stream", "stream", "synchronize", "use",
]  # fmt: skip

_HOST_MEMORY = 1  # CB_CAP_HOST_MEMORY
_chosen: str | None = None
# What looking has found: nothing yet, or a device type, or None. Devices do not come and go while a process runs.
_found: list[str | None] = []


# ---- which accelerator


def _look() -> str | None:
    wanted = _chosen or os.environ.get("CANDELABRA_ACCELERATOR")
    if wanted:
        return wanted if backends.is_available(wanted) else None
    for device_type in sorted(backends.installed()):
        if device_type == "cpu" or not backends.is_available(device_type):
            continue
        if not _C.backend_info(device_type)["capabilities"] & _HOST_MEMORY:
            return device_type
    return None


def _find() -> str | None:
    if not _found:
        _found.append(_look())
    return _found[0]


def _accelerator() -> str:
    found = _find()
    if found is None:
        wanted = _chosen or os.environ.get("CANDELABRA_ACCELERATOR")
        for device_type in [wanted] if wanted else sorted(backends.installed()):
            if device_type != "cpu":
                backends.load(device_type)  # says why it cannot be used
        raise RuntimeError(
            "Cannot access accelerator device when none is available: no backend of one is installed (pip install candelabra-backend-cuda)"
        )
    return found


def use(device_type: str | None) -> None:
    """Say which device type is the accelerator; None goes back to looking for one.

    Parameters
    ----------
    device_type : str or None
        Of an installed backend, one whose devices compute in host memory included.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.accelerator.use("cpu")
    >>> candelabra.accelerator.device_count()
    1
    >>> candelabra.accelerator.use(None)
    """
    global _chosen
    if device_type is not None:
        backends.load(device_type)
    _chosen = device_type
    _found.clear()


def is_available() -> bool:
    """Tell whether there is an accelerator.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.accelerator.is_available() in (True, False)
    True
    """
    return _find() is not None


def device_count() -> int:
    """Return how many devices the accelerator has; 0 where there is none.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.accelerator.device_count() >= 0
    True
    """
    found = _find()
    return 0 if found is None else backends.device_count(found)


def current_accelerator(check_available: bool = False) -> device | None:
    """Return the device type of the accelerator as a device, or None where there is none.

    Parameters
    ----------
    check_available : bool
        Without a meaning here: a backend without devices is none.

    Examples
    --------
    >>> import candelabra
    >>> found = candelabra.accelerator.current_accelerator()
    """
    found = _find()
    return None if found is None else _C.device(found)


# ---- devices


def resolve(device: Any, device_type: str | None = None) -> device:
    """Return the device that an argument means: None for the current one, a number for its index, else a device or its name.

    Raises
    ------
    ValueError
        When the device is of another type than the accelerator.
    RuntimeError
        When there is no such device.
    """
    wanted = device_type or _accelerator()
    if device is None:
        return _C.device(wanted, current_index(wanted))
    if isinstance(device, bool) or not isinstance(device, int):
        given = device if isinstance(device, _C.device) else _C.device(device)
        if given.type != wanted:
            raise ValueError(f"{given.type} doesn't match the current accelerator {wanted}.")
        if isinstance(device, str) and ":" not in device:
            return _C.device(wanted, current_index(wanted))
        return given
    return _C.device(wanted, current_index(wanted) if device < 0 else device)


def current_index(device_type: str) -> int:
    """Return the number of this thread's current device of a type."""
    return _C.current_index(device_type)


def current_device_index() -> int:
    """Return the number of this thread's current device.

    Raises
    ------
    RuntimeError
        When there is no accelerator.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.accelerator.use("cpu")
    >>> candelabra.accelerator.current_device_index()
    0
    >>> candelabra.accelerator.use(None)
    """
    return current_index(_accelerator())


def set_device_index(device: Device | int) -> None:
    """Make a device this thread's current one.

    Parameters
    ----------
    device : device, str or int
        A negative number changes nothing.

    Raises
    ------
    RuntimeError
        When there is no such device.
    """
    if isinstance(device, int) and device < 0:
        return
    _C.set_current_index(resolve(device))


current_device_idx = current_device_index
set_device_idx = set_device_index


class DeviceContext:
    """Makes a device the current one inside of a ``with``; what `device_index` returns.

    Parameters
    ----------
    device : device, str, int or None
        None and a negative number change nothing.
    device_type : str or None
        Of which a number is meant; None for the accelerator's.
    """

    def __init__(self, device: Any, device_type: str | None = None) -> None:
        self.idx = device
        self._type = device_type
        self._before: list[device | None] = []

    def __enter__(self) -> None:
        if self.idx is None or (isinstance(self.idx, int) and self.idx < 0):
            self._before.append(None)
            return
        wanted = resolve(self.idx, self._type)
        self._before.append(_C.device(wanted.type, current_index(wanted.type)))
        _C.set_current_index(wanted)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        before = self._before.pop()
        if before is not None:
            _C.set_current_index(before)


device_index = DeviceContext


def synchronize(device: Device | int = None) -> None:
    """Wait until everything queued on a device is done.

    Parameters
    ----------
    device : device, str or int, optional
        The current device by default.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.accelerator.use("cpu")
    >>> candelabra.accelerator.synchronize()
    >>> candelabra.accelerator.use(None)
    """
    _C.synchronize(resolve(device))


class DeviceProperties:
    """What a device can do, by attribute: ``name``, ``total_memory``, ``multi_processor_count``, ``major``, ``minor`` and what else its
    backend tells. Two are equal where everything is."""

    def __init__(self, device: device) -> None:
        basic, details = _C.device_properties(device), _C.device_details(device)
        self.name: str = basic["name"]
        self.total_memory: int = basic["total_memory"]
        self.multi_processor_count: int = basic["processor_count"]
        self.architecture: int = basic["architecture"]
        uuid: bytes = details.pop("uuid")
        hexadecimal = uuid.hex()
        self.uuid = "-".join((hexadecimal[:8], hexadecimal[8:12], hexadecimal[12:16], hexadecimal[16:20], hexadecimal[20:]))
        self.__dict__.update(details)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the backend of this device does not tell '{name}'")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceProperties) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = {
            "name": repr(self.name), "major": self.major, "minor": self.minor, "total_memory": f"{self.total_memory // 2**20}MB",
            "multi_processor_count": self.multi_processor_count, "uuid": self.uuid, "L2_cache_size": f"{self.L2_cache_size // 2**20}MB",
        }  # fmt: skip
        return f"_DeviceProperties({', '.join(f'{name}={value}' for name, value in shown.items())})"


def get_device_properties(device: Device | int = None) -> DeviceProperties:
    """Return what a device can do.

    Parameters
    ----------
    device : device, str or int, optional
        The current device by default.

    Returns
    -------
    DeviceProperties
        With attributes such as ``name``, ``total_memory`` (bytes) and ``multi_processor_count``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.accelerator.use("cpu")
    >>> candelabra.accelerator.get_device_properties().total_memory > 0
    True
    >>> candelabra.accelerator.use(None)
    """
    return DeviceProperties(resolve(device))


def get_device_capability(device: Device | int = None) -> dict[str, Any]:
    """Return what dtypes a device has kernels for, as far as is known: ``{"supported_dtypes": {...}}``."""
    resolve(device)
    return {"supported_dtypes": {value for value in vars(_C).values() if isinstance(value, _C.dtype)}}


# ---- streams


class Stream:
    """A queue of work of one device, done in the order in which it is queued; what different streams do may overlap.

    Parameters
    ----------
    device : device, str or int, optional
        The current device by default.
    priority : int
        Lower numbers come first; what the device does not have is rounded to what it has.

    Raises
    ------
    NotImplementedError
        When the backend has no streams.

    Examples
    --------
    >>> import candelabra
    >>> if candelabra.accelerator.is_available():
    ...     side = candelabra.accelerator.Stream()
    ...     with side:
    ...         x = candelabra.ones(3, device=side.device)
    ...     side.synchronize()
    """

    #: Of which a number as `device` is meant; None for the accelerator's.
    _device_type: str | None = None

    def __init__(self, device: Any = None, priority: int = 0, **others: Any) -> None:
        if "stream_ptr" in others:
            self.device = resolve(device, self._device_type)
            self.stream_id: int = others["stream_ptr"]
            self._owned = False
        elif others:
            raise TypeError(f"{type(self).__name__}() got unexpected arguments: {', '.join(others)}")
        else:
            self.device = resolve(device, self._device_type)
            self.stream_id = _C.stream_create(self.device, priority)
            self._owned = True
        self.priority = priority
        self._before: list[Stream] = []

    @classmethod
    def _wrap(cls, device: device, address: int) -> Stream:
        return _alive.get((device.type, device.index or 0, address)) or cls(device, stream_ptr=address)

    @property
    def device_index(self) -> int:
        """The number of the stream's device."""
        return self.device.index or 0

    @property
    def device_type(self) -> str:
        """The type of the stream's device."""
        return self.device.type

    @property
    def native_handle(self) -> int:
        """The address of the stream, as the vendor's libraries take it."""
        return self.stream_id

    def query(self) -> bool:
        """Tell whether everything queued is done."""
        return _C.stream_query(self.device, self.stream_id)

    def synchronize(self) -> None:
        """Wait until everything queued is done."""
        _C.stream_synchronize(self.device, self.stream_id)

    def record_event(self, event: Event | None = None) -> Event:
        """Put an event, or a new one, behind what is queued, and return it."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Have what is queued from now on wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Have what is queued from now on wait for what is queued on another stream now."""
        self.wait_event(stream.record_event())

    def record_memory(self, tensor: Tensor) -> None:
        """Say that the stream uses a tensor's memory, which is not given to others before what is queued now is done.

        ``Tensor.record_stream`` calls this.

        Raises
        ------
        RuntimeError
            When the tensor is on another device.
        """
        if tensor.device != self.device:
            raise RuntimeError(f"record_stream(): the tensor is on {tensor.device}, the stream is one of {self.device}")
        _C.record_stream(tensor.untyped_storage(), self.stream_id)

    def __enter__(self) -> Stream:
        self._before.append(current_stream(self.device))
        set_stream(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        set_stream(self._before.pop())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device, self.stream_id) == (other.device, other.stream_id)

    def __hash__(self) -> int:
        return hash((self.device, self.stream_id))

    def __repr__(self) -> str:
        return f"candelabra.Stream device_type={self.device.type}, device_index={self.device_index}, stream_id={self.stream_id}"

    # The interpreter takes the module's names away before its objects: what is asked then is an argument.
    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if getattr(self, "_owned", False) and not is_finalizing():
            # Somebody may have left it current on this thread; its work is done by whoever gets it next.
            if _C.current_stream(self.device) == self.stream_id:
                _C.set_current_stream(self.device, 0)
            _C.stream_destroy(self.device, self.stream_id)


class Event:
    """A place in the work of a stream, which others wait for, and the time at which it was reached.

    Parameters
    ----------
    device : device, str or int, optional
        The current device by default.
    enable_timing : bool
        Whether `elapsed_time` is to be asked for.
    blocking : bool
        Whether who waits sleeps meanwhile.
    interprocess : bool
        Whether other processes can open it.
    """

    _device_type: str | None = None

    def __init__(
        self, device: Any = None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self.device = resolve(device, self._device_type)
        self.enable_timing = bool(enable_timing)
        flags = int(self.enable_timing) | (2 if blocking else 0) | (4 if interprocess else 0)
        self.event_id: int = _C.event_create(self.device, flags)
        self._recorded = False

    def record(self, stream: Stream | None = None) -> None:
        """Put the event behind what is queued on a stream, by default the current one of the event's device."""
        stream = current_stream(self.device) if stream is None else stream
        if stream.device != self.device:
            raise RuntimeError(f"Event device {self.device} does not match recording stream's device {stream.device}.")
        _C.event_record(self.device, self.event_id, stream.stream_id)
        self._recorded = True

    def wait(self, stream: Stream | None = None) -> None:
        """Have what is queued on a stream from now on, by default the current one, wait for the event."""
        stream = current_stream(self.device) if stream is None else stream
        if self._recorded:
            _C.event_wait(stream.device, self.event_id, stream.stream_id)

    def query(self) -> bool:
        """Tell whether the event was reached; an event that was not recorded counts as reached."""
        return not self._recorded or _C.event_query(self.device, self.event_id)

    def synchronize(self) -> None:
        """Wait until the event is reached."""
        if self._recorded:
            _C.event_synchronize(self.device, self.event_id)

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this event to another.

        Raises
        ------
        ValueError
            When one of them was made without ``enable_timing`` or not recorded.
        """
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self._recorded and end_event._recorded):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return _C.event_elapsed(self.device, self.event_id, end_event.event_id)

    def ipc_handle(self) -> bytes:
        """Return what another process opens the event by; for events made with ``interprocess=True``."""
        return _C.ipc_export_event(self.device, self.event_id)

    def __repr__(self) -> str:
        return f"candelabra.Event device_type={self.device.type}, device_index={self.device.index or 0}, event_id={self.event_id}"

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if getattr(self, "event_id", 0) and not is_finalizing():
            _C.event_destroy(self.device, self.event_id)


# Streams that are current somewhere, so that current_stream() gives the object that set_stream() was given.
_alive: dict[tuple[str, int, int], Stream] = {}


def current_stream(device: Device | int = None) -> Stream:
    """Return this thread's current stream of a device; operators queue their work there.

    Parameters
    ----------
    device : device, str or int, optional
        The current device by default.
    """
    where = device if isinstance(device, _C.device) else resolve(device)
    return Stream._wrap(where, _C.current_stream(where))


def default_stream(device: Device | int = None) -> Stream:
    """Return the stream that is current where no other was set."""
    where = device if isinstance(device, _C.device) else resolve(device)
    return Stream._wrap(where, 0)


def set_stream(stream: Stream) -> None:
    """Make a stream this thread's current one of its device, and its device the current one."""
    _C.set_current_stream(stream.device, stream.stream_id)
    if stream._owned:
        # One reference for as long as it may be current; the number of streams is small.
        _alive[stream.device.type, stream.device_index, stream.stream_id] = stream
    _C.set_current_index(stream.device)


class StreamContext:
    """Makes a stream the current one inside of a ``with``; what `stream` returns. None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: list[tuple[Stream, device]] = []

    def __enter__(self) -> Stream | None:
        if self.stream is not None:
            where = self.stream.device
            self._before.append((current_stream(where), _C.device(where.type, current_index(where.type))))
            set_stream(self.stream)
        return self.stream

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.stream is not None:
            before, where = self._before.pop()
            set_stream(before)
            _C.set_current_index(where)


def stream(stream: Stream | None) -> StreamContext:
    """Return a context in which a stream is the current one."""
    return StreamContext(stream)


# ---- memory


def memory_stats(device: Device | int = None) -> dict[str, int]:
    """Return the figures of a device's allocator.

    Returns
    -------
    dict
        ``"allocated_bytes.all.current"``, ``".peak"``, ``".allocated"``, ``".freed"``, the same of ``reserved_bytes``,
        ``active_bytes``, ``requested_bytes``, ``inactive_split_bytes``, ``allocation``, ``segment``, ``active`` and
        ``inactive_split``, and counts such as ``num_alloc_retries``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.accelerator.use("cpu")
    >>> candelabra.accelerator.memory_stats()["allocated_bytes.all.current"] >= 0
    True
    >>> candelabra.accelerator.use(None)
    """
    return _C.memory_details(resolve(device))


def memory_allocated(device: Device | int = None) -> int:
    """Return the bytes that tensors of a device take."""
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: Device | int = None) -> int:
    """Return the most bytes that tensors of a device have taken since the start or `reset_peak_memory_stats`."""
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: Device | int = None) -> int:
    """Return the bytes that the allocator of a device holds from the system."""
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device: Device | int = None) -> int:
    """Return the most bytes that the allocator of a device has held since the start or `reset_peak_memory_stats`."""
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: Device | int = None) -> None:
    """Start the peaks of a device's allocator anew."""
    _C.reset_peak_statistics(resolve(device))


def reset_accumulated_memory_stats(device: Device | int = None) -> None:
    """Start the totals of a device's allocator anew."""
    _C.reset_memory_totals(resolve(device))


def empty_cache(device: Device | int = None) -> None:
    """Give memory that the allocator holds and nobody uses back to the system."""
    where = resolve(device)
    _C.empty_cache(where)
    _C.empty_pinned_cache(where)


def get_memory_info(device: Device | int = None) -> tuple[int, int]:
    """Return the free and the total memory of a device in bytes, whoever uses it."""
    return _C.memory_info(resolve(device))


def set_memory_fraction(fraction: float, device: Device | int = None) -> None:
    """Let this process have no more than a part of a device's memory.

    Parameters
    ----------
    fraction : float
        Of the whole, from 0 to 1.
    device : device, str or int, optional
        The current device by default.

    Raises
    ------
    TypeError
        When the fraction is no float.
    ValueError
        When it is not between 0 and 1.
    """
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    where = resolve(device)
    _C.set_memory_limit(where, int(fraction * _C.memory_info(where)[1]))


def memory_snapshot(device: Device | int = None) -> list[dict[str, Any]]:
    """Return the segments of a device's allocator, each with its blocks.

    Returns
    -------
    list of dict
        ``address``, ``total_size``, ``stream``, ``segment_type``, ``allocated_size``, ``active_size``, ``requested_size`` and ``blocks``: each
        ``address``, ``size``, ``requested_size`` and ``state`` (``active_allocated``, ``active_pending_free`` or ``inactive``).

    Raises
    ------
    NotImplementedError
        When the backend does not tell.
    """
    segments: dict[int, dict[str, Any]] = {}
    for block in _C.memory_snapshot(resolve(device)):
        segment = segments.setdefault(
            block["segment_address"],
            {
                "device": block["device"], "address": block["segment_address"], "total_size": block["segment_size"],
                "stream": block["stream"], "segment_type": "large" if block["is_large"] else "small",
                "segment_pool_id": (block["pool"], 0), "is_expandable": block["is_expandable"], "allocated_size": 0, "active_size": 0,
                "requested_size": 0, "blocks": [],
            },
        )  # fmt: skip
        if block["state"] == "active_allocated":
            segment["allocated_size"] += block["size"]
            segment["requested_size"] += block["requested_size"]
        if block["state"] != "inactive":
            segment["active_size"] += block["size"]
        segment["blocks"].append({name: block[name] for name in ("address", "size", "requested_size", "state")})
    return sorted(segments.values(), key=lambda segment: segment["address"])


def _in_words(count: float) -> str:
    for unit in ("B  ", "KiB", "MiB"):
        if abs(count) < 10240:
            return f"{int(count):7d} {unit}"
        count /= 1024
    return f"{int(count):7d} GiB"


_SUMMARY = (
    ("Allocated memory", "allocated_bytes", True), ("Active memory", "active_bytes", True), ("Requested memory", "requested_bytes", True),
    ("Reserved memory", "reserved_bytes", True), ("Non-releasable memory", "inactive_split_bytes", True),
    ("Allocations", "allocation", False), ("Active allocs", "active", False), ("Reserved segments", "segment", False),
    ("Non-releasable allocs", "inactive_split", False),
)  # fmt: skip


def memory_summary(device: Device | int = None, abbreviated: bool = False) -> str:
    """Return the figures of a device's allocator as a table.

    Parameters
    ----------
    device : device, str or int, optional
        The current device by default.
    abbreviated : bool
        Without the counts.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.accelerator.use("cpu")
    >>> "Allocated memory" in candelabra.accelerator.memory_summary()
    True
    >>> candelabra.accelerator.use(None)
    """
    where = resolve(device)
    stats = _C.memory_details(where)
    width = 75
    title = f"memory of {where.type}:{where.index or 0}"
    lines = ["=" * width, f"|{title:^{width - 2}}|", "-" * width]
    failures, retries = f" out of memory: {stats['num_ooms']}", f" retries: {stats['num_alloc_retries']}"
    lines.append(f"|{failures:<36}|{retries:<36}|")
    lines += ["=" * width, f"| {'':<23}|{'now':^12}|{'peak':^12}|{'allocated':^12}|{'freed':^10}|", "-" * width]
    for title, name, is_bytes in _SUMMARY:
        if abbreviated and not is_bytes:
            continue
        shown = [stats[f"{name}.all.{column}"] for column in ("current", "peak", "allocated", "freed")]
        cells = [_in_words(value) if is_bytes else f"{value:7d}    " for value in shown]
        lines.append(f"| {title:<23}|{cells[0]:^12}|{cells[1]:^12}|{cells[2]:^12}|{cells[3]:^10}|")
    lines.append("=" * width)
    return "\n".join(lines)


# ---- methods of tensors


def pinned_copy(tensor: Tensor, device: Any = None) -> Tensor:
    """Return the tensor in pinned host memory; itself where it is there already. ``Tensor.pin_memory`` calls this."""
    import candelabra

    if _C.backend_info(tensor.device)["capabilities"] & _HOST_MEMORY == 0:
        raise RuntimeError(f"cannot pin '{tensor.type()}' only dense CPU tensors can be pinned")
    where = resolve(device)
    if _C.is_pinned(tensor.untyped_storage(), where):
        return tensor
    source = tensor.contiguous()
    storage = _C.pinned_storage(where, source.numel() * source.element_size())
    result = _C.tensor_on_storage(storage, source.dtype).view(source.shape) if source.numel() else candelabra.empty_like(source)
    return result.copy_(source)


def each_device() -> Iterator[device]:
    """Yield the devices of the accelerator."""
    for index in range(device_count()):
        yield _C.device(_accelerator(), index)
