"""Measure what an exported program costs: ``python -m benchmarks.exported``.

The table has the size of a multilayer perceptron's file beyond its weights, the time from the end
of the import to the first result in Python, and the time of `candelabra-run` from the start of the
process to its end, with the goals of each. Beside times stand those of the processors, which are
the same on a machine that does other work.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import candelabra
import candelabra_backend_cpu
import candelabra_runner
from candelabra import nn
from candelabra.export import export, save
from candelabra.serialization import save_npy

#: A process of its own, in which no kernel has run: the time of loading and the first call. The
#: parameters of a module ask for gradients, so that autograd is among what is imported.
LOADING = """
import sys, time
import candelabra, candelabra.autograd
from candelabra.export import load
x = candelabra.ones(32, 784)
begin, used = time.perf_counter(), time.process_time()
load(sys.argv[1]).module()(x)
print(time.perf_counter() - begin, time.process_time() - used)
"""


@dataclass
class Figure:
    """One measurement and its goal, in the same unit."""

    name: str
    value: float
    goal: float
    unit: str
    #: Of a time: that of all processors.
    used: float | None = None

    def line(self) -> str:
        """Return a row of the table."""
        reached = "reached" if self.value <= self.goal else "NOT REACHED"
        used = "" if self.used is None else f"  ({self.used:.2f} {self.unit} of the processors)"
        return f"{self.name:44} {self.value:9.2f} {self.unit:3} at most {self.goal:5.0f}  {reached}{used}"


def saved_model(folder: Path) -> tuple[Path, Path, int]:
    """Save a multilayer perceptron and an array for it; return both paths and the bytes of the
    weights.
    """
    candelabra.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)).eval()
    path, array = folder / "model.cex", folder / "x.npy"
    x = candelabra.randn(32, 784)
    save(export(model, (x,)), path, runner=True)
    save_npy(array, x)
    return path, array, sum(tensor.nbytes for tensor in model.state_dict().values())


Seconds = tuple[float, float]


def loading_seconds(path: Path) -> Seconds:
    """Return the seconds of loading a file and its first call, after the import, and those of the
    processors.
    """
    done = subprocess.run([sys.executable, "-c", LOADING, path], capture_output=True, text=True, check=True)
    seconds, used = map(float, done.stdout.split())
    return seconds, used


def processor_seconds() -> float:
    """Return the seconds of the processors that processes of this one have used."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def runner_seconds(path: Path, array: Path) -> Seconds:
    """Return the seconds of a process that runs a file without Python, and the processors'."""
    command = [
        candelabra_runner.executable_path(), path, array, "--output", path.parent / "result.npy",
        "--backend", candelabra_backend_cpu.library_path(),
    ]  # fmt: skip
    begin, used = time.perf_counter(), processor_seconds()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - begin, processor_seconds() - used


def least(seconds: Callable[[], Seconds], rounds: int) -> tuple[float, float]:
    """Return the least of each, in milliseconds."""
    times, used = zip(*(seconds() for _ in range(rounds)), strict=True)
    return 1e3 * min(times), 1e3 * min(used)


def measured(rounds: int) -> list[Figure]:
    """Return all figures; times are the best of this number of processes."""
    with tempfile.TemporaryDirectory() as folder:
        path, array, weights = saved_model(Path(folder))
        loading = least(lambda: loading_seconds(path), rounds)
        running = least(lambda: runner_seconds(path, array), rounds)
        return [
            Figure("file of the perceptron, beyond its weights", (path.stat().st_size - weights) / 1024, 16, "KB"),
            Figure("load and first call in Python, after import", loading[0], 3, "ms", loading[1]),
            Figure("candelabra-run, from start to end", running[0], 30, "ms", running[1]),
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11, help="processes of each kind")
    for figure in measured(parser.parse_args().rounds):
        print(figure.line())


if __name__ == "__main__":
    main()
