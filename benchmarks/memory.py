"""Measure the peak memory of training steps, each framework in its own process: ``python -m
benchmarks.memory LIBRARY NAME``.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from .inputs import fill, integers, normal
from .workloads import training_steps

ROOT = Path(__file__).parent.parent
STEPS = 5


def status() -> dict[str, int]:
    """Return the kB lines of /proc/self/status, in bytes."""
    with open("/proc/self/status") as file:
        return {
            name: 1024 * int(amount) for name, amount in re.findall(r"^(\w+):\s+(\d+) kB$", file.read(), re.MULTILINE)
        }


def set_up(xp: Any) -> None:
    """Train a small model, so that what a framework loads, builds and measures on first use is not
    counted.
    """
    x, classes, loss = normal(64, 128).make(xp), integers(128, 64).make(xp), xp.nn.CrossEntropyLoss()
    for optimizer in ("SGD", "Adam", "AdamW"):
        model = fill(xp, xp.nn.Sequential(xp.nn.Linear(128, 128), xp.nn.ReLU()))
        made = getattr(xp.optim, optimizer)(model.parameters(), lr=0.1)
        for _ in range(2):
            made.zero_grad()
            loss(model(x), classes).backward()
            made.step()


def give_back(library: str) -> None:
    """Free the heap's unused pages and our allocator's cache, so that the step's own use of them is
    counted.
    """
    gc.collect()
    if library == "candelabra":
        importlib.import_module("candelabra.backends").empty_cache()
    ctypes.CDLL(None).malloc_trim(0)


def peak(library: str, name: str) -> int:
    """Return the peak bytes of a model, its gradients, its optimizer and some steps.

    The count starts after the import and a few steps of a small model. File-backed pages are
    excluded: they depend on which parts of its libraries a framework has touched.
    """
    xp: Any = importlib.import_module(library)
    xp.set_num_threads(2)
    importlib.import_module(f"{library}.optim")
    workload = training_steps()[name]
    set_up(xp)
    give_back(library)
    before = status()["RssAnon"]
    work = workload.make(xp)
    give_back(library)  # exclude the temporary memory of initialization
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    for _ in range(STEPS):
        work()
    after = status()
    return max(0, after["VmHWM"] - after["RssFile"] - after["RssShmem"] - before)


def measure_all(pattern: str = "") -> list[dict[str, Any]]:
    """Measure each training step in turn, in separate processes. Return the lower of two."""
    found = []
    print(f"\npeak memory of training steps{'':35} {'Candelabra':>11} {'PyTorch':>11} {'ratio':>6}")
    for name, workload in training_steps().items():
        if not re.search(pattern, workload.full_name):
            continue
        peaks: dict[str, list[int]] = {"candelabra": [], "torch": []}
        for _ in range(2):
            for library, into in peaks.items():
                run = subprocess.run(
                    [sys.executable, "-m", "benchmarks.memory", library, name],
                    capture_output=True,
                    text=True,
                    check=True,
                    cwd=ROOT,
                )
                into.append(json.loads(run.stdout))
        ours, theirs = min(peaks["candelabra"]), min(peaks["torch"])
        found.append({"name": name, "ours": ours, "theirs": theirs})
        print(f"  {name:62} {ours / 1e6:8.1f} MB {theirs / 1e6:8.1f} MB {ours / theirs:6.3f}", flush=True)
    return found


if __name__ == "__main__":
    print(peak(*sys.argv[1:]))
