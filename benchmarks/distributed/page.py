"""The table of a run."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field


@dataclass
class Row:
    """What was measured of one thing.

    Attributes
    ----------
    name : str
        What it is.
    unit : str
        ``s``, or ``%`` for the share of the speed of one process.
    goal : float or None
        The most seconds, or the least share, that Candelabra should have.
    found : dict
        The results of the rounds by library.
    """

    name: str
    unit: str
    goal: float | None = None
    found: dict[str, list[float]] = field(default_factory=dict)

    def median(self, library: str) -> float | None:
        """Return the median of a library's rounds, or None if it was not measured."""
        values = self.found.get(library)
        return statistics.median(values) if values else None

    def is_met(self) -> bool | None:
        """Return whether the goal is met, or None if there is none."""
        value = self.median("candelabra")
        if self.goal is None or value is None:
            return None
        return value >= self.goal if self.unit == "%" else value <= self.goal

    def cells(self) -> list[str]:
        """Return the cells of the row: name, both sides, their ratio and the goal."""
        ours, theirs = self.median("candelabra"), self.median("torch")
        ratio = "–" if ours is None or theirs is None else f"{ours / theirs:.2f}"
        met = self.is_met()
        goal = "–" if self.goal is None else f"{shown(self.goal, self.unit)} {'met' if met else 'MISSED'}"
        return [self.name, shown(ours, self.unit), shown(theirs, self.unit), ratio, goal]


def shown(value: float | None, unit: str) -> str:
    """Return a value in a suitable unit."""
    if value is None:
        return "–"
    if unit == "%":
        return f"{100 * value:.0f} %"
    for scale, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= scale or name == "µs":
            return f"{value / scale:.3g} {name}"
    raise AssertionError


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    head = ["", "Candelabra", "PyTorch, gloo", "ratio", "goal"]
    lines = [head, ["--"] * len(head), *(row.cells() for row in rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"
