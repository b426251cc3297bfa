"""Count the instructions of one call with callgrind, which do not depend on the load: ``python -m
benchmarks.instructions [LIBRARY]``.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .inputs import normal
from .workload import Work, Workload
from .workloads import calls

ROOT = Path(__file__).parent.parent
CALLS = 100
#: Warm-up calls, which specialize types and fill caches.
WARM = 30


def _backward(xp: Any) -> Work:
    x = normal(4, grad=True).make(xp)

    def run() -> None:
        (x * 1.01 + 0.1).sum().backward()
        x.grad = None

    return run


def _optimizer(xp: Any) -> Work:
    parameters = [xp.nn.Parameter(normal(4).make(xp)) for _ in range(10)]
    for parameter in parameters:
        parameter.grad = normal(4, number=1).make(xp)
    made = xp.optim.SGD(parameters, lr=0.01)
    return lambda: made.step()


#: Workloads whose instructions are counted.
CALLS_COUNTED = (
    "a + b, 4 elements", "a + b, requires_grad", "a * 2.0", "x[0]", "x[1:3]", "x.sum(1)", "x @ x, 8 x 8", "x.view(64)", "x.reshape(4, 16)",
    "x.split(4)", "x.to(float64)", "x.shape", "x.detach()", "x.tolist()", "x.grad", "no_grad()", "empty(4)", "zeros(4)", "arange(8)", "exp(a)",
    "softmax of 8 x 8", "layer_norm of 8 x 8", "cross_entropy of 8 x 10", "nn.Linear(8, 8), no grad", "nn.Conv2d(3, 8, 3), 1 x 3 x 8 x 8",
    "Sequential of Linear, ReLU, Linear, no grad",
)  # fmt: skip
_LINES = {workload.name: workload for workload in calls.WORKLOADS}
#: The first row is the empty loop, which is subtracted from the others.
ROWS: list[Workload] = [
    Workload("nothing", lambda xp: lambda: None),
    *(_LINES[name] for name in CALLS_COUNTED),
    Workload("(x * 1.01 + 0.1).sum().backward()", _backward),
    Workload("SGD over 10 of 4", _optimizer),
]


def run_rows(library: str) -> None:
    """Run the rows under callgrind, which writes its counts at each call of getppid."""
    xp = importlib.import_module(library)
    importlib.import_module(f"{library}.optim")
    xp.set_num_threads(1)
    for row in ROWS:
        work = row.make(xp)
        with contextlib.nullcontext() if row.recording else xp.no_grad():
            for _ in range(WARM):
                work()
            os.getppid()
            for _ in itertools.repeat(None, CALLS):
                work()
            os.getppid()


def counted(library: str) -> list[float]:
    """Return the instructions per call of each row."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                "valgrind", "--tool=callgrind", "--dump-before=getppid", f"--callgrind-out-file={folder}/counts",
                sys.executable, "-m", "benchmarks.instructions", "--run", library,
            ],
            check=True, capture_output=True, text=True, cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        # Each getppid call ends a part: first the part before the first row's loop, then that loop,
        # and so on.
        parts = sorted(Path(folder).glob("counts.*"), key=lambda path: int(path.suffix[1:]))
        totals = [
            int(re.findall(r"^(?:totals|summary):\s*(\d+)", path.read_text(), re.MULTILINE)[-1]) for path in parts
        ]
    calls = [total / CALLS for total in totals[1 : 2 * len(ROWS) : 2]]
    return [call - calls[0] for call in calls]


def measure_all(libraries: tuple[str, ...] = ("candelabra", "torch")) -> list[dict[str, Any]]:
    """Count for each framework. Return no rows if valgrind is not installed."""
    if shutil.which("valgrind") is None:
        print("\nvalgrind is not installed: no instructions are counted")
        return []
    counts = {library: counted(library) for library in libraries}
    print(f"\ninstructions a call{'':45} {'  '.join(f'{library:>11}' for library in counts)}")
    rows = []
    for number, row in enumerate(ROWS):
        if number:
            figures = [entries[number] for entries in counts.values()]
            rows.append({"name": row.name, "ours": figures[0], "theirs": figures[1] if len(figures) > 1 else None})
            print(f"  {row.name:62} {'  '.join(f'{figure:11,.0f}' for figure in figures)}", flush=True)
    return rows


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run_rows(sys.argv[2])
    else:
        measure_all(tuple(sys.argv[1:]) or ("candelabra", "torch"))
