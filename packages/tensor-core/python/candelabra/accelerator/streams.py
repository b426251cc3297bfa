"""Streams and events of an accelerator."""

from __future__ import annotations

import sys

from candelabra import _C

from .devices import current_index, is_available, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

    from candelabra._C import Tensor, device
    from candelabra.types import Device


class Stream:
    """A queue of work on one device, executed in order. Work on different streams may overlap.

    Parameters
    ----------
    device : device, str or int, optional
        The current device by default; the CPU without an accelerator.
    priority : int
        Lower numbers have a higher priority. Clamped to the range that the device supports.

    Raises
    ------
    NotImplementedError
        If the backend does not support streams.

    Examples
    --------
    >>> import candelabra
    >>> if candelabra.accelerator.is_available():
    ...     side = candelabra.accelerator.Stream()
    ...     with side:
    ...         x = candelabra.ones(3, device=side.device)
    ...     side.synchronize()
    """

    #: The device type that an integer `device` refers to; None for the accelerator's.
    _device_type: str | None = None

    def __init__(self, device: Any = None, priority: int = 0, **others: Any) -> None:
        if "stream_ptr" in others:
            self.device = resolve(device, self._device_type)
            self.stream_id: int = others["stream_ptr"]
            self._owned = False
        elif others:
            raise TypeError(f"{type(self).__name__}() got unexpected arguments: {', '.join(others)}")
        else:
            on_host = device is None and self._device_type is None and not is_available()
            # Without an accelerator the only stream is the CPU's, where work is done at once.
            self.device = _C.device("cpu") if on_host else resolve(device, self._device_type)
            self.stream_id = 0 if on_host else _C.stream_create(self.device, priority)
            self._owned = not on_host
        self.priority = priority
        self._before: list[Stream] = []

    @classmethod
    def _wrap(cls, device: device, address: int) -> Stream:
        return _alive.get((device.type, device.index or 0, address)) or cls(device, stream_ptr=address)

    @property
    def device_index(self) -> int:
        """The index of the stream's device."""
        return self.device.index or 0

    @property
    def device_type(self) -> str:
        """The type of the stream's device."""
        return self.device.type

    @property
    def native_handle(self) -> int:
        """The stream's address for the vendor's libraries."""
        return self.stream_id

    def query(self) -> bool:
        """Return whether all queued work is done."""
        return self.device.type == "cpu" or _C.stream_query(self.device, self.stream_id)

    def synchronize(self) -> None:
        """Wait until all queued work is done."""
        if self.device.type != "cpu":
            _C.stream_synchronize(self.device, self.stream_id)

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, by default a new one, behind the queued work, and return it."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Make work queued from now on wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Make work queued from now on wait for the work now queued on another stream."""
        self.wait_event(stream.record_event())

    def record_memory(self, tensor: Tensor) -> None:
        """Mark a tensor's memory as used by this stream. The allocator does not reuse it before the
        work queued now is done. ``Tensor.record_stream`` calls this.

        ``Tensor.record_stream`` calls this.

        Raises
        ------
        RuntimeError
            If the tensor is on another device.
        """
        if tensor.device != self.device:
            raise RuntimeError(f"record_stream(): the tensor is on {tensor.device}, the stream is one of {self.device}")
        _C.record_stream(tensor.untyped_storage(), self.stream_id)

    def __enter__(self) -> Stream:
        self._before.append(current_stream(self.device))
        set_stream(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        set_stream(self._before.pop())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device, self.stream_id) == (other.device, other.stream_id)

    def __hash__(self) -> int:
        return hash((self.device, self.stream_id))

    def __repr__(self) -> str:
        return f"candelabra.Stream device_type={self.device.type}, device_index={self.device_index}, stream_id={self.stream_id}"

    # At interpreter exit the module's globals are cleared before its objects, so the functions are
    # default arguments.
    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if getattr(self, "_owned", False) and not is_finalizing():
            # The stream may still be current on this thread; whoever gets it next waits for its
            # work.
            if _C.current_stream(self.device) == self.stream_id:
                _C.set_current_stream(self.device, 0)
            _C.stream_destroy(self.device, self.stream_id)


