"""Time workloads: all sides in one process, in turn, over several rounds."""

from __future__ import annotations

import contextlib
import gc
import itertools
import statistics
import time
from dataclasses import dataclass, field
from typing import Any

from .workload import Work, Workload, result_bytes, tensors

#: Seconds that a side runs untimed before each timed stretch, because the other side has used the
#: caches and thread pools.
SETTLING = 0.002
#: Longer calls need no such warm-up.
LONG_CALL = 0.02
#: The rounds of a workload with long calls end after these seconds, but not before the third.
LONGEST = 2.5
#: A workload is measured again if a side's slowest round over its fastest exceeds this ratio.
DISTURBED = 1.5


@dataclass
class Timing:
    """Medians and all times of one workload in seconds per call, and the bytes of its results."""

    workload: Workload
    times: list[list[float]]
    written: float
    again: float

    @property
    def medians(self) -> list[float]:
        """Return each side's median."""
        return [statistics.median(times) for times in self.times]

    @property
    def ratio(self) -> float:
        """Return our median over the next side's."""
        ours, theirs = self.medians[:2]
        return ours / theirs

    @property
    def is_disturbed(self) -> bool:
        """Return whether a side's rounds differ so much that other load must have disturbed the
        machine.
        """
        return any(max(times) > DISTURBED * min(times) for times in self.times)

    def add(self, again: Timing) -> None:
        """Add the rounds of another measurement."""
        for times, more in zip(self.times, again.times, strict=True):
            times += more


@dataclass
class Side:
    """A framework's work, and the number of calls per stretch."""

    xp: Any
    work: Work
    count: int = 1
    settling: int = 1
    times: list[float] = field(default_factory=list)


def stretch(work: Work, count: int) -> float:
    """Return the seconds per call, averaged over `count` calls."""
    start = time.perf_counter()
    for _ in itertools.repeat(None, count):
        work()
    return (time.perf_counter() - start) / count


def warm_up(side: Side, seconds: float) -> float:
    """Call the work for about this long, set the counts, and return the seconds per call."""
    side.work()
    once = stretch(side.work, 1)
    count = 1
    while once * count < seconds / 2:
        count = min(2 * count, max(1, int(seconds / max(once, 1e-8))) + 1)
        once = stretch(side.work, count)
        if once * count >= seconds / 2:
            break
    side.count = max(1, round(seconds / once))
    side.settling = 0 if once > LONG_CALL else max(1, min(side.count, round(SETTLING / once)))
    return once


def recorded(xp: Any, recording: bool) -> contextlib.AbstractContextManager[Any]:
    """Return a context that turns grad mode on or off."""
    return contextlib.nullcontext() if recording else xp.no_grad()


def thread_counts(libraries: list[Any]) -> list[int]:
    """Return the thread counts of the libraries that report one."""
    return [xp.get_num_threads() for xp in libraries if hasattr(xp, "get_num_threads")]


def measure(
    workload: Workload, libraries: list[Any], rounds: int, seconds: float, makes: list[Any] | None = None
) -> Timing:
    """Time a workload for each library. The first is ours. `makes` are for libraries that need
    their own implementation.
    """
    builders = makes or [workload.make] * len(libraries)
    counts = thread_counts(libraries)
    sides = [Side(xp, build(xp)) for xp, build in zip(libraries, builders, strict=True)]
    with recorded(libraries[0], workload.recording):
        result = sides[0].work()
    written, again = float(result_bytes(result)), float(result_bytes(tensors(result)[:1]))
    del result
    gc.collect()
    gc.disable()
    try:
        longest = 0.0
        for side in sides:
            with recorded(side.xp, workload.recording):
                longest += warm_up(side, seconds) * side.count
        done = max(3, min(rounds, int(LONGEST / max(longest, 1e-9))))
        for number in range(done):
            for side in sides if number % 2 == 0 else reversed(sides):
                with recorded(side.xp, workload.recording):
                    for _ in itertools.repeat(None, side.settling):
                        side.work()
                    side.times.append(stretch(side.work, side.count))
    finally:
        gc.enable()
    # The libraries may share one libgomp. A side that leaves another thread count there slows the
    # other side.
    if thread_counts(libraries) != counts:
        raise RuntimeError(
            f"{workload.full_name}: threads of the sides were {counts} before, and are {thread_counts(libraries)} after it"
        )
    return Timing(workload, [side.times for side in sides], written, again)


def moved(timing: Timing) -> tuple[float, float]:
    """Return the minimum of bytes that a workload reads and writes."""
    workload = timing.workload
    written = timing.written if workload.written is None else workload.written
    read = workload.read or 0.0
    if workload.backward and workload.written is None:
        read += timing.again
    return read, written
