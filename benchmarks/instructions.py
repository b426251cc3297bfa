"""Instructions of one call, counted by callgrind: the same on any load. ``python -m benchmarks.instructions [LIBRARY]``."""

from __future__ import annotations

import importlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .inputs import fill, integers, normal, uniform
from .workload import Work

ROOT = Path(__file__).parent.parent
CALLS = 100
#: Calls before counting begins: types are specialized, caches filled.
WARM = 30


def _add(xp: Any) -> Work:
    a, b = normal(4).make(xp), normal(4, number=1).make(xp)
    return lambda: a + b


def _add_recorded(xp: Any) -> Work:
    a, b = normal(4, grad=True).make(xp), normal(4, number=1).make(xp)
    return lambda: a + b


def _of(function: Callable[[Any, Any], Any]) -> Callable[[Any], Work]:
    def make(xp: Any) -> Work:
        x = uniform(8, 8).make(xp)
        return lambda: function(xp, x)

    return make


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


def _layer(build: Callable[[Any], Any], *shape: int) -> Callable[[Any], Work]:
    def make(xp: Any) -> Work:
        module, x = fill(xp, build(xp)), normal(*shape).make(xp)

        def run() -> Any:
            with xp.no_grad():
                return module(x)

        return run

    return make


def _cross_entropy(xp: Any) -> Work:
    x, classes = normal(8, 10).make(xp), integers(10, 8).make(xp)
    return lambda: xp.nn.functional.cross_entropy(x, classes)


def _gradient(xp: Any) -> Work:
    x = normal(4, grad=True).make(xp)
    x.sum().backward()
    return lambda: x.grad


def _no_grad(xp: Any) -> Work:
    def run() -> None:
        with xp.no_grad():
            pass

    return run


#: The first is what the loop itself takes, which is taken off the others.
ROWS: dict[str, Callable[[Any], Work]] = {
    "nothing": lambda xp: lambda: None,
    "a + b, 4 elements": _add,
    "a + b, requires_grad": _add_recorded,
    "x * 2.0": _of(lambda xp, x: x * 2.0),
    "x[0]": _of(lambda xp, x: x[0]),
    "x[1:3]": _of(lambda xp, x: x[1:3]),
    "x.sum(1)": _of(lambda xp, x: x.sum(1)),
    "x @ x, 8 x 8": _of(lambda xp, x: x @ x),
    "x.view(64)": _of(lambda xp, x: x.view(64)),
    "x.reshape(4, 16)": _of(lambda xp, x: x.reshape(4, 16)),
    "x.split(4)": _of(lambda xp, x: x.split(4)),
    "x.to(float64)": _of(lambda xp, x: x.to(xp.float64)),
    "x.shape": _of(lambda xp, x: x.shape),
    "x.detach()": _of(lambda xp, x: x.detach()),
    "x.tolist()": _of(lambda xp, x: x.tolist()),
    "x.grad": _gradient,
    "no_grad()": _no_grad,
    "empty(4)": _of(lambda xp, x: xp.empty(4)),
    "zeros(4)": _of(lambda xp, x: xp.zeros(4)),
    "arange(8)": _of(lambda xp, x: xp.arange(8)),
    "exp(x)": _of(lambda xp, x: xp.exp(x)),
    "softmax of 8 x 8": _of(lambda xp, x: xp.softmax(x, 1)),
    "layer_norm of 8 x 8": _of(lambda xp, x: xp.nn.functional.layer_norm(x, (8,))),
    "cross_entropy of 8 x 10": _cross_entropy,
    "nn.Linear(8, 8), no_grad": _layer(lambda xp: xp.nn.Linear(8, 8), 1, 8),
    "nn.Conv2d(3, 8, 3) of 1 x 3 x 8 x 8, no_grad": _layer(lambda xp: xp.nn.Conv2d(3, 8, 3), 1, 3, 8, 8),
    "Sequential of Linear, ReLU, Linear, no_grad": _layer(
        lambda xp: xp.nn.Sequential(xp.nn.Linear(8, 8), xp.nn.ReLU(), xp.nn.Linear(8, 8)), 1, 8
    ),
    "(x * 1.01 + 0.1).sum().backward()": _backward,
    "SGD over 10 of 4": _optimizer,
}


def run_rows(library: str) -> None:
    """What callgrind watches: it writes its counts whenever the process asks for its parent."""
    xp = importlib.import_module(library)
    importlib.import_module(f"{library}.optim")
    xp.set_num_threads(1)
    for make in ROWS.values():
        work = make(xp)
        for _ in range(WARM):
            work()
        os.getppid()
        for _ in itertools.repeat(None, CALLS):
            work()
        os.getppid()


def counted(library: str) -> list[float]:
    """Instructions of a call, by row."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                "valgrind", "--tool=callgrind", "--dump-before=getppid", f"--callgrind-out-file={folder}/counts",
                sys.executable, "-m", "benchmarks.instructions", "--run", library,
            ],
            check=True, capture_output=True, text=True, cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        # Parts are written before each call: the first until the first row's loop begins, the second for this loop, and so on.
        parts = sorted(Path(folder).glob("counts.*"), key=lambda path: int(path.suffix[1:]))
        totals = [int(re.findall(r"^(?:totals|summary):\s*(\d+)", path.read_text(), re.MULTILINE)[-1]) for path in parts]
    calls = [total / CALLS for total in totals[1 : 2 * len(ROWS) : 2]]
    return [call - calls[0] for call in calls]


def measure_all(libraries: tuple[str, ...] = ("candelabra", "torch")) -> list[dict[str, Any]]:
    """Count for each framework; nothing where valgrind is not installed."""
    if shutil.which("valgrind") is None:
        print("\nvalgrind is not installed: no instructions are counted")
        return []
    counts = {library: counted(library) for library in libraries}
    print(f"\ninstructions a call{'':45} {'  '.join(f'{library:>11}' for library in counts)}")
    rows = []
    for number, name in enumerate(ROWS):
        if number:
            figures = [entries[number] for entries in counts.values()]
            rows.append({"name": name, "ours": figures[0], "theirs": figures[1] if len(figures) > 1 else None})
            print(f"  {name:62} {'  '.join(f'{figure:11,.0f}' for figure in figures)}", flush=True)
    return rows


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run_rows(sys.argv[2])
    else:
        measure_all(tuple(sys.argv[1:]) or ("candelabra", "torch"))
