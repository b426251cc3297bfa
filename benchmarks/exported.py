"""Measure what an exported program costs: ``python -m benchmarks.exported``.

The table has the size of a multilayer perceptron's file beyond its weights, the time from the end
of the import to the first result in Python, and the time of `candelabra-run` from the start of the
process to its end, with the goals of each.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
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
begin = time.perf_counter()
load(sys.argv[1]).module()(x)
print(time.perf_counter() - begin)
"""


@dataclass
class Figure:
    """One measurement and its goal, in the same unit."""

    name: str
    value: float
    goal: float
    unit: str

    def line(self) -> str:
        """Return a row of the table."""
        reached = "reached" if self.value <= self.goal else "NOT REACHED"
        return f"{self.name:44} {self.value:9.2f} {self.unit:3} at most {self.goal:5.0f}  {reached}"


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


def loading_seconds(path: Path) -> float:
    """Return the seconds of loading a file and its first call, after the import."""
    done = subprocess.run([sys.executable, "-c", LOADING, path], capture_output=True, text=True, check=True)
    return float(done.stdout)


def runner_seconds(path: Path, array: Path) -> float:
    """Return the seconds of a process that runs a file without Python."""
    command = [
        candelabra_runner.executable_path(), path, array, "--output", path.parent / "result.npy",
        "--backend", candelabra_backend_cpu.library_path(),
    ]  # fmt: skip
    begin = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - begin


def measured(rounds: int) -> list[Figure]:
    """Return all figures; times are the best of this number of processes."""
    with tempfile.TemporaryDirectory() as folder:
        path, array, weights = saved_model(Path(folder))
        loading = min(loading_seconds(path) for _ in range(rounds))
        running = min(runner_seconds(path, array) for _ in range(rounds))
        return [
            Figure("file of the perceptron, beyond its weights", (path.stat().st_size - weights) / 1024, 16, "KB"),
            Figure("load and first call in Python, after import", 1e3 * loading, 3, "ms"),
            Figure("candelabra-run, from start to end", 1e3 * running, 30, "ms"),
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11, help="processes of each kind")
    for figure in measured(parser.parse_args().rounds):
        print(figure.line())


if __name__ == "__main__":
    main()
