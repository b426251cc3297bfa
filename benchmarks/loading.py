"""Samples a second through the DataLoader: ``python benchmarks/loading.py [candelabra] [torch]``, each in a process of its own, in turn."""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from typing import Any

#: Name, how many samples, how many different ones, their shape, workers.
CASES = [
    ("small", 20000, 2000, (3, 32, 32), 0),
    ("small", 20000, 2000, (3, 32, 32), 2),
    ("large", 512, 50, (3, 512, 512), 2),
    ("map", 20000, 2000, (3, 32, 32), 2),
]


def dataset(library: Any, data: Any, kind: str, count: int, different: int, shape: tuple[int, ...]) -> Any:
    """Samples of random numbers in a tensor, or in a memory map of NumPy."""
    values: Any = library.rand(different, *shape)
    if kind == "map":
        import tempfile

        import numpy as np

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


def measure(name: str) -> None:
    """Print a line for each case."""
    library, data = importlib.import_module(name), importlib.import_module(f"{name}.utils.data")
    for kind, count, different, shape, workers in CASES:
        rows = dataset(library, data, kind, count, different, shape)
        loader = data.DataLoader(rows, batch_size=64, shuffle=True, num_workers=workers)
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            seen = sum(batch.shape[0] for batch, _ in loader)
            best = min(best, time.perf_counter() - start)
        print(
            f"{name:>10}  {kind:>5} {'x'.join(map(str, shape)):>10}  {workers} workers  {seen / best:10,.0f} samples/s", flush=True
        )


def main() -> None:
    """Measure each library in turn, twice."""
    names = sys.argv[1:] or ["candelabra", "torch"]
    if len(names) == 1:
        measure(names[0])
        return
    for _ in range(2):
        for name in names:
            subprocess.run([sys.executable, __file__, name], check=True)


if __name__ == "__main__":
    main()
