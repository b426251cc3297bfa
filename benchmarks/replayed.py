"""Time compiled steps beside ordinary ones: ``python -m benchmarks.replayed``.

Each training step is run by Candelabra, by Candelabra compiled, by PyTorch, and by JAX's jit where
that is installed and has the step. The overhead of a compiled call is that of one operator on four
elements.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
import time
from collections.abc import Callable
from typing import Any

import candelabra

from .measuring import measure
from .table import duration
from .workload import Work, Workload
from .workloads import all_workloads


def compiled(make: Callable[[Any], Work]) -> Callable[[Any], Work]:
    """Return how the compiled work is built: recorded before it is timed."""

    def build(xp: Any) -> Work:
        work: Work = xp.compile(make(xp), fullgraph=True)
        for _ in range(3):
            work()
        return work

    return build


def trivial(xp: Any) -> Work:
    """Return a call of one operator on four elements."""
    x = xp.ones(4)

    def call(x: Any) -> Any:
        return x + 1

    function = xp.compile(call) if xp is candelabra else call
    return lambda: function(x)


def first_call(workload: Workload) -> tuple[float, float]:
    """Return the seconds of an ordinary first step, and of the three calls that make a program
    beyond three ordinary ones.
    """

    def run(build: Callable[[Any], Work]) -> list[float]:
        work, times = build(candelabra), []
        for _ in range(3):
            begun = time.perf_counter()
            work()
            times.append(time.perf_counter() - begun)
        return times

    run(workload.make)
    ordinary = run(workload.make)
    recorded = run(lambda xp: candelabra.compile(workload.make(xp)))
    return ordinary[0], sum(recorded) - sum(ordinary)


def main() -> int:
    """Print a table. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a regular expression of the names")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=0.2, help="of a stretch")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    import torch

    sides: list[Any] = [candelabra, candelabra, torch]
    for xp in sides[1:]:
        xp.set_num_threads(options.threads)
    peers: dict[str, Callable[[Any], Work]] = {}
    if importlib.util.find_spec("jax") is not None:
        from .compiled import PEERS

        peers = PEERS
    pattern = re.compile(options.only)
    chosen = [
        workload
        for workload in all_workloads()
        if workload.family == "training" and workload.recording and pattern.search(workload.full_name)
    ]
    print(f"{'':52} {'eager':>11} {'compiled':>11} {'PyTorch':>11} {'JAX jit':>11}  to eager  beyond eager, calls 1-3")
    for workload in chosen:
        makes = [workload.make, compiled(workload.make), workload.make]
        with_peer = workload.full_name in peers
        if with_peer:
            makes.append(peers[workload.full_name])
        found = measure(
            workload, [*sides, *(["jax"] if with_peer else [])], options.rounds, options.seconds, makes
        ).medians
        ours, replayed, theirs, *jax = (*found,)
        _, beyond = first_call(workload)
        print(
            f"{workload.name:52} {duration(ours):>11} {duration(replayed):>11} {duration(theirs):>11} "
            f"{duration(jax[0]) if jax else '':>11} {replayed / ours:9.3f} {duration(beyond):>12}",
            flush=True,
        )
    call = Workload("trivial call", trivial, recording=False)
    eager = Workload("trivial call", lambda xp: (lambda x: lambda: x + 1)(xp.ones(4)), recording=False)
    (once, theirs) = measure(call, [candelabra, torch], options.rounds, options.seconds).medians
    (plain,) = measure(eager, [candelabra], options.rounds, options.seconds).medians
    print(f"{'one operator on 4 elements':52} {duration(plain):>11} {duration(once):>11} {duration(theirs):>11}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
