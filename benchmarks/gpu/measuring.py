"""Time workloads on a device with events on its stream, both frameworks in one process, in turn."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .workloads import GPUWorkload

#: Seconds per stretch, stretches per side, and the maximum number of calls per stretch.
SECONDS, ROUNDS, MOST = 0.1, 5, 2000


@dataclass
class Measured:
    """Medians of one workload for each side: seconds per call, and peak bytes of tensors."""

    workload: GPUWorkload
    seconds: list[float] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)

    @property
    def ratio(self) -> float | None:
        """Return our time over PyTorch's, or None without PyTorch."""
        return self.seconds[0] / self.seconds[1] if len(self.seconds) > 1 else None

    @property
    def peak_ratio(self) -> float | None:
        """Return our peak memory over PyTorch's, or None without PyTorch."""
        return self.peaks[0] / self.peaks[1] if len(self.peaks) > 1 and self.peaks[1] else None


def on_device(xp: Any, work: Callable[[], Any], count: int) -> float:
    """Return the device's seconds per call, averaged over `count` calls."""
    start, end = xp.cuda.Event(enable_timing=True), xp.cuda.Event(enable_timing=True)
    xp.cuda.synchronize()
    start.record()
    for _ in range(count):
        work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / count


def on_host(xp: Any, work: Callable[[], Any], count: int) -> float:
    """Return the host's seconds to queue one call. It queues at most 500 at once, fewer than the
    device's queue holds.
    """
    total = 0.0
    for _ in range(max(1, count // 500)):
        xp.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(min(count, 500)):
            work()
        total += time.perf_counter() - start
    xp.cuda.synchronize()
    return total / (max(1, count // 500) * min(count, 500))


def set_up(xp: Any, workload: GPUWorkload, device: str, tiny: bool) -> Callable[[], Any]:
    """Build one side's work and run it twice, which loads libraries and selects algorithms."""
    xp.manual_seed(0)
    xp.backends.cuda.matmul.allow_tf32 = workload.tf32
    work = workload.make(xp, device, tiny)
    for _ in range(1 if tiny else 3):
        work()
    xp.cuda.synchronize()
    return work


def measure(workload: GPUWorkload, libraries: list[Any], device: str, tiny: bool) -> Measured:
    """Time a workload for each library. The first is ours."""
    result = Measured(workload)
    timed = on_host if workload.kind == "launch" else on_device
    works = []
    for xp in libraries:
        # Run one side at a time, so that each peak is separate.
        xp.cuda.empty_cache()
        xp.cuda.reset_peak_memory_stats()
        before = xp.cuda.memory_allocated()
        works.append(set_up(xp, workload, device, tiny))
        result.peaks.append(xp.cuda.max_memory_allocated() - before)
    counts = []
    for xp, work in zip(libraries, works, strict=True):
        once = timed(xp, work, 1)
        counts.append(1 if tiny else max(1, min(MOST, round(SECONDS / max(once, 1e-7)))))
    times: list[list[float]] = [[] for _ in libraries]
    gc.collect()
    gc.disable()
    try:
        for number in range(1 if tiny else ROUNDS):
            order = range(len(libraries)) if number % 2 == 0 else reversed(range(len(libraries)))
            for side in order:
                libraries[side].backends.cuda.matmul.allow_tf32 = workload.tf32
                times[side].append(timed(libraries[side], works[side], counts[side]))
    finally:
        gc.enable()
    result.seconds = [statistics.median(each) for each in times]
    return result
