"""Time compiled steps beside ordinary ones: ``python -m benchmarks.replayed``.

Each training step and a chain of eight elementwise operators are run by Candelabra, by Candelabra
compiled, by PyTorch, with ``--torch-compile`` by torch.compile, which needs g++ and minutes, and by
JAX's jit where that is installed and has the step. The sides take turns in one process. Peak memory
is that of the allocator's counter, beyond what is in use without the step. The overhead of a
compiled call is that of one operator on four elements.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import re
import sys
import time
from collections.abc import Callable
from typing import Any

import candelabra
from candelabra import _C, backends

from .inputs import normal
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


def compiled_by_torch(make: Callable[[Any], Work]) -> Callable[[Any], Work]:
    """Return how the work is built that torch.compile has compiled."""

    def build(xp: Any) -> Work:
        work: Work = xp.compile(make(xp))
        for _ in range(3):
            work()
        return work

    return build


def chain(xp: Any) -> Work:
    """Return a chain of eight elementwise operators on 10 M elements."""
    x = normal(10_000_000).make(xp)

    def call() -> Any:
        return xp.abs(xp.relu((x * 1.01 + 0.5) * x - 0.25) * 0.7 + x)

    return call


def chain_by_kernels(xp: Any) -> Work:
    """Return the compiled chain whose operators are loops of kernels, and not LLVM's code."""
    from candelabra_backend_cpu import library_path, llvm

    # The first large program has LLVM registered.
    compiled(chain)(xp)
    llvm.unregister(library_path())
    try:
        return compiled(chain)(xp)
    finally:
        if importlib.util.find_spec("llvmlite") is not None:
            llvm.register(library_path())


def inexact_chain(xp: Any) -> Work:
    """Return the chain compiled with contraction of products and sums."""
    work: Work = xp.compile(chain(xp), fullgraph=True, mode="max-autotune")
    for _ in range(4):
        work()
    return work


def one_pass(xp: Any) -> Work:
    """Return the fastest pass that reads and writes as much as the chain must."""
    x = normal(10_000_000).make(xp)
    return lambda: -x


def print_tiers(rounds: int, seconds: float) -> None:
    """Print the times of the chain: by the loops of kernels, by LLVM, and of one pass."""
    names = ["loops of kernels", "LLVM", "LLVM, max-autotune", "one pass"]
    makes = [chain_by_kernels, compiled(chain), inexact_chain, one_pass]
    workload = Workload("chain of 8 operators, 10 M", chain, family="elementwise", recording=False)
    times = measure(workload, [candelabra] * len(makes), rounds, seconds, makes).medians
    print(f"\n{workload.name}: " + ", ".join(f"{n} {duration(t)}" for n, t in zip(names, times, strict=True)))


def peak(build: Callable[[Any], Work]) -> int:
    """Return the most bytes that a work has in use in two calls, with all that it keeps."""
    gc.collect()
    before = backends.memory_statistics("cpu")["allocated"]
    work = build(candelabra)
    work()
    gc.collect()
    _C.reset_peak_statistics("cpu")
    for _ in range(2):
        work()
    return backends.memory_statistics("cpu")["allocated_peak"] - before


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
    parser.add_argument("--torch-compile", action="store_true", help="time torch.compile too")
    options = parser.parse_args()
    import torch

    sides: list[Any] = [candelabra, candelabra, torch]
    for xp in sides[1:]:
        xp.set_num_threads(options.threads)
    wrappers: list[Any] = [lambda make: make, compiled, lambda make: make]
    if options.torch_compile:
        sides.append(torch)
        wrappers.append(compiled_by_torch)
    peers: dict[str, Callable[[Any], Work]] = {}
    if importlib.util.find_spec("jax") is not None:
        from .compiled import PEERS

        peers = PEERS
    pattern = re.compile(options.only)
    chosen = [
        workload
        for workload in [
            Workload("chain of 8 operators, 10 M", chain, family="elementwise"),
            *all_workloads(),
        ]
        if (workload.make is chain or (workload.family == "training" and workload.recording))
        and pattern.search(workload.full_name)
    ]
    names = ["eager", "compiled", "PyTorch", *(["torch.compile"] if options.torch_compile else []), "JAX jit"]
    print(
        f"{'':48}" + "".join(f"{name:>14}" for name in names) + "  to eager  peak MB (eager)  beyond eager, calls 1-3"
    )
    for workload in chosen:
        makes = [wrap(workload.make) for wrap in wrappers]
        with_peer = workload.full_name in peers
        if with_peer:
            makes.append(peers[workload.full_name])
        found = measure(
            workload, [*sides, *(["jax"] if with_peer else [])], options.rounds, options.seconds, makes
        ).medians
        _, beyond = first_call(workload)
        times = "".join(f"{duration(one):>14}" for one in found) + ("" if with_peer else f"{'':14}")
        with candelabra.set_grad_enabled(workload.recording):
            memory = [peak(make) / 1e6 for make in (compiled(workload.make), workload.make)]
        print(
            f"{workload.name:48}{times}{found[1] / found[0]:10.3f}  {memory[0]:7.1f} {memory[1]:9.1f}"
            f"{duration(beyond):>12}",
            flush=True,
        )
    if pattern.search("elementwise: chain of 8 operators, 10 M"):
        print_tiers(options.rounds, options.seconds)
    call = Workload("trivial call", trivial, recording=False)
    eager = Workload("trivial call", lambda xp: (lambda x: lambda: x + 1)(xp.ones(4)), recording=False)
    (once, theirs) = measure(call, [candelabra, torch], options.rounds, options.seconds).medians
    (plain,) = measure(eager, [candelabra], options.rounds, options.seconds).medians
    print(f"{'one operator on 4 elements':52} {duration(plain):>11} {duration(once):>11} {duration(theirs):>11}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
