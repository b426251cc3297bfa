"""The device type ``cpu`` as PyTorch's module ``torch.cpu`` shows it, for programs that treat all
device types alike.
"""

from __future__ import annotations

from contextlib import nullcontext

from candelabra import _C, backends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

    from candelabra.types import Device

__all__ = [
    "Stream", "current_device", "current_stream", "device_count", "is_available", "is_initialized", "set_device", "stream",
    "synchronize",
]  # fmt: skip


class Stream:
    """A stream for programs that require one. Operators on the CPU are done when they return.

    Parameters
    ----------
    priority : int
        Ignored.
    """

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def synchronize(self) -> None:
        """Do nothing: all work is done."""

    def wait_stream(self, stream: Any) -> None:
        """Do nothing: all work is done."""

    def query(self) -> bool:
        """Return True: all work is done."""
        return True


_current = Stream()


def is_available() -> bool:
    """Return whether a backend of the CPU can be used.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cpu.is_available()
    True
    """
    return backends.is_available("cpu")


def is_initialized() -> bool:
    """Return whether the backend of the CPU is loaded.

    Examples
    --------
    >>> import candelabra
    >>> _ = candelabra.ones(1)
    >>> candelabra.cpu.is_initialized()
    True
    """
    return "cpu" in _C.loaded_device_types()


def device_count() -> int:
    """Return the number of CPU devices, 1.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cpu.device_count()
    1
    """
    return backends.device_count("cpu")


def current_device() -> str:
    """Return the name of the current device, ``"cpu"``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cpu.current_device()
    'cpu'
    """
    return "cpu"


def set_device(device: Device) -> None:
    """Do nothing: there is one device.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cpu.set_device("cpu")
    """


def synchronize(device: Device = None) -> None:
    """Wait until all work is done.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cpu.synchronize()
    """
    backends.synchronize("cpu")


def current_stream(device: Device = None) -> Stream:
    """Return the CPU's only stream.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cpu.current_stream().query()
    True
    """
    return _current


def stream(stream: Stream | None) -> AbstractContextManager[Any]:
    """Return a context manager that does nothing.

    Examples
    --------
    >>> import candelabra
    >>> with candelabra.cpu.stream(candelabra.cpu.Stream()):
    ...     x = candelabra.ones(1)
    """
    return nullcontext(stream)
