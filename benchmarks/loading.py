"""Measure the DataLoader's samples per second, each framework in its own process: ``python -m
benchmarks.loading LIBRARY``.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
#: Name, number of samples, number of distinct samples, shape, workers.
CASES = [
    ("tensors", 20000, 2000, (3, 32, 32), 0),
    ("tensors", 20000, 2000, (3, 32, 32), 2),
    ("tensors", 512, 50, (3, 512, 512), 2),
    ("memory map", 20000, 2000, (3, 32, 32), 2),
]


def dataset(library: Any, data: Any, kind: str, count: int, different: int, shape: tuple[int, ...]) -> Any:
    """Return a dataset of random numbers in a tensor or a NumPy memory map."""
    values: Any = library.rand(different, *shape)
    if kind == "memory map":
        with tempfile.NamedTemporaryFile() as file:
            mapped = np.memmap(file.name, np.float32, "r+", shape=values.shape)
            mapped[:] = values.numpy()
            values = mapped

    class Rows(data.Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return count

        def __getitem__(self, index: int) -> Any:
            return values[index % different], index

    return Rows()


def samples_a_second(name: str) -> list[float]:
    """Return the best of three passes for each case."""
    library, data = importlib.import_module(name), importlib.import_module(f"{name}.utils.data")
    found = []
    for kind, count, different, shape, workers in CASES:
        loader = data.DataLoader(
            dataset(library, data, kind, count, different, shape), batch_size=64, shuffle=True, num_workers=workers
        )
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            seen = sum(batch.shape[0] for batch, _ in loader)
            best = min(best, time.perf_counter() - start)
        found.append(seen / best)
    return found


def measure_all() -> list[dict[str, Any]]:
    """Measure each framework twice in turn, and return the better result."""
    best: dict[str, list[float]] = {"candelabra": [], "torch": []}
    for _ in range(2):
        for library in best:
            run = subprocess.run(
                [sys.executable, "-m", "benchmarks.loading", library],
                capture_output=True,
                text=True,
                check=True,
                cwd=ROOT,
            )
            rates = json.loads(run.stdout)
            best[library] = [max(pair) for pair in zip(best[library] or rates, rates, strict=True)]
    print("\nsamples a second through the DataLoader")
    rows = []
    for (kind, _, _, shape, workers), ours, theirs in zip(CASES, *best.values(), strict=True):
        rows.append(
            {"name": f"{kind} of {' x '.join(map(str, shape))}, {workers} workers", "ours": ours, "theirs": theirs}
        )
        print(f"  {rows[-1]['name']:62} {ours:9,.0f}/s {theirs:9,.0f}/s {theirs / ours:6.3f}", flush=True)
    return rows


if __name__ == "__main__":
    print(json.dumps(samples_a_second(sys.argv[1])))
