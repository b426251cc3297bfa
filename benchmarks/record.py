"""The results of a run, and their JSON format."""

from __future__ import annotations

import dataclasses
import json
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .machine import Limits, caches, processor, threads
from .measuring import Timing, moved
from .workloads import FAMILIES


@dataclass
class Row:
    """One line: seconds per call, and the floor if it is known."""

    family: str
    name: str
    ours: float
    theirs: float
    floor: float | None
    limit: float
    group: str
    times: list[list[float]] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Return our time over PyTorch's."""
        return self.ours / self.theirs

    @property
    def fraction(self) -> float | None:
        """Return the floor over our time. 1 is as fast as the machine can be."""
        return None if self.floor is None else self.floor / self.ours


@dataclass
class Figures:
    """All results of a run, and the machine that it ran on."""

    processor: str
    caches: str
    threads: int
    python: str
    versions: dict[str, str]
    rounds: int
    seconds: float
    minutes: float = 0.0
    again: int = 0
    limits: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    memory: list[dict[str, Any]] = field(default_factory=list)
    compiled: list[dict[str, Any]] = field(default_factory=list)
    importing: list[dict[str, Any]] = field(default_factory=list)
    loading: list[dict[str, Any]] = field(default_factory=list)
    instructions: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, sides: list[Any], rounds: int, seconds: float) -> Figures:
        """Return empty results of this machine."""
        versions = {xp.__name__: str(xp.__version__) for xp in sides}
        return cls(processor(), caches(), threads(), platform.python_version(), versions, rounds, seconds)

    def save(self, path: Path) -> None:
        """Save as JSON."""
        path.write_text(json.dumps(dataclasses.asdict(self), indent=1))

    @classmethod
    def load(cls, path: Path) -> Figures:
        """Load what `save` wrote."""
        entries = json.loads(path.read_text())
        return cls(**entries | {"rows": [Row(**row) for row in entries["rows"]]})

    def fill_from(self, earlier: Figures) -> None:
        """Copy what this run lacks from another run."""
        known = {(row.family, row.name) for row in self.rows}
        self.rows += [row for row in earlier.rows if (row.family, row.name) not in known]
        self.rows.sort(key=lambda row: FAMILIES.index(row.family))
        for name in ("limits", "memory", "compiled", "importing", "loading", "instructions"):
            if not getattr(self, name):
                setattr(self, name, getattr(earlier, name))
        self.versions = earlier.versions | self.versions
        self.minutes += earlier.minutes


def limits_of(limits: Limits) -> dict[str, Any]:
    """Return memory bandwidths in GB/s by kind and working set, and product rates in GFLOP/s."""
    return {
        "bandwidth": {
            kind: {str(nbytes): 1e-9 / seconds for nbytes, seconds in measured.items()}
            for kind, measured in limits.seconds_per_byte.items()
        },
        "products": {dtype: rate / 1e9 for dtype, rate in limits.operations_per_second.items()},
    }


def row_of(timing: Timing, limits: Limits) -> Row:
    """Return the line of a workload."""
    workload = timing.workload
    ours, theirs = timing.medians[:2]
    floor = limits.floor(*moved(timing), workload.operations, workload.rate, workload.in_place)
    return Row(workload.family, workload.name, ours, theirs, floor, workload.limit, workload.group, timing.times)
