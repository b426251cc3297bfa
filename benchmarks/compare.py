"""Candelabra against PyTorch, side by side in one process: a table of times and ratios.

Each workload is written once, for a module that is either framework. Per workload both sides are warmed up, then timed in turn over
several rounds; the figures are medians. Run by ``nox -s bench``; ``--json FILE`` writes the figures as well.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

# PyTorch is the peer here and nothing more; nothing of Candelabra needs it.
import torch
from waiting import ROWS

import candelabra

Work = Callable[[], Any]


@dataclass
class Workload:
    """One line of the table: what is timed, given the framework, and the ratio that is asked for."""

    name: str
    make: Callable[[ModuleType], Work]
    target: float | None = None


def add_small(xp: ModuleType) -> Work:
    a, b = xp.randn(4), xp.randn(4)
    return lambda: a + b


def add_small_grad(xp: ModuleType) -> Work:
    a, b = xp.randn(4, requires_grad=True), xp.randn(4)
    return lambda: a + b


def chain_backward(xp: ModuleType) -> Work:
    x = xp.randn(4, requires_grad=True)

    def run() -> None:
        y = x
        for _ in range(20):
            y = y * 1.01 + 0.1
        y.sum().backward()
        x.grad = None

    return run


def linear_small(xp: ModuleType) -> Work:
    layer, x = xp.nn.Linear(8, 8), xp.randn(1, 8)

    def run() -> None:
        layer(x)

    def without_grad() -> None:
        with xp.no_grad():
            for _ in range(10):
                run()

    return without_grad


def mlp(xp: ModuleType, optimizer: Callable[[Any], Any]) -> Work:
    nn = xp.nn
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    step = optimizer(model.parameters())
    x, y = xp.randn(32, 64), xp.randint(0, 10, (32,))
    loss_function = nn.CrossEntropyLoss()

    def run() -> None:
        step.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        step.step()

    return run


def mlp_sgd(xp: ModuleType) -> Work:
    return mlp(xp, lambda parameters: xp.optim.SGD(parameters, lr=0.01))


def mlp_adam(xp: ModuleType) -> Work:
    return mlp(xp, lambda parameters: xp.optim.Adam(parameters, lr=0.001))


def matmul(size: int, dtype: str) -> Callable[[ModuleType], Work]:
    def make(xp: ModuleType) -> Work:
        a = xp.randn(size, size, dtype=getattr(xp, dtype))
        b = xp.randn(size, size, dtype=getattr(xp, dtype))
        return lambda: a @ b

    return make


def large(function: Callable[[ModuleType, Any], Any], *shape: int) -> Callable[[ModuleType], Work]:
    def make(xp: ModuleType) -> Work:
        x = xp.rand(*shape) + 0.5
        return lambda: function(xp, x)

    return make


def convolution(channels: int, groups: int) -> Callable[[ModuleType], Work]:
    def make(xp: ModuleType) -> Work:
        layer, x = xp.nn.Conv2d(channels, channels, 3, padding=1, groups=groups), xp.randn(16, channels, 56, 56)

        def run() -> None:
            with xp.no_grad():
                layer(x)

        return run

    return make


def targets() -> dict[str, float]:
    # On AMD, MKL runs its AVX2 path; there the gain from choosing the library by measurement is larger.
    with open("/proc/cpuinfo") as file:
        amd = "AuthenticAMD" in file.read()
    return {"matmul": 0.6 if amd else 1.0}


def workloads() -> list[Workload]:
    return [
        Workload("a + b, 4 elements", add_small, 0.35),
        Workload("the same, requires_grad", add_small_grad, 0.5),
        Workload("20 x (x * 1.01 + 0.1), backward", chain_backward, 0.45),
        Workload("nn.Linear(8, 8), no grad, 10 times", linear_small, 0.5),
        Workload("MLP 64-128-128-10, batch 32, SGD step", mlp_sgd, 0.6),
        Workload("the same, Adam step", mlp_adam),
        Workload("matmul 1024, float32", matmul(1024, "float32"), targets()["matmul"]),
        Workload("matmul 1024, float64", matmul(1024, "float64")),
        Workload("a + a, 10 million", large(lambda xp, x: x + x, 10_000_000)),
        Workload("exp, 4 million", large(lambda xp, x: xp.exp(x), 4_000_000)),
        Workload("tanh, 4 million", large(lambda xp, x: xp.tanh(x), 4_000_000)),
        Workload("sum, 10 million", large(lambda xp, x: x.sum(), 10_000_000)),
        Workload("var of 2048 x 2048 along rows", large(lambda xp, x: x.var(1), 2048, 2048)),
        Workload("softmax, 4096 x 1000", large(lambda xp, x: xp.softmax(x, 1), 4096, 1000)),
        Workload("sort, 1 million", large(lambda xp, x: xp.sort(x), 1_000_000)),
        Workload("conv 3x3, 16 x 64 x 56 x 56", convolution(64, 1)),
        Workload("the same, depthwise", convolution(64, 64)),
        Workload(
            "max_pool2d 3x3, 16 x 64 x 112 x 112", large(lambda xp, x: xp.nn.functional.max_pool2d(x, 3, 2, 1), 16, 64, 112, 112)
        ),
        *(Workload(name, make) for name, make in ROWS),
    ]


def repetitions(work: Work, seconds: float) -> int:
    """How often to call `work` so that it takes about this long."""
    start = time.perf_counter()
    work()
    once = max(time.perf_counter() - start, 1e-7)
    return max(int(seconds / once), 1)


def timed(work: Work, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - start) / count


def measure(workload: Workload, rounds: int, seconds: float) -> tuple[float, float]:
    """Median seconds of one call, of Candelabra and of PyTorch, timed in turn."""
    sides = [workload.make(candelabra), workload.make(torch)]
    for side in sides:
        timed(side, repetitions(side, seconds))
    counts = [repetitions(side, seconds) for side in sides]
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for side, count, into in zip(sides, counts, times, strict=True):
            into.append(timed(side, count))
    return statistics.median(times[0]), statistics.median(times[1])


def duration(seconds: float) -> str:
    return f"{seconds * 1e3:9.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:9.2f} us"


def processor() -> str:
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.processor())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.1, help="of one side in one round")
    parser.add_argument("--only", default="", help="workloads whose name holds this")
    parser.add_argument("--json", help="also write the figures here")
    options = parser.parse_args()
    threads = len(os.sched_getaffinity(0))
    candelabra.set_num_threads(threads)
    torch.set_num_threads(threads)
    print(
        f"{processor()}, {threads} threads; Candelabra {candelabra.__version__}, PyTorch {torch.__version__}; medians of {options.rounds} rounds"
    )
    print(f"{'workload':40} {'Candelabra':>12} {'PyTorch':>12} {'ratio':>7} {'at most':>8}")
    rows = []
    for workload in workloads():
        if options.only not in workload.name:
            continue
        ours, theirs = measure(workload, options.rounds, options.seconds)
        ratio = ours / theirs
        target = "" if workload.target is None else f"{workload.target:.2f}" + (" met" if ratio <= workload.target else " MISSED")
        print(f"{workload.name:40} {duration(ours):>12} {duration(theirs):>12} {ratio:7.3f} {target:>8}", flush=True)
        rows.append({"name": workload.name, "ours": ours, "theirs": theirs, "ratio": ratio, "target": workload.target})
    if rows:
        print(f"geometric mean of the ratios: {statistics.geometric_mean(row['ratio'] for row in rows):.3f}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
