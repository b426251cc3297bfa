"""Describe the machine, and measure its limits at the start of a run: memory bandwidth and matrix
products.
"""

from __future__ import annotations

import itertools
import math
import os
import platform
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Bytes of the working sets whose bandwidth is measured: within the cores' caches, beyond them, and
#: in memory.
WORKING_SETS = [1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 29]
#: The share of bytes that each measurement writes.
WRITTEN_SHARE = {"read": 0.0, "triad": 1 / 3, "copy": 1 / 2, "fill": 1.0}
#: The same for in-place passes.
WRITTEN_SHARE_IN_PLACE = {"read": 0.0, "scale": 1 / 2, "fill": 1.0}
#: Shorter floors are meaningless, because the call itself takes as long.
SHORTEST_FLOOR = 10e-6


def processor() -> str:
    """Return the name of the processor."""
    with open("/proc/cpuinfo") as file:
        return next(
            (line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.processor()
        )


def caches() -> str:
    """Return the cache sizes of a core."""
    found = []
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        if (index / "type").read_text().strip() != "Instruction":
            found.append(f"L{(index / 'level').read_text().strip()} {(index / 'size').read_text().strip()}")
    return ", ".join(found)


def threads() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass
class Limits:
    """The measured limits of the machine.

    Attributes
    ----------
    seconds_per_byte
        By kind of pass and bytes of the working set.
    operations_per_second
        By dtype: the best of both frameworks in a large matrix product.
    """

    seconds_per_byte: dict[str, dict[int, float]] = field(default_factory=dict)
    operations_per_second: dict[str, float] = field(default_factory=dict)

    def bandwidth(self, kind: str, nbytes: int) -> float:
        """Return the bytes per second of a pass over a working set of about this size."""
        return 1 / self._per_byte(kind, nbytes)

    def _per_byte(self, kind: str, nbytes: float) -> float:
        measured = sorted(self.seconds_per_byte[kind].items())
        if nbytes <= measured[0][0]:
            return measured[0][1]
        for (small, fast), (large, slow) in itertools.pairwise(measured):
            if nbytes <= large:
                part = math.log(nbytes / small) / math.log(large / small)
                return fast + part * (slow - fast)
        return measured[-1][1]

    def memory_seconds(self, read: float, written: float, in_place: bool = False) -> float:
        """Return the minimum time to move these bytes, interpolated between the two measurements
        with the nearest shares of written bytes.
        """
        total = read + written
        if not self.seconds_per_byte or total <= 0:
            return 0.0
        share = written / total
        working_set = max(read, written) if in_place else total
        shares = WRITTEN_SHARE_IN_PLACE if in_place else WRITTEN_SHARE
        for (before, low), (after, high) in itertools.pairwise(shares.items()):
            if share <= high:
                part = (share - low) / (high - low)
                return total * (
                    (1 - part) * self._per_byte(before, working_set) + part * self._per_byte(after, working_set)
                )
        raise AssertionError("shares end at one")

    def floor(self, read: float, written: float, operations: float, rate: str, in_place: bool = False) -> float | None:
        """Return the minimum seconds that the machine needs, or None if they are unknown or too
        short to be meaningful.
        """
        seconds = self.memory_seconds(read, written, in_place)
        if operations and self.operations_per_second:
            seconds = max(seconds, operations / self.operations_per_second[rate])
        return seconds if seconds >= SHORTEST_FLOOR else None


def measure_memory() -> dict[str, dict[int, float]]:
    """Compile and run `streaming.cpp`. Return {} without a compiler."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "streaming"
        source = Path(__file__).with_name("streaming.cpp")
        subprocess.run(
            [
                compiler,
                "-std=c++20",
                "-O3",
                "-funroll-loops",
                "-mavx2",
                "-mfma",
                "-fopenmp",
                str(source),
                "-o",
                str(program),
            ],
            check=True,
        )
        environment = os.environ | {"OMP_NUM_THREADS": str(threads()), "OMP_PROC_BIND": "true"}
        run = subprocess.run(
            [str(program), *map(str, WORKING_SETS)], capture_output=True, text=True, check=True, env=environment
        )
    found: dict[str, dict[int, float]] = {}
    for line in run.stdout.splitlines():
        kind, nbytes, seconds = line.split()
        found.setdefault(kind, {})[int(nbytes)] = float(seconds) / int(nbytes)
    return found


def measure_products(libraries: list[Any]) -> dict[str, float]:
    """Return the best rate of any library in products of square matrices."""
    rates: dict[str, float] = {}
    for dtype, size in (("float32", 1536), ("float64", 1024), ("bfloat16", 2048)):
        for xp in libraries:
            a = xp.ones(size, size, dtype=getattr(xp, dtype))
            a @ a
            for _ in range(5):
                start = time.perf_counter()
                a @ a
                rate = 2 * size**3 / (time.perf_counter() - start)
                rates[dtype] = max(rates.get(dtype, 0.0), rate)
    rates["float16"] = rates["float32"]
    return rates


def measure_limits(libraries: list[Any]) -> Limits:
    """Measure both."""
    return Limits(measure_memory(), measure_products(libraries))
