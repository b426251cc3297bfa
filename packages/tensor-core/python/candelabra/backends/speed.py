"""The speed of a device's kernels beside its own copies: the last lines of ``--verify``."""

from __future__ import annotations

import time

import candelabra
from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: Elements of a tensor: 64 MiB of float32, more than the caches of most devices.
ELEMENTS = 1 << 24
#: Seconds that one measurement takes at least.
PATIENCE = 0.2


def seconds(device: str, work: Callable[[], object]) -> float:
    """Return the least time of a call, with all work that it queues."""
    work()
    candelabra.backends.synchronize(device)
    best = float("inf")
    begin = time.perf_counter()
    while True:
        before = time.perf_counter()
        work()
        candelabra.backends.synchronize(device)
        now = time.perf_counter()
        best = min(best, now - before)
        if now - begin > PATIENCE:
            return best


def measure(device: str, elements: int = ELEMENTS) -> dict[str, float]:
    """Return bytes per second, read and written, of a device's copy and of some kernels.

    Parameters
    ----------
    device : str
        The device.
    elements : int
        Elements of each tensor.

    Returns
    -------
    dict
        By operation. ``"copy"`` is a copy of plain memory, by the device's own ``copy_within``; the
        others are left out if the device cannot compute them.

    Examples
    --------
    >>> from candelabra.backends import speed
    >>> speed.measure("cpu", 1000)["add"] > 0
    True
    """
    width = 1 << 10
    x = candelabra.ones(max(elements // width, 1), width, device=device)
    y, z = x.clone(), x.clone()
    size = x.numel() * x.element_size()
    transposed = candelabra.empty(width, x.shape[0], device=device).t()
    work: dict[str, tuple[int, Callable[[], object]]] = {
        "copy": (2 * size, lambda: y.copy_(x)),
        "fill_": (size, lambda: y.fill_(1.0)),
        "copy_ of a transposed matrix": (2 * size, lambda: y.copy_(transposed)),
        "add": (3 * size, lambda: candelabra.add(x, y, out=z)),
        "exp": (2 * size, lambda: candelabra.exp(x, out=z)),
        "sum": (size, lambda: candelabra.sum(x)),
    }
    found = {}
    for name, (moved, run) in work.items():
        try:
            found[name] = moved / seconds(device, run)
        except NotImplementedError:
            continue
    return found


def report(device: str, elements: int = ELEMENTS) -> list[str]:
    """Return the lines about a device's speed: each rate, beside that of its copy."""
    rates = measure(device, elements)
    copy = rates.get("copy")
    if copy is None:
        return [f"{device}: its speed was not measured, because it cannot copy float32"]
    megabytes = elements * _C.float32.itemsize >> 20
    lines = [f"speed with tensors of {megabytes} MiB (float32), read and written:"]
    for name, rate in rates.items():
        beside = "" if name == "copy" else f"  {rate / copy:6.0%} of a copy"
        lines.append(f"  {name:32} {rate / 1e9:8.2f} GB/s{beside}")
    return lines
