"""Measure collectives, data-parallel training, the start and the store, beside PyTorch with gloo:
``python -m benchmarks.distributed --torch ENVIRONMENT/bin/python``.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from ..machine import processor, threads
from .page import Row, table
from .rank import CLIENTS, FAILS, SIZES
from .running import pythons, run

#: Seconds of an all_reduce that should not be exceeded, by ranks and bytes.
_GOALS = {(2, 4): 6e-6, (2, 64 << 10): 50e-6, (2, 1 << 20): 230e-6, (2, 64 << 20): 30e-3, (4, 1 << 20): 3e-3}
#: The least share of one process's speed that each of two should have.
_SHARES = {"mlp": 0.65, "conv net": 0.88, "transformer": 0.93}
_NAMES = {4: "4 B", 64 << 10: "64 KB", 1 << 20: "1 MB", 64 << 20: "64 MB"}
#: Seconds between the end of a rank and the error of the others, and the same if it is stopped.
_KILL_GOAL = 0.5
_STOP_GOAL = 6.0
_PHASES = "collectives,start,forward,backward,checkpoint"


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distributed", description=__doc__)
    parser.add_argument("--torch", help="the python of an environment with PyTorch, to compare with")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=3, help="how often each job is started, the libraries in turn")
    parser.add_argument("--seconds", type=float, default=0.2, help="of each round within a job")
    parser.add_argument(
        "--kills", type=int, default=0, help="so many jobs in each phase in which a rank is killed, too"
    )
    parser.add_argument("--phases", default=_PHASES, help=f"some of {_PHASES}")
    parser.add_argument("--stops", type=int, default=0, help="so many jobs in which a rank is stopped, too")
    parser.add_argument("--json", type=Path, help="write the results of all rounds here")
    parser.add_argument("--write", type=Path, help="write the table here")
    given = parser.parse_args()
    given.parts = [part for part in given.only.split(",") if part]
    unknown = set(given.parts) - set(PARTS)
    if unknown:
        parser.error(f"--only has {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return given


def collectives(given: argparse.Namespace) -> Iterator[Row]:
    """Measure all_reduce."""
    for ranks in (2, 4):
        rows = {
            str(size): Row(f"all_reduce, {_NAMES[size]}, {ranks} ranks", "s", _GOALS.get((ranks, size)))
            for size in SIZES
        }
        for _ in range(given.rounds):
            for library, python in pythons(given.torch).items():
                (found,) = run(library, python, ranks, "collectives", given.seconds)
                for size, value in found.items():
                    rows[size].found.setdefault(library, []).append(value)
        yield from rows.values()


def scaling(given: argparse.Namespace) -> Iterator[Row]:
    """Measure training steps of one process and of two, which have twice the data."""
    for name, goal in _SHARES.items():
        row = Row(f"training, {name}: speed of each of 2 processes", "%", goal)
        for _ in range(given.rounds):
            for library, python in pythons(given.torch).items():
                one, two = (run(library, python, ranks, name, given.seconds)[0] for ranks in (1, 2))
                row.found.setdefault(library, []).append(one / two)
        yield row


def _single(given: argparse.Namespace, row: Row, ranks: int, what: str) -> Iterator[Row]:
    for _ in range(given.rounds):
        for library, python in pythons(given.torch).items():
            row.found.setdefault(library, []).append(run(library, python, ranks, what, given.seconds)[0])
    yield row


def start(given: argparse.Namespace) -> Iterator[Row]:
    """Measure the time from the import to the end of the first collective."""
    return _single(given, Row("from the import to the first all_reduce, 2 ranks", "s", 0.3), 2, "start")


def store(given: argparse.Namespace) -> Iterator[Row]:
    """Measure how long many clients of a store take to meet."""
    return _single(given, Row(f"{CLIENTS} clients of a store meet, from 4 processes", "s", 1.0), 4, "store")


PARTS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "collectives": collectives,
    "scaling": scaling,
    "start": start,
    "store": store,
}


def failures(phase: str, count: int) -> tuple[Row, list[str]]:
    """Kill a rank of three so many times, or stop it; return how long the others took to be told,
    and the messages that do not name it.
    """
    what, goal = ("stopped", _STOP_GOAL) if phase == "stopped" else (f"killed: {phase}", _KILL_GOAL)
    row = Row(f"a rank is {what}, {count} times: the last of the others is told", "s", goal)
    wrong = []
    moments = random.Random(phase)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            mark = str(Path(folder) / str(number))
            found = run(
                "candelabra", pythons(None)["candelabra"], 3, FAILS + phase, 0.0, mark, str(moments.uniform(0, 0.3))
            )
            row.found.setdefault("candelabra", []).append(max(taken for taken, _, _ in found))
            wrong += [text for _, is_named, text in found if not is_named]
            if len(found) < 2:
                wrong.append("a rank was not told")
    return row, wrong


def main() -> int:
    """Measure, print and write the table."""
    given = arguments()
    rows: list[Row] = []
    status = 0
    print(f"{processor()}, {threads()} processors; medians of {given.rounds} runs", flush=True)
    for part in given.parts:
        for row in PARTS[part](given):
            rows.append(row)
            print(" | ".join(row.cells()), flush=True)
    chosen = [(phase, given.kills) for phase in given.phases.split(",")] + [("stopped", given.stops)]
    for phase, count in chosen:
        if count:
            row, wrong = failures(phase, count)
            rows.append(row)
            slowest = max(row.found["candelabra"])
            print(f"{' | '.join(row.cells())}; the slowest: {1e3 * slowest:.0f} ms", flush=True)
            print("\n".join([f"{len(wrong)} messages do not name it", *wrong]), flush=True)
            status = max(status, int(bool(wrong) or slowest > (row.goal or 0)))
    if given.json:
        given.json.write_text(json.dumps([vars(row) for row in rows], indent=1) + "\n")
    if given.write:
        given.write.write_text(table(rows))
    return status


if __name__ == "__main__":
    raise SystemExit(main())
