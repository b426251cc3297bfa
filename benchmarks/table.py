"""Print the table line by line, with progress below it."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable

from tqdm import tqdm

from .record import Figures, Row


def duration(seconds: float) -> str:
    """Format a duration in a suitable unit."""
    if seconds >= 0.9995:
        return f"{seconds:.2f} s"
    if seconds >= 0.9995e-3:
        return f"{seconds * 1e3:.{2 if seconds < 0.09995 else 1}f} ms"
    return f"{seconds * 1e6:.2f} µs"


def percent(fraction: float | None) -> str:
    """Format a fraction of the floor, or a dash."""
    return "–" if fraction is None else f"{100 * fraction:.0f} %"


def mean(rows: Iterable[Row]) -> float:
    """Return the geometric mean of the ratios, or NaN without rows."""
    ratios = [row.ratio for row in rows]
    return statistics.geometric_mean(ratios) if ratios else float("nan")


def verdict(row: Row) -> str:
    """Return whether the line meets its limit."""
    return f"{row.limit:.2f} " + ("met" if row.ratio <= row.limit else "MISSED")


class Printer:
    """Prints lines as they are measured. Progress goes to the terminal, if there is one."""

    def __init__(self, count: int, rounds: int) -> None:
        self.progress = tqdm(total=count, unit="row", leave=False, disable=not sys.stderr.isatty())
        self.rounds = rounds
        self.family = ""

    def write(self, line: str) -> None:
        """Print a line above the progress bar."""
        self.progress.write(line, file=sys.stdout)
        sys.stdout.flush()

    def begin(self, figures: Figures) -> None:
        """Print what is compared, and on which machine."""
        self.write(
            f"{figures.processor}, {figures.threads} threads; Candelabra {figures.versions['candelabra']}, PyTorch "
            f"{figures.versions['torch']}; medians of {self.rounds} rounds"
        )
        products = figures.limits["products"]
        self.write(
            f"products of matrices at best, GFLOP/s: {', '.join(f'{dtype} {rate:.0f}' for dtype, rate in products.items())}"
        )
        for kind, measured in figures.limits["bandwidth"].items():
            rates = ", ".join(f"{int(nbytes) / 2**20:.3g} MiB {rate:.0f}" for nbytes, rate in measured.items())
            self.write(f"{kind} at best, GB/s: {rates}")
        self.write(f"{'':64} {'Candelabra':>11} {'PyTorch':>11} {'ratio':>6} {'of floor':>8}  at most")

    def row(self, row: Row) -> None:
        """Print one line. The family's name precedes its first line."""
        if row.family != self.family:
            self.family = row.family
            self.write(f"{row.family}")
        self.write(
            f"  {row.name:62} {duration(row.ours):>11} {duration(row.theirs):>11} {row.ratio:6.3f} {percent(row.fraction):>8}  {verdict(row)}"
        )
        self.progress.update()

    def begin_again(self, count: int) -> None:
        """Announce that `count` lines are measured again. Each is then printed with the medians of
        all its rounds.
        """
        self.family = ""
        self.progress.reset(count)
        self.write(f"again, since rounds differed by half: {count} lines")

    def end(self, rows: list[Row], worst: int) -> None:
        """Print the means, and the lines with the highest ratios."""
        self.progress.close()
        print(f"geometric mean of the ratios: {mean(rows):.3f} over {len(rows)} lines")
        for group in ("call", "training"):
            chosen = [row for row in rows if row.group == group]
            if chosen:
                print(f"  of the {group} lines: {mean(chosen):.3f}")
        print(
            f"lines above 1.0: {sum(row.ratio > 1 for row in rows)}; limits missed: {sum(row.ratio > row.limit for row in rows)}"
        )
        for row in sorted(rows, key=lambda row: -row.ratio)[:worst]:
            print(
                f"  {row.ratio:6.3f}  {row.family}: {row.name}  {duration(row.ours)}  {duration(row.theirs)}  {percent(row.fraction)}"
            )
