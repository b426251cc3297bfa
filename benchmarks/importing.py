"""Measure the size of each framework's installation, and the time and memory of its import."""

from __future__ import annotations

import importlib.metadata
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

WHEELS = Path(__file__).parent.parent / "dist"
#: The import statements of each framework.
STATEMENTS = {
    "candelabra": ["import candelabra", "import candelabra, candelabra.autograd, candelabra.nn, candelabra.optim"],
    "torch": ["import torch", "import torch"],
}
NAMES = ["import", "import with autograd, nn and optim"]
HIGHEST = "; print(next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('VmHWM')))"


def installed_megabytes(pattern: str) -> float | None:
    """Return the megabytes of all installed distributions whose full name matches, or None if they
    only link to a source tree.
    """
    total = 0
    for distribution in importlib.metadata.distributions():
        if re.fullmatch(pattern, distribution.name):
            files = distribution.files or []
            total += sum(path.stat().st_size for path in (Path(str(file.locate())) for file in files) if path.is_file())
    return total / 1e6 if total > 1e6 else None


def wheel_bytes() -> int:
    """Return the bytes of our wheels, if they have been built."""
    return sum(path.stat().st_size for path in WHEELS.glob("candelabra*.whl") if "cuda" not in path.name)


def fresh(statement: str) -> tuple[float, int]:
    """Return the seconds and peak memory of a new process that runs the statement."""
    start = time.perf_counter()
    run = subprocess.run([sys.executable, "-c", statement + HIGHEST], capture_output=True, text=True, check=True)
    return time.perf_counter() - start, 1024 * int(run.stdout)


def measure_all() -> list[dict[str, Any]]:
    """Return rows of a name, a unit and both sides' results, from which those of bare Python are
    subtracted.
    """
    print("\ninstalling and importing")
    rows: list[dict[str, Any]] = [
        {
            "name": "installed files",
            "unit": "MB",
            "ours": installed_megabytes(r"candelabra(-(?!example).*)?"),
            "theirs": installed_megabytes("torch"),
        }
    ]
    if wheel_bytes():
        rows.append({"name": "wheels", "unit": "MB", "ours": wheel_bytes() / 1e6, "theirs": None})
    bare_seconds, bare_bytes = (
        statistics.median(figures) for figures in zip(*(fresh("pass") for _ in range(7)), strict=True)
    )
    for number, name in enumerate(NAMES):
        taken: dict[str, list[tuple[float, int]]] = {library: [] for library in STATEMENTS}
        for _ in range(6):
            for library, statements in STATEMENTS.items():
                taken[library].append(fresh(statements[number]))
        # The first process fills the page cache, so it does not count.
        ours, theirs = (
            [statistics.median(figures) for figures in zip(*entries[1:], strict=True)] for entries in taken.values()
        )
        rows.append(
            {
                "name": f"{name}, time",
                "unit": "ms",
                "ours": 1e3 * (ours[0] - bare_seconds),
                "theirs": 1e3 * (theirs[0] - bare_seconds),
            }
        )
        rows.append(
            {
                "name": f"{name}, memory",
                "unit": "MB",
                "ours": (ours[1] - bare_bytes) / 1e6,
                "theirs": (theirs[1] - bare_bytes) / 1e6,
            }
        )
    for row in rows:
        print(
            f"  {row['name']:62} {amount(row['ours'], row['unit']):>11} {amount(row['theirs'], row['unit']):>11}",
            flush=True,
        )
    return rows


def amount(value: float | None, unit: str) -> str:
    """Format a value with its unit, or a dash."""
    return "–" if value is None else f"{value:.1f} {unit}"
