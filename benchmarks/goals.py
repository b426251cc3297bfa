"""What compiled steps must reach, each line beside its figure: ``python -m benchmarks.goals``.

Each number of threads has a process of its own, bound to as many processors, so that JAX, whose
threads have no setting, computes on as many. With ``--torch-compile``, which needs g++ and minutes,
training steps are timed beside torch.compile too. Lines without a peer that is installed are left
out. Ratios are of times that were measured in turn. The time of the first step is that of its
thread, in a new process. The exit status is 1 if a goal is missed and ``--require`` is given.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import candelabra
from candelabra import nn

from .inputs import normal
from .measuring import measure
from .replayed import chain, compiled, compiled_by_torch, first_call, peak, trivial
from .workload import Work, Workload
from .workloads import all_workloads

MLP = "training: MLP 64-128-128-10, batch 32, SGD"
CHAIN = "elementwise: chain of 8 operators, 10 M"


class Goals:
    """Prints lines, and counts the goals that are missed."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.missed = 0

    def line(self, what: str, found: float, most: float, unit: str = "") -> None:
        """Print a figure beside the most that it may be."""
        is_reached = found <= most
        self.missed += not is_reached
        print(
            f"{self.threads:>2} threads  {what:66} {found:8.3f}{unit:3} <= {most:6.3f}{unit:3} "
            f"{'reached' if is_reached else 'MISSED'}",
            flush=True,
        )


def forward_of_one(xp: Any) -> Work:
    """Return the forward pass of an MLP with one sample, compiled if `xp` is."""
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    x = normal(1, 64).make(candelabra)

    def call() -> Any:
        return model(x)

    return call


def milliseconds_of_first_calls(make: Callable[[Any], Work]) -> float:
    """Return how much longer the calls that make a program take than ordinary ones."""
    workload = Workload("first", make)
    return 1e3 * min(first_call(workload)[1] for _ in range(3))


def print_first_step() -> None:
    """Print how many milliseconds of this thread the calls that make a program of the MLP's step
    take beyond ordinary ones. In a new process, the import of the compiler is among them.
    """
    make = next(workload.make for workload in all_workloads() if workload.full_name == MLP)

    def run(work: Work) -> float:
        begun = time.thread_time()
        for _ in range(3):
            work()
        return time.thread_time() - begun

    run(make(candelabra))
    ordinary = run(make(candelabra))
    work = make(candelabra)
    begun = time.thread_time()
    recorded = candelabra.compile(work)
    imported = time.thread_time() - begun
    print(1e3 * (imported + run(recorded) - ordinary))


def milliseconds_of_first_step(threads: int) -> float:
    """Return what `print_first_step` prints in a new process: the least of five."""
    command = [sys.executable, "-m", "benchmarks.goals", "--threads", str(threads), "--print-first-step"]
    return min(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(5))


def check_small(goals: Goals, rounds: int, seconds: float) -> None:
    """Check the cost of a call, the forward pass of one sample and the first calls."""
    call = Workload("trivial call", trivial, recording=False)
    (once,) = measure(call, [candelabra], rounds, seconds).medians
    goals.line("a trivial call of one kernel", 1e6 * once, 1.6, "us")
    one = Workload("forward", forward_of_one, recording=False)
    eager, replayed = measure(
        one, [candelabra, candelabra], rounds, seconds, [forward_of_one, compiled(forward_of_one)]
    ).medians
    goals.line("forward pass of one sample, to eager", replayed / eager, 0.6)
    first = milliseconds_of_first_step(goals.threads)
    goals.line("first compiled MLP step with the import, beyond eager", first, 20, "ms")
    goals.line("first compiled chain, beyond eager", milliseconds_of_first_calls(chain), 30, "ms")


def check_chain(goals: Goals, peers: dict[str, Any], rounds: int, seconds: float) -> None:
    """Check the chain of elementwise operators beside JAX."""
    if CHAIN not in peers:
        return
    workload = Workload("chain", chain, family="elementwise")
    ours, jax = measure(workload, [candelabra, "jax"], rounds, seconds, [compiled(chain), peers[CHAIN]]).medians
    goals.line("chain of 8 operators, to JAX's jit", ours / jax, 0.5)


def check_training(goals: Goals, peers: dict[str, Any], options: argparse.Namespace) -> None:
    """Check each training step beside eager calls and compilers."""
    for workload in all_workloads():
        if workload.family != "training" or not workload.recording or not re.search(options.only, workload.full_name):
            continue
        sides: list[Any] = [candelabra, candelabra]
        makes: list[Any] = [workload.make, compiled(workload.make)]
        names = ["eager"]
        if options.torch_compile:
            import torch

            sides.append(torch)
            makes.append(compiled_by_torch(workload.make))
            names.append("torch.compile")
        if workload.full_name in peers:
            sides.append("jax")
            makes.append(peers[workload.full_name])
            names.append("JAX's jit")
        eager, ours, *others = measure(workload, sides, options.rounds, options.seconds, makes).medians
        for name, theirs in zip(names, [eager, *others], strict=True):
            most = {"eager": 0.5, "JAX's jit": 0.55}.get(name, 1.0) if workload.full_name == MLP else 1.0
            goals.line(f"{workload.name}, to {name}", ours / theirs, most)
        if "GPT" in workload.name and "AdamW" in workload.name:
            with candelabra.set_grad_enabled(True):
                most_bytes = [peak(make) for make in (compiled(workload.make), workload.make)]
            goals.line(f"{workload.name}, peak memory to eager", most_bytes[0] / most_bytes[1], 0.85)


def check(options: argparse.Namespace) -> int:
    """Check all goals on one number of threads."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    candelabra.set_num_threads(options.threads)
    peers: dict[str, Any] = {}
    if options.torch_compile:
        import torch

        torch.set_num_threads(options.threads)
    if importlib.util.find_spec("jax") is not None:
        from .compiled import PEERS

        peers = PEERS
    goals = Goals(options.threads)
    check_small(goals, options.rounds, options.seconds)
    check_chain(goals, peers, options.rounds, options.seconds)
    check_training(goals, peers, options)
    return goals.missed


def main() -> int:
    """Check the goals on each number of threads. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a regular expression of the training steps' names")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.1, help="of a stretch")
    parser.add_argument("--threads", type=int, help="in this process; without it, one and two in turn")
    parser.add_argument("--torch-compile", action="store_true", help="time torch.compile too")
    parser.add_argument("--require", action="store_true", help="fail where a goal is missed")
    parser.add_argument("--print-first-step", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.print_first_step:
        candelabra.set_num_threads(options.threads or 1)
        print_first_step()
        return 0
    if options.threads is not None:
        return min(check(options), 100)
    missed = 0
    for threads in (1, 2):
        command = [sys.executable, "-m", "benchmarks.goals", "--threads", str(threads), *sys.argv[1:]]
        missed += subprocess.run(command, check=False).returncode
    print(f"{missed} goals are missed, at {time.strftime('%Y-%m-%d %H:%M')}")
    return 1 if missed and options.require else 0


if __name__ == "__main__":
    sys.exit(main())
