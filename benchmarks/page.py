"""Write the page `docs/results/performance.md`, or one for another machine, from the results of
a run, and beside it the page of all lines, `performance_lines.md`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .importing import amount
from .machine import SHORTEST_FLOOR
from .measuring import LONGEST
from .plot import draw
from .reasons import reason
from .record import Figures, Row
from .table import duration, mean, percent
from .workloads import FAMILIES

HEAD = """\
# {title}

Candelabra beside PyTorch {torch} on the CPU: {count} workloads, each written once for either library and timed in turn in one process.

Written by `python3 -m nox -s bench`.

{summary}

![Our time over PyTorch's, for each line]({plot})

Each dot is a line of the [tables of all lines]({lines}): our time over PyTorch's, on a logarithmic axis; the bar is the geometric
mean of the family. The same page says how it is measured.
"""

DETAILS = """\
# All lines of {title}

## How it is measured

- **Machine**: {processor}, {threads} threads; caches of a core: {caches}. Python {python}, Candelabra {candelabra}, PyTorch {torch}. Both
  libraries use {threads} threads, which is looked at after each line: they share one libgomp, where one could change the other's number.
- **Timing**: both sides get the same numbers. Each is warmed up; then each is timed for about {milliseconds:.0f} ms a round, in turn and in changing
  order, over {rounds} rounds (fewer, though not under three, where calls are so long that a line would take more than {longest:.1f} s). Before each
  stretch of short calls a side runs untimed, so that caches and threads are its own. A figure is the median of the rounds{again}. The run took {minutes:.1f} minutes.
- **Same results**: `python -m benchmarks --check` runs each workload on both sides and compares the results; those that draw
  random numbers are compared in shape.
- **Floor**: each workload declares the bytes that must be moved (each input read once, each result written once, unless it says
  otherwise) and its floating-point operations. The floor is the longer of the bytes over the measured bandwidth, for that amount of memory and
  share of writes, and the operations over the measured rate. "Of floor" is the floor over our time: 100 % is as fast as the machine can be. It is left out
  where the floor is under {shortest:.0f} µs. Inputs that are still in a cache from the call before make more than 100 % possible.
- **Limits**: at most 0.35 for single calls, 0.55 for training steps, 1.0 for all others, or what the line says.

## What the machine can do

Measured at the start of the run, {threads} threads, best of five passes: GB/s of reading, copying, multiplying in place, adding one array times a number to another, and filling,
for working sets of several sizes; the better of ordinary and streaming stores.

{bandwidth}

Products of matrices, the better of both libraries: {products}.
"""


#: A part of the paragraph on timing, if lines were measured again.
REPEATED = (
    "; lines of which the rounds of a side differ by more than half, since the machine did something else meanwhile,\n"
    "  are measured again, up to {} times, and the median is of all rounds"
)


def table(head: list[str], rows: Iterable[list[str]], left: tuple[int, ...] = (0,)) -> str:
    """Return a Markdown table. The columns in `left` are left-aligned, others right-aligned."""
    ruler = ["---" if number in left else "---:" for number in range(len(head))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ruler, *rows])


def name(row: Row) -> str:
    """Return a line's name, with bars escaped, which would end a cell."""
    return row.name.replace("|", "\\|")


def summary(figures: Figures) -> str:
    """Return a table that summarizes the results."""
    rows = figures.rows
    training, calls = ([row for row in rows if row.group == group] for group in ("training", "call"))
    above = sum(row.ratio > 1 for row in rows)
    met = sum(row.ratio <= row.limit for row in rows)
    lines = [
        ["Geometric mean of our time over PyTorch's, all lines", f"**{mean(rows):.3f}**", "0.50"],
        ["— of calls on a few elements", f"{mean(calls):.3f}", "0.35"],
        ["— of training steps", f"{mean(training):.3f}", "0.55"],
        ["Lines that are slower than PyTorch", f"{above} of {len(rows)}", "0"],
        ["Lines within their own limit", f"{met} of {len(rows)}", f"{len(rows)}"],
    ]
    if figures.memory:
        worst = max(entry["ours"] / entry["theirs"] for entry in figures.memory)
        lines.append(["Peak memory of a training step over PyTorch's, the highest", f"{worst:.2f}", "1.00"])
    return table(["", "measured", "asked for"], lines)


def bandwidth(limits: dict[str, Any]) -> str:
    """Return the table of memory bandwidths."""
    measured = limits["bandwidth"]
    if not measured:
        return "There was no compiler to build the measurement with; lines without operations have no floor."
    sizes = [f"{int(nbytes) / 2**20:.3g} MiB" for nbytes in measured["read"]]
    return table(
        ["", *sizes], ([kind, *(f"{rate:.0f}" for rate in rates.values())] for kind, rates in measured.items())
    )


def families(rows: list[Row], page: str) -> str:
    """Return a table with a line for each family, linked to its lines on a page."""
    lines = []
    for family in FAMILIES:
        chosen = [row for row in rows if row.family == family]
        if chosen:
            worst = max(chosen, key=lambda row: row.ratio)
            lines.append(
                [
                    f"[{family}]({page}#{family})",
                    f"{len(chosen)}",
                    f"{mean(chosen):.3f}",
                    f"{sum(row.ratio > 1 for row in chosen)}",
                    f"{worst.ratio:.2f} ({name(worst)})",
                ]
            )
    return table(["Family", "Lines", "Geometric mean", "Above 1", "Highest"], lines, (0, 4))


def missed(rows: list[Row]) -> str:
    """Return the lines above 1.0 and those above their own limit, with reasons."""
    sections = []
    above = sorted((row for row in rows if row.ratio > 1), key=lambda row: -row.ratio)
    between = sorted((row for row in rows if row.limit < row.ratio <= 1), key=lambda row: -row.ratio / row.limit)
    without = sum(not reason(row) for row in above + between)
    for title, chosen in (("Lines above 1.0", above), ("Other lines above their limit", between)):
        sections.append(f"## {title}\n")
        if not chosen:
            sections.append("None.\n")
            continue
        cells = (
            [
                row.family, name(row), duration(row.ours), duration(row.theirs), f"{row.ratio:.2f}", f"{row.limit:.2f}",
                percent(row.fraction), reason(row) or "**no profile yet**",
            ]
            for row in chosen
        )  # fmt: skip
        sections.append(
            table(
                ["Family", "Line", "Candelabra", "PyTorch", "ratio", "at most", "of floor", "Reason"], cells, (0, 1, 7)
            )
            + "\n"
        )
    if without:
        sections.append(f"Of {without} of these {len(above + between)} lines the reason is not known yet.\n")
    return "\n".join(sections)


def peaks(figures: Figures) -> str:
    """Return the section on peak memory."""
    cells = (
        [
            entry["name"],
            f"{entry['ours'] / 1e6:.1f} MB",
            f"{entry['theirs'] / 1e6:.1f} MB",
            f"{entry['ours'] / entry['theirs']:.3f}",
        ]
        for entry in figures.memory
    )
    return (
        "## Peak memory of training steps\n\n"
        "Parameters, gradients, the optimizer's state and all that five steps need at once, of a process of its own a side: the highest resident\n"
        "memory less what it was after the import and a few steps of a small model, without pages of files. The lower of two runs.\n\n"
        + table(["Step", "Candelabra", "PyTorch", "ratio"], cells)
        + "\n"
    )


def compiled(figures: Figures) -> str:
    """Return the comparison with JAX."""
    cells = (
        [
            entry["name"],
            *(duration(entry[side]) for side in ("ours", "theirs", "jax")),
            f"{entry['ours'] / entry['jax']:.3f}",
        ]
        for entry in figures.compiled
    )
    return (
        f"## Beside a compiler\n\nJAX {figures.compiled[0]['version']}: each step compiled as one by XLA, its buffers donated. Candelabra and PyTorch run\n"
        "operator by operator. The last column is our time over JAX's.\n\n"
        + table(["Workload", "Candelabra", "PyTorch", "JAX", "to JAX"], cells)
        + "\n"
    )


def counts(figures: Figures) -> str:
    """Return the section on instructions per call."""
    cells = (
        [
            entry["name"].replace("|", "\\|"),
            f"{entry['ours']:,.0f}",
            "–" if entry["theirs"] is None else f"{entry['theirs']:,.0f}",
            "–" if entry["theirs"] is None else f"{entry['ours'] / entry['theirs']:.3f}",
        ]
        for entry in figures.instructions
    )
    return (
        "## Instructions of a call\n\n"
        "Counted by callgrind, one thread, without the loop and its lambda: these do not depend on what else the machine does, nor on its speed.\n\n"
        + table(["Call", "Candelabra", "PyTorch", "ratio"], cells)
        + "\n"
    )


def others(figures: Figures) -> str:
    """Return the section on installing, importing and loading."""
    made = ""
    if figures.importing:
        cells = (
            [entry["name"], amount(entry["ours"], entry["unit"]), amount(entry["theirs"], entry["unit"])]
            for entry in figures.importing
        )
        made += (
            "## Installing and importing\n\nMedians of fresh processes, less what a bare Python takes.\n\n"
            + table(["", "Candelabra", "PyTorch"], cells)
            + "\n\n"
        )
    if figures.loading:
        cells = (
            [
                entry["name"],
                f"{entry['ours']:,.0f}",
                f"{entry['theirs']:,.0f}",
                f"{entry['theirs'] / entry['ours']:.3f}",
            ]
            for entry in figures.loading
        )
        made += (
            "## Loading data\n\nSamples a second through the `DataLoader`, shuffled, in batches of 64; each side in a process of its own. The last column is our\n"
            "time over PyTorch's.\n\n" + table(["Samples", "Candelabra", "PyTorch", "ratio"], cells) + "\n"
        )
    return made


def lines(rows: list[Row]) -> str:
    """Return the tables by family."""
    sections = ["## All lines\n"]
    for family in FAMILIES:
        chosen = [row for row in rows if row.family == family]
        if chosen:
            cells = (
                [
                    name(row),
                    duration(row.ours),
                    duration(row.theirs),
                    f"{row.ratio:.3f}",
                    percent(row.fraction),
                    limit(row),
                ]
                for row in chosen
            )
            head = ["Line", "Candelabra", "PyTorch", "ratio", "of floor", "at most"]
            sections.append(f"### {family}\n\n" + table(head, cells) + "\n")
    return "\n".join(sections)


def limit(row: Row) -> str:
    """Return the limit of the ratio, and whether the line meets it."""
    return f"{row.limit:.2f} " + ("met" if row.ratio <= row.limit else "**missed**")


def write(figures: Figures, path: Path, title: str) -> None:
    """Write both pages, and the plot beside them."""
    products = ", ".join(
        f"{dtype} {rate:.0f} GFLOP/s" for dtype, rate in figures.limits["products"].items() if dtype != "float16"
    )
    details = path.with_name(f"{path.stem}_lines.md")
    facts = {
        "title": title, "plot": path.with_suffix(".png").name, "lines": details.name,
        "candelabra": figures.versions["candelabra"], "torch": figures.versions["torch"], "count": len(figures.rows),
        "summary": summary(figures), "processor": figures.processor, "threads": figures.threads, "caches": figures.caches,
        "python": figures.python, "rounds": figures.rounds, "milliseconds": 1e3 * figures.seconds, "minutes": figures.minutes,
        "longest": LONGEST, "shortest": 1e6 * SHORTEST_FLOOR, "bandwidth": bandwidth(figures.limits), "products": products,
        "again": REPEATED.format(figures.again) if figures.again else "",
    }  # fmt: skip
    parts = [HEAD.format(**facts), "## By family\n\n" + families(figures.rows, details.name) + "\n"]
    parts += [peaks(figures)] if figures.memory else []
    parts += [compiled(figures)] if figures.compiled else []
    parts += [others(figures)]
    path.write_text("\n".join(part for part in parts if part).rstrip() + "\n")
    parts = [DETAILS.format(**facts), missed(figures.rows)]
    parts += [counts(figures)] if figures.instructions else []
    parts += [lines(figures.rows)]
    details.write_text("\n".join(part for part in parts if part).rstrip() + "\n")
    draw(figures.rows, path.with_suffix(".png"))
