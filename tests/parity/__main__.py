"""Run PyTorch's operator database through Candelabra, and write a table of differences: ``python
tests/parity``.

With ``--device cuda`` Candelabra computes on that device; PyTorch stays on the CPU. Long runs can
be divided: ``--part 1/4`` runs every fourth entry, ``--samples 10`` at most ten evenly spread
samples per dtype, and ``--save FILE`` saves the progress, from which the same command continues.
Needs torch 2.13, expecttest and hypothesis beside Candelabra's packages; ``nox -s parity`` creates
such an environment.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python tests/parity", description=__doc__)
    parser.add_argument("--only", default=".*", help="a regular expression that whole operator names must match")
    parser.add_argument(
        "--dtype", action="append", help="this dtype, any of PyTorch's, instead of the six of the table; repeatable"
    )
    parser.add_argument(
        "--device", default=os.environ.get("CANDELABRA_TEST_DEVICE", "cpu"), help="where Candelabra computes (cpu)"
    )
    parser.add_argument(
        "--samples", type=int, default=0, help="at most so many samples of each dtype, evenly spread (all)"
    )
    parser.add_argument("--part", default="1/1", help="K/N: of the chosen entries every N-th, beginning with the K-th")
    parser.add_argument(
        "--save", type=Path, help="append each entry's outcome to this file, and do not run those that are there"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument(
        "--timeout", type=float, default=120, help="seconds an entry may take before its process is ended"
    )
    parser.add_argument("--show", type=int, default=6, help="how many differences of an operator to print")
    parser.add_argument("--write", type=Path, help="write the table to this file, as Markdown")
    parser.add_argument(
        "--require", type=float, help="fail unless this percentage of the operators in scope are right in every sample"
    )
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def work(options: argparse.Namespace) -> None:
    """Run as a worker: run the entries whose numbers come on standard input, and answer each with a
    line of JSON.
    """
    import torch
    from runner import DTYPES, Record, run_entry
    from torch.testing._internal.common_methods_invocations import op_db
    from translate import DEVICE

    import candelabra

    torch.set_num_threads(1)
    candelabra.set_num_threads(1)
    if DEVICE != "cpu":
        candelabra.set_default_device(DEVICE)
    dtypes = tuple(getattr(torch, name) for name in options.dtype) if options.dtype else DTYPES
    for line in sys.stdin:
        entry = op_db[int(line)]
        try:
            record = run_entry(entry, dtypes, options.samples)
        except Exception:
            record = Record(entry.name, entry.variant_test_name)
            record.differ("crash", "the comparison itself failed: " + traceback.format_exc().replace("\n", " / "))
        print("PARITY " + json.dumps(vars(record)), flush=True)


class Worker:
    """A process that runs entries one at a time, so that a crash or a hang costs one entry."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.said = TemporaryFile("w+", errors="replace")  # noqa: SIM115 - it lives as long as the worker
        self.entry: tuple[int, str, str] | None = None
        self.since = 0.0

    def begin(self, entry: tuple[int, str, str]) -> None:
        """Send an entry to the worker."""
        if self.process is None or self.process.poll() is not None:
            command = [sys.executable, str(Path(__file__).parent), "--worker", "yes", "--samples", str(OPTIONS.samples)]
            for dtype in OPTIONS.dtype or []:
                command += ["--dtype", dtype]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, text=True, bufsize=1
            )
        self.entry, self.since = entry, time.monotonic()
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{entry[0]}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.process.kill()

    def finish(self) -> dict[str, Any]:
        """Wait for the result."""
        import threading

        assert self.process is not None and self.process.stdout is not None and self.entry is not None
        process, (_, name, variant) = self.process, self.entry
        timer = threading.Timer(OPTIONS.timeout, process.kill)
        timer.start()
        try:
            for line in process.stdout:
                if line.startswith("PARITY "):
                    return dict(json.loads(line.removeprefix("PARITY ")))
        finally:
            expired = not timer.is_alive()
            timer.cancel()
        code = process.wait()
        self.process = None
        self.said.seek(0)
        last = " ".join(self.said.read()[-400:].split())
        self.said.seek(0)
        self.said.truncate()
        reason = f"no answer within {OPTIONS.timeout:g} s" if expired else f"the process ended with {code}"
        return {"name": name, "variant": variant, "samples": 0, "errors": 0, "checks": {}, "kinds": {"crash": 1},
                "differences": [f"crash: {reason}: {last}"]}  # fmt: skip


def entries(pattern: str) -> tuple[list[tuple[int, str, str]], dict[str, str]]:
    """Return the entries in scope whose names match, and the names out of scope with their
    reasons.
    """
    from scope import out_of_scope
    from torch.testing._internal.common_methods_invocations import op_db

    chosen, excluded = [], {}
    for number, entry in enumerate(op_db):
        reason = out_of_scope(entry.name)
        if reason is None and type(entry.op).__name__ in ("OpOverload", "OpOverloadPacket"):
            reason = "a private operator without a public name"
        if reason is not None:
            excluded[entry.name] = reason
        elif re.fullmatch(pattern, entry.name):
            chosen.append((number, entry.name, entry.variant_test_name))
    return chosen, excluded


def main() -> int:
    """Run the entries, print the results, write the page."""
    from concurrent.futures import ThreadPoolExecutor
    from queue import Queue

    from report import merge, print_table, write_markdown

    chosen, excluded = entries(OPTIONS.only)
    part, parts = (int(number) for number in OPTIONS.part.split("/"))
    chosen = chosen[part - 1 :: parts]
    if not chosen:
        print(f"no operator in scope matches {OPTIONS.only!r}")
        return 2
    saved = {}
    if OPTIONS.save and OPTIONS.save.exists():
        saved = {(row["name"], row["variant"]): row for row in map(json.loads, OPTIONS.save.read_text().splitlines())}
    workers: Queue[Worker] = Queue()
    for _ in range(OPTIONS.jobs):
        workers.put(Worker())

    def run(entry: tuple[int, str, str]) -> dict[str, Any]:
        if entry[1:] in saved:
            return dict(saved[entry[1:]])
        worker = workers.get()
        try:
            worker.begin(entry)
            row = worker.finish()
        finally:
            workers.put(worker)
        if OPTIONS.save:
            with OPTIONS.save.open("a") as file:
                file.write(json.dumps(row) + "\n")
        return row

    from tqdm import tqdm

    with ThreadPoolExecutor(OPTIONS.jobs) as pool:
        records = list(tqdm(pool.map(run, chosen), total=len(chosen), disable=not sys.stderr.isatty()))
    while not workers.empty():
        process = workers.get().process
        if process is not None:
            process.kill()
    operators = merge(records)
    share = print_table(operators, OPTIONS.show)
    if OPTIONS.write:
        write_markdown(OPTIONS.write, operators, excluded, OPTIONS.device, OPTIONS.samples)
    return 1 if OPTIONS.require is not None and share < OPTIONS.require else 0


OPTIONS = arguments()
os.environ["CANDELABRA_TEST_DEVICE"] = OPTIONS.device
if __name__ == "__main__":
    if OPTIONS.worker:
        work(OPTIONS)
    else:
        sys.exit(main())
