"""Time every workload on both sides and write the results: ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
import time
from pathlib import Path
from typing import Any

from . import checking, memory, record
from .machine import measure_limits, threads
from .measuring import measure
from .table import Printer
from .workload import Workload
from .workloads import all_workloads


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", default="", help="a regular expression to be found in 'FAMILY: NAME'")
    parser.add_argument(
        "--device", default="cpu", choices=["cpu", "cuda"], help="cuda: another table, with options of its own"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.02, help="that one side is timed in one round")
    parser.add_argument(
        "--again", type=int, default=0,
        help="so many times more, measure what was disturbed: the rounds of a side differ by half; the medians are over all rounds",
    )  # fmt: skip
    parser.add_argument(
        "--check", action="store_true", help="do not time: run each workload once on both sides and compare the results"
    )
    parser.add_argument("--list", action="store_true", help="print the names of the workloads")
    parser.add_argument(
        "--worst", type=int, default=0, help="print so many lines with the highest ratios once more at the end"
    )
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument(
        "--merge",
        type=Path,
        nargs="*",
        default=[],
        help="take figures of earlier runs from these files where this run has none",
    )
    parser.add_argument("--write", type=Path, help="write the page here, and its plot beside it")
    parser.add_argument("--title", default="Performance", help="of the page")
    parser.add_argument("--memory", action="store_true", help="measure the peak memory of the training steps, too")
    parser.add_argument("--jax", action="store_true", help="time JAX's compiled steps, too")
    parser.add_argument(
        "--import", action="store_true", dest="importing", help="measure installed sizes and what importing costs, too"
    )
    parser.add_argument("--loader", action="store_true", help="measure the loading of data, too")
    parser.add_argument("--instructions", action="store_true", help="count the instructions of calls by callgrind, too")
    parser.add_argument("--all", action="store_true", help="all of these")
    parser.add_argument(
        "--no-rows", action="store_true", help="none of the table's workloads, only what else is asked for"
    )
    return parser.parse_args()


def selected(pattern: str) -> list[Workload]:
    """Return the workloads whose name contains `pattern`."""
    expression = re.compile(pattern)
    return [workload for workload in all_workloads() if expression.search(workload.full_name)]


def libraries() -> list[Any]:
    """Return Candelabra and PyTorch, each with a thread per processor. PyTorch is only compared
    with: nothing in Candelabra needs it.
    """
    import torch

    import candelabra

    for xp in (candelabra, torch):
        xp.set_num_threads(threads())
    return [candelabra, torch]


def time_rows(
    workloads: list[Workload], sides: list[Any], options: argparse.Namespace, figures: record.Figures
) -> None:
    """Time these workloads and print a line for each."""
    limits = measure_limits(sides)
    figures.limits = record.limits_of(limits)
    printer = Printer(len(workloads), options.rounds)
    printer.begin(figures)
    timings = []
    for workload in workloads:
        timings.append(measure(workload, sides, options.rounds, options.seconds))
        printer.row(record.row_of(timings[-1], limits))
    for _ in range(options.again):
        disturbed = [timing for timing in timings if timing.is_disturbed]
        if disturbed:
            printer.begin_again(len(disturbed))
        for timing in disturbed:
            timing.add(measure(timing.workload, sides, options.rounds, options.seconds))
            printer.row(record.row_of(timing, limits))
    figures.rows = [record.row_of(timing, limits) for timing in timings]
    printer.end(figures.rows, options.worst)


def main() -> int:
    """Run what the command line asks for."""
    if "cuda" in sys.argv or "--device=cuda" in sys.argv:
        from .gpu.__main__ import main as on_gpu

        return on_gpu(sys.argv[1:])
    options = arguments()
    workloads = [] if options.no_rows else selected(options.only)
    if options.list:
        print("\n".join(workload.full_name for workload in workloads))
        return 0
    if (options.jax or options.all) and importlib.util.find_spec("jax") is None:
        sys.exit("benchmarks: JAX is not installed (pip install jax jaxlib), and --jax and --all compare with it")
    sides = libraries()
    if options.check:
        return 1 if checking.check(workloads, sides) else 0
    begun = time.perf_counter()
    figures = record.Figures.of(sides, options.rounds, options.seconds)
    figures.again = options.again
    if workloads:
        time_rows(workloads, sides, options, figures)
    if options.memory or options.all:
        figures.memory = memory.measure_all(options.only)
    if options.jax or options.all:
        from . import compiled

        figures.compiled = compiled.measure_all(sides, options.rounds, options.seconds, options.only)
    if options.importing or options.all:
        from . import importing

        figures.importing = importing.measure_all()
    if options.loader or options.all:
        from . import loading

        figures.loading = loading.measure_all()
    if options.instructions or options.all:
        from . import instructions

        figures.instructions = instructions.measure_all()
    figures.minutes = (time.perf_counter() - begun) / 60
    for path in options.merge:
        figures.fill_from(record.Figures.load(path))
    if options.json:
        figures.save(options.json)
    if options.write:
        from . import page

        page.write(figures, options.write, options.title)
    return 0


if __name__ == "__main__":
    sys.exit(main())
