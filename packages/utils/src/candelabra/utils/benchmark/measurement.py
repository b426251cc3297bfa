"""The result of a timer."""

from __future__ import annotations

import bisect
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

#: A measurement warns if its interquartile range exceeds this fraction of the median.
SPREAD_TO_WARN = 0.1
UNITS = ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s"))


def unit_for(seconds: float) -> tuple[float, str]:
    """Return the largest unit not above a time, as its length in seconds and its name."""
    position = bisect.bisect_right([scale for scale, _ in UNITS], seconds) - 1
    return UNITS[max(position, 0)]


@dataclass
class Measurement:
    """The run times of a statement.

    Parameters
    ----------
    number_per_run : int
        Number of executions of the statement per entry of `raw_times`.
    raw_times : list of float
        Duration of each run in seconds.
    stmt, setup, label, sub_label, description, env, num_threads
        Description of the measurement, as given to the timer.

    Examples
    --------
    >>> from candelabra.utils.benchmark import Measurement
    >>> Measurement(10, [2e-5, 3e-5, 4e-5], stmt="f()").median
    3e-06
    """

    number_per_run: int
    raw_times: list[float]
    stmt: str = ""
    setup: str = "pass"
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1
    metadata: dict[Any, Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.number_per_run < 1 or not self.raw_times:
            raise ValueError(
                f"a measurement has at least one run and one time, but got {self.number_per_run} and {self.raw_times}"
            )

    @property
    def times(self) -> list[float]:
        """Time per execution of the statement in seconds, one entry per run."""
        return [one / self.number_per_run for one in self.raw_times]

    @property
    def median(self) -> float:
        """The median of the times."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean of the times."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The interquartile range of the times."""
        if len(self.raw_times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    @property
    def significant_figures(self) -> int:
        """Number of significant figures of the median.

        Estimated from the spread of the times, for a normal distribution at 95 percent confidence.
        """
        import math

        deviation = self.iqr / 1.349
        error = 2 * deviation / math.sqrt(len(self.raw_times))
        if error == 0:
            return 5 if len(self.raw_times) > 1 else 1
        return max(min(int(math.floor(math.log10(self.median)) - math.floor(math.log10(error))) + 1, 5), 1)

    @property
    def has_warnings(self) -> bool:
        """Whether the spread of the times makes the median unreliable."""
        return self.iqr / self.median > SPREAD_TO_WARN if self.median else False

    @property
    def title(self) -> str:
        """One-line description of what was measured."""
        return ": ".join(part for part in (self.label or self.stmt, self.sub_label) if part)

    @property
    def as_row_name(self) -> str:
        """The name of the row in a table."""
        return self.sub_label or self.stmt or "[Unknown]"

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Merge the times of equal measurements; the result has one execution per run."""
        groups: dict[Any, list[Measurement]] = {}
        for one in measurements:
            key = (one.stmt, one.setup, one.label, one.sub_label, one.description, one.env, one.num_threads)
            groups.setdefault(key, []).append(one)
        return [Measurement(1, [time for one in group for time in one.times], *key) for key, group in groups.items()]

    def __repr__(self) -> str:
        scale, unit = unit_for(self.median)
        lines = [f"<{type(self).__module__}.{type(self).__qualname__}>", self.title]
        if self.description:
            lines.append(self.description)
        if self.setup != "pass":
            lines.append(f"setup: {self.setup}")
        name = "Median" if len(self.raw_times) > 1 else "Time"
        lines.append(f"  {name}: {self.median / scale:.2f} {unit}")
        if len(self.raw_times) > 1:
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit}")
        threads = f"{self.num_threads} thread" + ("s" if self.num_threads > 1 else "")
        lines.append(f"  {len(self.raw_times)} measurements, {self.number_per_run} runs per measurement, {threads}")
        if self.has_warnings:
            lines.append(
                f"  WARNING: the middle half spans {100 * self.iqr / self.median:.0f}% of the median; the machine may be busy."
            )
        return "\n".join(lines)
