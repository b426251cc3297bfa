"""Tables of measurements."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from .measurement import Measurement, unit_for


class Compare:
    """Tables of measurements: one per label, with a row per sub-label, a column per description.

    Parameters
    ----------
    results : list of Measurement
        The measurements. Measurements of the same statement and labels are merged.

    Examples
    --------
    >>> from candelabra.utils.benchmark import Compare, Measurement
    >>> rows = [Measurement(1, [t], label="add", sub_label=s, description=d) for t, s, d in ((1e-6, "small", "a"), (4e-6, "small", "b"))]
    >>> Compare(rows).print()
    [------- add -------]
               a     b
    1 thread:
        small  1.00  4.00
    <BLANKLINE>
    Times are in us.
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trim = False
        self._highlight = False
        self.extend_results(results)

    def __str__(self) -> str:
        return "\n\n".join(self._table(label, list(rows)) for label, rows in self._by_label())

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        for one in results:
            if not isinstance(one, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(one)} instead.")
            self._results.append(one)

    def trim_significant_figures(self) -> None:
        """Show only the significant figures of the times."""
        self._trim = True

    def highlight_warnings(self) -> None:
        """Mark times with a large spread."""
        self._highlight = True

    def print(self) -> None:
        """Print the tables."""
        print(self)

    def _by_label(self) -> Iterable[tuple[str, Iterable[Measurement]]]:
        merged = Measurement.merge(self._results)
        labels = list(dict.fromkeys(one.label or one.stmt for one in merged))
        return itertools.groupby(
            sorted(merged, key=lambda one: labels.index(one.label or one.stmt)), key=lambda one: one.label or one.stmt
        )

    def _cell(self, one: Measurement | None, scale: float) -> str:
        if one is None:
            return ""
        value = one.median / scale
        text = f"{float(f'{value:.{one.significant_figures}g}'):g}" if self._trim else f"{value:.2f}"
        return text + (f" (! {100 * one.iqr / one.median:.0f}%)" if self._highlight and one.has_warnings else "")

    def _table(self, label: str, rows: list[Measurement]) -> str:
        scale, unit = unit_for(min(one.median for one in rows))
        columns = list(dict.fromkeys(one.description or "" for one in rows))
        lines: list[list[str]] = []
        for threads in sorted({one.num_threads for one in rows}):
            lines.append([f"{threads} thread{'s' if threads > 1 else ''}:"])
            ours = [one for one in rows if one.num_threads == threads]
            for name in dict.fromkeys((one.env, one.as_row_name) for one in ours):
                cells = {one.description or "": one for one in ours if (one.env, one.as_row_name) == name}
                title = f"    {name[1]}" if name[0] is None else f"    ({name[0]}) {name[1]}"
                lines.append([title, *(self._cell(cells.get(column), scale) for column in columns)])
        wide = [max(len(line[0]) for line in lines if len(line) > 1)]
        wide += [
            max(len(column), *(len(line[n + 1]) for line in lines if len(line) > 1)) for n, column in enumerate(columns)
        ]
        text = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, wide, strict=False)).rstrip()
            for line in [["", *columns], *lines]
        ]
        width = max(len(label) + 4, sum(wide) + 2 * len(columns) - 2)
        return "\n".join([f"[{f' {label} '.center(width, '-')}]", *text, "", f"Times are in {unit}."])
