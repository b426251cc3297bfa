"""The memory of CUDA's devices."""

from __future__ import annotations

from candelabra import _C, accelerator

from .devices import TYPE, device_count, is_available, is_initialized, resolve
from .pools import (
    MemPool,
    caching_allocator_alloc,
    caching_allocator_delete,
    caching_allocator_disabled,
    caching_allocator_enable,
    get_allocator_backend,
    use_mem_pool,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra.types import Device


__all__ = [
    "MemPool", "caching_allocator_alloc", "caching_allocator_delete", "caching_allocator_disabled", "caching_allocator_enable",
    "empty_cache", "get_allocator_backend", "get_per_process_memory_fraction", "host_memory_stats", "host_memory_stats_as_nested_dict",
    "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_cached",
    "memory_reserved", "memory_snapshot", "memory_stats", "memory_stats_as_nested_dict", "memory_summary",
    "reset_accumulated_host_memory_stats", "reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
    "reset_peak_host_memory_stats", "reset_peak_memory_stats", "set_per_process_memory_fraction", "use_mem_pool",
]  # fmt: skip


def memory_stats(device: Device | int = None) -> dict[str, int]:
    """Return the statistics of a GPU's allocator; see `candelabra.accelerator.memory_stats`. Empty
    where there is no GPU.
    """
    return accelerator.memory_stats(resolve(device)) if is_available() else {}


def _nested(flat: dict[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in flat.items():
        *folders, last = name.split(".")
        where = result
        for folder in folders:
            where = where.setdefault(folder, {})
        where[last] = value
    return result


def memory_stats_as_nested_dict(device: Device | int = None) -> dict[str, Any]:
    """Return what `memory_stats` does, with a dict for each part of a name:
    ``["allocated_bytes"]["all"]["peak"]``.
    """
    return _nested(memory_stats(device))


def host_memory_stats() -> dict[str, int]:
    """Return the statistics of the cache of pinned memory; empty where no GPU was used.

    Returns
    -------
    dict
        ``"allocations.current"``, ``".peak"``, ``".allocated"``, ``".freed"``: blocks that there
        are; the same of ``allocated_bytes``, of ``active_requests`` and ``active_bytes`` (those in
        use, by a program or a stream); ``num_host_alloc`` and ``num_host_free``: how often the
        driver was asked.

    Examples
    --------
    >>> import candelabra
    >>> stats = candelabra.cuda.host_memory_stats()
    """
    if not is_initialized() or not is_available():
        return {}
    told = _C.pinned_details(_C.device(TYPE, 0))
    pairs = (
        ("allocations", "segment"),
        ("allocated_bytes", "reserved_bytes"),
        ("active_requests", "active"),
        ("active_bytes", "active_bytes"),
    )
    result = {
        f"{name}.{kind}": told[f"{ours}.all.{kind}"]
        for name, ours in pairs
        for kind in ("current", "peak", "allocated", "freed")
    }
    return dict(
        sorted({**result, "num_host_alloc": told["num_device_alloc"], "num_host_free": told["num_device_free"]}.items())
    )


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Return what `host_memory_stats` does, with a dict for each part of a name."""
    return _nested(host_memory_stats())


def reset_peak_host_memory_stats() -> None:
    """Start the peaks of the cache of pinned memory anew."""
    _C.reset_pinned(resolve(0), False)


def reset_accumulated_host_memory_stats() -> None:
    """Start the totals of the cache of pinned memory anew."""
    _C.reset_pinned(resolve(0), True)


def _statistic(device: Any, name: str) -> int:
    return memory_stats(device).get(name, 0)


def memory_allocated(device: Device | int = None) -> int:
    """Return the bytes that tensors of a GPU take; 0 where there is none.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.memory_allocated() >= 0
    True
    """
    return _statistic(device, "allocated_bytes.all.current")


def max_memory_allocated(device: Device | int = None) -> int:
    """Return the most bytes that tensors of a GPU have taken since the start or
    `reset_peak_memory_stats`.
    """
    return _statistic(device, "allocated_bytes.all.peak")


def memory_reserved(device: Device | int = None) -> int:
    """Return the bytes that the allocator of a GPU holds."""
    return _statistic(device, "reserved_bytes.all.current")


def max_memory_reserved(device: Device | int = None) -> int:
    """Return the most bytes that the allocator of a GPU has held since the start or
    `reset_peak_memory_stats`.
    """
    return _statistic(device, "reserved_bytes.all.peak")


def reset_peak_memory_stats(device: Device | int = None) -> None:
    """Start the peaks of a GPU's allocator anew."""
    accelerator.reset_peak_memory_stats(resolve(device))


def reset_accumulated_memory_stats(device: Device | int = None) -> None:
    """Start the totals of a GPU's allocator anew."""
    accelerator.reset_accumulated_memory_stats(resolve(device))


def _reset_all(name: str, device: Any) -> None:
    _C.warn(
        f"candelabra.cuda.{name} now calls candelabra.cuda.reset_peak_memory_stats, which resets /all/ peak memory stats.",
        FutureWarning,
    )
    reset_peak_memory_stats(device)


def reset_max_memory_allocated(device: Device | int = None) -> None:
    """Start all peaks of a GPU's allocator anew; deprecated, `reset_peak_memory_stats` says so."""
    _reset_all("reset_max_memory_allocated", device)


def reset_max_memory_cached(device: Device | int = None) -> None:
    """Start all peaks of a GPU's allocator anew; deprecated, `reset_peak_memory_stats` says so."""
    _reset_all("reset_max_memory_cached", device)


def memory_cached(device: Device | int = None) -> int:
    """Return what `memory_reserved` does; deprecated."""
    _C.warn("candelabra.cuda.memory_cached has been renamed to candelabra.cuda.memory_reserved", FutureWarning)
    return memory_reserved(device)


def max_memory_cached(device: Device | int = None) -> int:
    """Return what `max_memory_reserved` does; deprecated."""
    _C.warn(
        "candelabra.cuda.max_memory_cached has been renamed to candelabra.cuda.max_memory_reserved",
        FutureWarning,
    )
    return max_memory_reserved(device)


def memory_summary(device: Device | int = None, abbreviated: bool = False) -> str:
    """Return the statistics of a GPU's allocator as a table."""
    return accelerator.memory_summary(resolve(device), abbreviated)


def memory_snapshot(device: Device | int = None) -> list[dict[str, Any]]:
    """Return the segments of the allocators of all GPUs, or of one, each with its blocks; see
    `candelabra.accelerator.memory_snapshot`.
    """
    if device is not None:
        return accelerator.memory_snapshot(resolve(device))
    return [segment for index in range(device_count()) for segment in accelerator.memory_snapshot(resolve(index))]


def empty_cache() -> None:
    """Give memory that allocators hold and nobody uses back, of all GPUs; nothing where there is
    none.

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


def get_per_process_memory_fraction(device: Device | int = None) -> float:
    """Return what part of a GPU's memory this process may have: 1.0 where
    `set_per_process_memory_fraction` was not called.
    """
    where = resolve(device)
    limit = _C.memory_details(where)["limit"]
    return 1.0 if limit < 0 else limit / _C.memory_info(where)[1]
