"""The memory of CUDA's devices."""

from __future__ import annotations

from candelabra import _C, accelerator

from .devices import device_count, is_available, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra.types import Device


def memory_stats(device: Device | int = None) -> dict[str, int]:
    """Return the figures of a GPU's allocator; see `candelabra.accelerator.memory_stats`. Empty where there is no GPU."""
    return accelerator.memory_stats(resolve(device)) if is_available() else {}


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
    accelerator.reset_peak_memory_stats(resolve(device))


def reset_accumulated_memory_stats(device: Device | int = None) -> None:
    """Start the totals of a GPU's allocator anew."""
    accelerator.reset_accumulated_memory_stats(resolve(device))


def memory_summary(device: Device | int = None, abbreviated: bool = False) -> str:
    """Return the figures of a GPU's allocator as a table."""
    return accelerator.memory_summary(resolve(device), abbreviated)


def memory_snapshot(device: Device | int = None) -> list[dict[str, Any]]:
    """Return the segments of the allocators of all GPUs, or of one, each with its blocks; see `candelabra.accelerator.memory_snapshot`."""
    if device is not None:
        return accelerator.memory_snapshot(resolve(device))
    return [segment for index in range(device_count()) for segment in accelerator.memory_snapshot(resolve(index))]


def empty_cache() -> None:
    """Give memory that allocators hold and nobody uses back, of all GPUs; nothing where there is none.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.empty_cache()
    """
    for index in range(device_count()):
        accelerator.empty_cache(resolve(index))


def mem_get_info(device: Device | int = None) -> tuple[int, int]:
    """Return the free and the total memory of a GPU in bytes, whoever uses it."""
    return _C.memory_info(resolve(device))


def set_per_process_memory_fraction(fraction: float, device: Device | int = None) -> None:
    """Let this process have no more than a part of a GPU's memory.

    Parameters
    ----------
    fraction : float
        Of the whole, from 0 to 1.
    device : device, str or int, optional
        The current GPU by default.
    """
    accelerator.set_memory_fraction(fraction, resolve(device))
