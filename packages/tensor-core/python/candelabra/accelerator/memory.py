"""The memory of an accelerator: statistics of its allocator, and pinned host memory."""

from __future__ import annotations

from candelabra import _C

from .devices import HOST_MEMORY, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor
    from candelabra.types import Device


def memory_stats(device: Device | int = None) -> dict[str, int]:
    """Return the statistics of a device's allocator.

    Returns
    -------
    dict
        ``"allocated_bytes.all.current"``, ``".peak"``, ``".allocated"``, ``".freed"``, the same of
        ``reserved_bytes``, ``active_bytes``, ``requested_bytes``, ``inactive_split_bytes``,
        ``allocation``, ``segment``, ``active`` and ``inactive_split``, and counts such as
        ``num_alloc_retries``.

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
    """Return the number of bytes in tensors of a device."""
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: Device | int = None) -> int:
    """Return the peak number of bytes in tensors of a device since the start or
    `reset_peak_memory_stats`.
    """
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: Device | int = None) -> int:
    """Return the number of bytes that the allocator of a device has reserved."""
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device: Device | int = None) -> int:
    """Return the peak number of bytes that the allocator of a device has reserved since the start
    or `reset_peak_memory_stats`.
    """
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: Device | int = None) -> None:
    """Reset the peak statistics of a device's allocator."""
    _C.reset_peak_statistics(resolve(device))


def reset_accumulated_memory_stats(device: Device | int = None) -> None:
    """Reset the accumulated statistics of a device's allocator."""
    _C.reset_memory_totals(resolve(device))


def empty_cache(device: Device | int = None) -> None:
    """Free the unused cached memory of a device's allocator."""
    where = resolve(device)
    _C.empty_cache(where)
    _C.empty_pinned_cache(where)


def empty_host_cache(device: Device | int = None) -> None:
    """Free the unused cached pinned memory of the host. `empty_cache` does so, too."""
    _C.empty_pinned_cache(resolve(device))


def get_memory_info(device: Device | int = None) -> tuple[int, int]:
    """Return the free and the total memory of a device in bytes, over all processes."""
    return _C.memory_info(resolve(device))


def set_memory_fraction(fraction: float, device: Device | int = None) -> None:
    """Limit this process to a fraction of a device's memory.

    Parameters
    ----------
    fraction : float
        The fraction, from 0 to 1.
    device : device, str or int, optional
        The current device by default.

    Raises
    ------
    TypeError
        If the fraction is not a float.
    ValueError
        If it is not between 0 and 1.
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
        ``address``, ``total_size``, ``stream``, ``segment_type``, ``allocated_size``,
        ``active_size``, ``requested_size`` and ``blocks``: each ``address``, ``size``,
        ``requested_size`` and ``state`` (``active_allocated``, ``active_pending_free`` or
        ``inactive``).

    Raises
    ------
    NotImplementedError
        If the backend does not support snapshots.
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
    """Return the statistics of a device's allocator as a table.

    Parameters
    ----------
    device : device, str or int, optional
        The current device by default.
    abbreviated : bool
        Whether to omit the counts.

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


def pinned_copy(tensor: Tensor, device: Any = None) -> Tensor:
    """Return a copy of the tensor in pinned host memory, or the tensor itself if its memory is
    pinned. ``Tensor.pin_memory`` calls this.
    """
    import candelabra

    if _C.backend_info(tensor.device)["capabilities"] & HOST_MEMORY == 0:
        raise RuntimeError(f"cannot pin '{tensor.type()}' only dense CPU tensors can be pinned")
    where = resolve(device)
    if _C.is_pinned(tensor.untyped_storage(), where):
        return tensor
    like = candelabra.empty_like(tensor.detach())  # room for its strides; untouched memory costs nothing
    if not like.numel():
        return like
    storage = _C.pinned_storage(where, like.numel() * like.element_size())
    return _C.tensor_on_storage(storage, like.dtype).as_strided(like.shape, like.stride()).copy_(tensor)