class Event:
    """A marker in the work of a stream, which other streams can wait for, and which can record the
    time.

    Parameters
    ----------
    device : device, str or int, optional
        The current device by default.
    enable_timing : bool
        Whether the event records the time, for `elapsed_time`.
    blocking : bool
        Whether `synchronize` sleeps instead of polling.
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
        """Record the event behind the work queued on a stream, by default the current one of the
        event's device.
        """
        stream = current_stream(self.device) if stream is None else stream
        if stream.device != self.device:
            raise RuntimeError(f"Event device {self.device} does not match recording stream's device {stream.device}.")
        _C.event_record(self.device, self.event_id, stream.stream_id)
        self._recorded = True

    def wait(self, stream: Stream | None = None) -> None:
        """Make work queued from now on on a stream, by default the current one, wait for the
        event.
        """
        stream = current_stream(self.device) if stream is None else stream
        if stream.device.type != self.device.type:
            raise RuntimeError(
                f"a stream of {stream.device} cannot wait for an event of {self.device}: wait on the host by synchronize()"
            )
        if self._recorded:
            _C.event_wait(stream.device, self.event_id, stream.stream_id)

    def query(self) -> bool:
        """Return whether the event was reached. True for an event that was never recorded."""
        return not self._recorded or _C.event_query(self.device, self.event_id)

    def synchronize(self) -> None:
        """Wait until the event is reached."""
        if self._recorded:
            _C.event_synchronize(self.device, self.event_id)

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds between this event and another.

        Raises
        ------
        ValueError
            If one of them was created without ``enable_timing`` or was not recorded.
        """
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self._recorded and end_event._recorded):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return _C.event_elapsed(self.device, self.event_id, end_event.event_id)

    def ipc_handle(self) -> bytes:
        """Return the handle by which another process opens the event. Requires
        ``interprocess=True``.
        """
        return _C.ipc_export_event(self.device, self.event_id)

    def __repr__(self) -> str:
        return f"candelabra.Event device_type={self.device.type}, device_index={self.device.index or 0}, event_id={self.event_id}"

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if getattr(self, "event_id", 0) and not is_finalizing():
            _C.event_destroy(self.device, self.event_id)


# Streams that are current on some thread, so that current_stream() returns the object that
# set_stream() got.
_alive: dict[tuple[str, int, int], Stream] = {}


def current_stream(device: Device | int = None) -> Stream:
    """Return this thread's current stream of a device, on which operators queue their work.

    Parameters
    ----------
    device : device, str or int, optional
        The current device by default.
    """
    where = device if isinstance(device, _C.device) else resolve(device)
    return Stream._wrap(where, _C.current_stream(where))


def default_stream(device: Device | int = None) -> Stream:
    """Return the default stream of a device."""
    where = device if isinstance(device, _C.device) else resolve(device)
    return Stream._wrap(where, 0)


def set_stream(stream: Stream) -> None:
    """Set this thread's current stream of its device, and the current device."""
    _C.set_current_stream(stream.device, stream.stream_id)
    if stream._owned:
        # Kept alive as long as it may be current; the number of streams is small.
        _alive[stream.device.type, stream.device_index, stream.stream_id] = stream
    _C.set_current_index(stream.device)


class StreamContext:
    """Context manager that sets the current stream; the result of `stream`. None changes
    nothing.
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: list[tuple[Stream, device]] = []

    def __enter__(self) -> Stream | None:
        if self.stream is not None:
            where = self.stream.device
            self._before.append((current_stream(where), _C.device(where.type, current_index(where.type))))
            set_stream(self.stream)
        return self.stream

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.stream is not None:
            before, where = self._before.pop()
            set_stream(before)
            _C.set_current_index(where)


def stream(stream: Stream | None) -> StreamContext:
    """Return a context manager that sets the current stream."""
    return StreamContext(stream)
