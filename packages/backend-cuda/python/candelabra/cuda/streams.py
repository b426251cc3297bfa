"""Streams and events of CUDA."""

from __future__ import annotations

from candelabra import _C, accelerator
from candelabra.accelerator import StreamContext

from .devices import TYPE, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra.types import Device


class Stream(accelerator.Stream):
    """A queue of work of a GPU, done in the order in which it is queued.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU by default.
    priority : int
        Lower numbers come first.
    """

    _device_type = TYPE

    @property
    def cuda_stream(self) -> int:
        """The ``cudaStream_t``."""
        return self.stream_id

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Return the least and the greatest priority."""
        return _C.stream_priorities(resolve())

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


def get_stream_from_external(data_ptr: int, device: Device | int = None) -> Stream:
    """Return a stream that somebody else made, by its address; see `ExternalStream`."""
    return ExternalStream(data_ptr, device)


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

    _device_type = TYPE

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        super().__init__(None, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)

    @classmethod
    def from_ipc_handle(cls, device: Device | int, handle: bytes) -> Event:
        """Open an event of another process by what its `ipc_handle` returned."""
        event = cls.__new__(cls)
        event.device = resolve(device)
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
    return _stream_of(accelerator.current_stream(resolve(device)))


def default_stream(device: Device | int = None) -> Stream:
    """Return the stream that is current where no other was set."""
    return _stream_of(accelerator.default_stream(resolve(device)))


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
