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
    "Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count", "get_capabilities", "is_available", "is_initialized", "set_device", "stream",
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


class Event:
    """An event for programs that require one: all work before it is done when it is recorded.

    Parameters
    ----------
    enable_timing : bool
        Ignored.

    Examples
    --------
    >>> import candelabra
    >>> event = candelabra.cpu.Event()
    >>> event.record()
    >>> event.query()
    True
    """

    def __init__(self, enable_timing: bool = False) -> None:
        self.enable_timing = enable_timing

    def query(self) -> bool:
        """Return True: all work is done."""
        return True

    def record(self, stream: Any = None) -> None:
        """Do nothing: all work is done."""

    def synchronize(self) -> None:
        """Do nothing: all work is done."""

    def wait(self, stream: Any = None) -> None:
        """Do nothing: all work is done."""


class StreamContext(nullcontext):  # type: ignore[type-arg]
    """A context manager that does nothing, for programs that set a stream."""


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
    return StreamContext(stream)


def get_capabilities() -> dict[str, Any]:
    """Return what the processor can do: its architecture, and its vector instructions by name.

    Examples
    --------
    >>> import candelabra
    >>> "architecture" in candelabra.cpu.get_capabilities()
    True
    """
    import platform
    from pathlib import Path

    info = Path("/proc/cpuinfo")
    flags = set(info.read_text().split()) if info.exists() else set()
    names = {
        "sse": "sse", "sse2": "sse2", "sse4_1": "sse4_1", "sse4_2": "sse4_2", "avx": "avx", "avx2": "avx2", "fma3": "fma", "f16c": "f16c",
        "avx512_f": "avx512f", "avx512_bw": "avx512bw", "avx512_dq": "avx512dq", "avx512_vl": "avx512vl", "avx512_vnni": "avx512_vnni",
        "avx512_bf16": "avx512_bf16", "amx_tile": "amx_tile", "amx_bf16": "amx_bf16", "amx_int8": "amx_int8",
    }  # fmt: skip
    found: dict[str, Any] = {name: flag in flags for name, flag in names.items()}
    return {"architecture": platform.machine(), **found}
