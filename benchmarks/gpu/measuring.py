"""How a workload is timed on a device: by events on its stream, both frameworks in one process, in
turn.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .workloads import GPUWorkload

#: Seconds of one stretch, stretches of each side, and calls in a stretch at most.
SECONDS, ROUNDS, MOST = 0.1, 5, 2000


@dataclass
class Measured:
    """Medians of one workload: seconds of a call, and the most bytes that tensors took; of each
    side.
    """

    workload: GPUWorkload
    seconds: list[float] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)

    @property
    def ratio(self) -> float | None:
        """Ours over PyTorch's; None without it."""
        return self.seconds[0] / self.seconds[1] if len(self.seconds) > 1 else None

    @property
    def peak_ratio(self) -> float | None:
        """The same of memory."""
        return self.peaks[0] / self.peaks[1] if len(self.peaks) > 1 and self.peaks[1] else None


def on_device(xp: Any, work: Callable[[], Any], count: int) -> float:
    """Seconds of one call, over so many, from when the device begins the first to when it is done
    with the last.
    """
    start, end = xp.cuda.Event(enable_timing=True), xp.cuda.Event(enable_timing=True)
    xp.cuda.synchronize()
    start.record()
    for _ in range(count):
        work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / count


def on_host(xp: Any, work: Callable[[], Any], count: int) -> float:
    """Seconds that the host takes to queue one call; fewer than what a device's queue holds are
    queued at once.
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
    """The work for one side, run twice: libraries are loaded and algorithms chosen."""
    xp.manual_seed(0)
    xp.backends.cuda.matmul.allow_tf32 = workload.tf32
    work = workload.make(xp, device, tiny)
    for _ in range(1 if tiny else 3):
        work()
    xp.cuda.synchronize()
    return work


def measure(workload: GPUWorkload, libraries: list[Any], device: str, tiny: bool) -> Measured:
    """Time a workload for each library; the first is ours."""
    result = Measured(workload)
    timed = on_host if workload.kind == "launch" else on_device
    works = []
    for xp in libraries:
        # One at a time, so that each side's peak is its own.
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
