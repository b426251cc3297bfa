"""Load randomly mutated files: ``python tests/fuzz/files.py --mutations 1000000``.

Each load must return an object or raise FileError within limits of time and memory. Any other
outcome ends the run and names the file. A second process watches the one that loads, so that
crashes are reported, too.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "packages" / "tensor-core" / "tests"))

import file_mutations


def load(seed: int, numbers: range, place: Any, results: Any) -> None:
    """Load the files of these numbers."""
    fuzzer = file_mutations.Fuzzer(seed)
    for number in numbers[:200]:
        fuzzer.make(number)
    fuzzer.run(0)
    before = file_mutations.used_memory()
    with file_mutations.Limits() as limits:
        for number in numbers:
            place.value = number
            limits.again()
            fuzzer.run(number)
    results.put((dict(fuzzer.counts), fuzzer.slowest, file_mutations.used_memory() - before))


def main() -> int:
    """Load all files, in parts, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first file")
    parser.add_argument("--part", type=int, default=50_000, help="files a process")
    arguments = parser.parse_args()
    ctx = multiprocessing.get_context("spawn")
    counts: dict[str, int] = {}
    slowest = growth = 0.0
    began = time.monotonic()
    end = arguments.first + arguments.mutations
    for first in range(arguments.first, end, arguments.part):
        numbers = range(first, min(first + arguments.part, end))
        place, results = ctx.Value("q", first), ctx.Queue()
        process = ctx.Process(target=load, args=(arguments.seed, numbers, place, results))
        process.start()
        process.join()
        if process.exitcode != 0:
            print(
                f"file {place.value} of seed {arguments.seed} ended the process: exit code {process.exitcode}",
                file=sys.stderr,
            )
            return 1
        found, time_of_one, memory = results.get()
        for name, count in found.items():
            counts[name] = counts.get(name, 0) + count
        slowest, growth = max(slowest, time_of_one), max(growth, memory)
        print(f"{numbers.stop - arguments.first:>9} files, {time.monotonic() - began:7.0f} s", flush=True)
    for name in sorted(counts):
        print(f"{name:24} {counts[name]:>9}")
    print(f"the slowest took {slowest * 1000:.0f} ms; memory grew by {growth / 2**20:.0f} MiB at most")
    return 0


if __name__ == "__main__":
    sys.exit(main())
