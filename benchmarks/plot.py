"""Draw the page's plot: the ratio of each line, by family."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .record import Row
from .table import mean
from .workloads import FAMILIES

FASTER, SLOWER, INK, FAINT = "#2a6f97", "#c8553d", "#22313f", "#d5dbe1"
#: Dots closer than this, as a part of the axis, are moved apart.
NEAR = 0.012
STEP = 0.13
#: The ends of the axis.
LEAST, MOST = 0.01, 10.0


def spread(positions: list[float]) -> list[float]:
    """Return offsets across the axis that keep dots from overlapping. Each dot takes the free
    offset nearest to the middle.
    """
    placed: list[tuple[float, float]] = []
    offsets = []
    for position in positions:
        candidates = [0.0] + [sign * STEP * number for number in range(1, 12) for sign in (1, -1)]
        taken = {offset for other, offset in placed if abs(other - position) < NEAR}
        offset = next((candidate for candidate in candidates if candidate not in taken and abs(candidate) <= 0.4), 0.0)
        placed.append((position, offset))
        offsets.append(offset)
    return offsets


def draw(rows: list[Row], path: Path) -> None:
    """Draw all lines as dots on a logarithmic axis, a row per family, with its geometric mean."""
    import math

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    families = [family for family in FAMILIES if any(row.family == family for row in rows)]
    low = max(LEAST, min(0.05, min(row.ratio for row in rows) / 1.2))
    high = min(MOST, max(2.0, max(row.ratio for row in rows) * 1.2))

    def within(ratio: float) -> float:
        """Clamp a ratio to the ends of the axis."""
        return min(max(ratio, low * 1.05), high / 1.05)

    width = math.log(high / low)
    plt.rcParams.update({"font.family": "DejaVu Sans", "text.color": INK, "axes.edgecolor": FAINT})
    figure, axes = plt.subplots(figsize=(9.5, 0.42 * len(families) + 1.7), dpi=160)
    axes.axvspan(1.0, high, color=SLOWER, alpha=0.07, linewidth=0)
    for number, family in enumerate(families):
        chosen = sorted((row for row in rows if row.family == family), key=lambda row: row.ratio)
        offsets = spread([math.log(within(row.ratio)) / width for row in chosen])
        axes.axhline(number, color=FAINT, linewidth=0.6, zorder=0)
        axes.scatter(
            [within(row.ratio) for row in chosen], [number + offset for offset in offsets], s=15,
            c=[SLOWER if row.ratio > 1 else FASTER for row in chosen], alpha=0.8, linewidths=0, zorder=2,
        )  # fmt: skip
        middle = mean(chosen)
        axes.plot(
            [middle, middle], [number - 0.4, number + 0.4], color=INK, linewidth=2.2, solid_capstyle="round", zorder=3
        )
        axes.text(high * 1.06, number, f"{middle:.2f}", va="center", ha="left", fontsize=8, color=INK)
    axes.axvline(1.0, color=SLOWER, linewidth=1.1, zorder=1)
    overall = mean(rows)
    axes.axvline(overall, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    labels = [
        (overall, f"all {len(rows)} lines: {overall:.2f}", -4, "right", INK),
        (1.0, "as fast as PyTorch", 4, "left", SLOWER),
    ]
    for position, text, offset, side, color in labels:
        place: dict[str, Any] = {"xytext": (offset, 0), "textcoords": "offset points", "ha": side, "va": "center"}
        axes.annotate(text, (position, -0.75), fontsize=8, color=color, **place)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(len(families) - 0.4, -1.2)
    ticks = [tick for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0) if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=8.5)
    axes.xaxis.minorticks_off()
    axes.set_yticks(range(len(families)), families, fontsize=9)
    axes.tick_params(length=0)
    axes.grid(axis="x", color=FAINT, linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.set_xlabel("our time / PyTorch's time (left is faster)", fontsize=9)
    axes.set_title("Candelabra beside PyTorch on the CPU", loc="left", fontsize=12, fontweight="bold", pad=10)
    axes.text(high * 1.06, -0.75, "mean", va="center", ha="left", fontsize=8, color=INK)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
