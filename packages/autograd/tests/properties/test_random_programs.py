"""Property tests: gradients of random programs against finite differences.

CANDELABRA_TAPE_PROGRAMS sets the number of programs, CANDELABRA_TAPE_SEED which; `nox -s tape` runs
10,000.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, example, given, seed, settings
from hypothesis import strategies as st
from tape_programs import Instruction, Run

import candelabra as c

COUNT = int(os.environ.get("CANDELABRA_TAPE_PROGRAMS", "100"))
SEED = int(os.environ.get("CANDELABRA_TAPE_SEED", "0"))
MODIFIED = "modified by an inplace operation"

NUMBERS = st.integers(0, 1000)
PROGRAMS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=14)
SHAPES = st.lists(st.lists(st.integers(1, 3), max_size=3), min_size=1, max_size=3)
#: How the gradient is asked for, beside autograd.grad().
WAYS = st.sampled_from(["grad", "backward", "saved_hooks", "threads", "twice"])


def numbers(shapes: Sequence[Sequence[int]], generator: np.random.Generator) -> list[Any]:
    return [c.from_numpy(np.asarray(generator.uniform(-1, 1, shape))) for shape in shapes]


def shifted(leaves: Sequence[Any], direction: Sequence[Any], step: float) -> list[Any]:
    return [leaf.detach() + step * d for leaf, d in zip(leaves, direction, strict=True)]


def along(gradients: Sequence[Any], direction: Sequence[Any]) -> Any:
    products = [(g * d).sum() for g, d in zip(gradients, direction, strict=True) if g is not None]
    return sum(products, c.zeros((), dtype=c.float64))


def gradients_of(run: Run, leaves: Sequence[Any], program: Sequence[Instruction], **options: Any) -> Sequence[Any]:
    return c.autograd.grad(run(leaves, program), leaves, allow_unused=True, **options)


def by_threads(leaves: Sequence[Any], program: Sequence[Instruction], constants: list[Any]) -> Sequence[Any]:
    """The gradients as three threads compute them at once from the same leaves."""
    results: list[Any] = [None] * 3
    barrier = threading.Barrier(3)

    def work(index: int) -> None:
        barrier.wait()
        try:
            results[index] = gradients_of(Run(constants, False, False), leaves, program)
        except RuntimeError as error:
            results[index] = error

    threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, RuntimeError):
            raise result
    for result in results[1:]:
        for one, other in zip(result, results[0], strict=True):
            assert (one is None) == (other is None)
            assert one is None or c.equal(one, other)
    return results[0]


def gradients_by(way: str, leaves: list[Any], program: Sequence[Instruction], constants: list[Any]) -> Sequence[Any]:
    run = Run(constants, False, False)
    if way == "backward":
        counts = [0] * len(leaves)

        def count(index: int) -> Any:
            def hook(leaf: Any) -> None:
                counts[index] += 1

            return hook

        handles = [leaf.register_post_accumulate_grad_hook(count(index)) for index, leaf in enumerate(leaves)]
        run(leaves, program).backward()
        for handle in handles:
            handle.remove()
        assert counts == [int(leaf.grad is not None) for leaf in leaves]
        return [leaf.grad for leaf in leaves]
    if way == "saved_hooks":
        with c.autograd.graph.saved_tensors_hooks(lambda x: x.numpy(force=True).copy(), c.from_numpy):
            return gradients_of(run, leaves, program)
    if way == "threads":
        return by_threads(leaves, program, constants)
    return gradients_of(run, leaves, program)


def check(shapes: Sequence[Sequence[int]], program: Sequence[Instruction], way: str) -> str:
    """Compare one program's derivative along a direction; return what came of it."""
    generator = np.random.default_rng(len(program))
    leaves, direction = numbers(shapes, generator), numbers(shapes, generator)
    constants: list[Any] = []
    with c.no_grad():
        expected = Run(constants, True, True)(leaves, program)
    if not expected.abs().item() < 1e6:
        return "too large for differences"
    for leaf in leaves:
        leaf.requires_grad_()
    run = Run(constants, False, False)
    assert run(leaves, program).item() == expected.item()
    try:
        gradients = gradients_by(way, leaves, program, constants)
    except RuntimeError as error:
        # A value that is needed was written to, which the tape must notice.
        if MODIFIED not in str(error):
            raise
        return "a saved value was modified"
    step = 1e-5
    with c.no_grad():
        ends = [Run(constants, False, True)(shifted(leaves, direction, s), program) for s in (step, -step)]
    wanted = ((ends[0] - ends[1]) / (2 * step)).item()
    got = along(gradients, direction).item()
    size = max(1.0, abs(wanted), expected.abs().item())
    assert abs(got - wanted) <= 1e-5 * size, (got, wanted)
    if way == "twice":
        return check_twice(leaves, direction, program, constants)
    return way


def check_twice(leaves: list[Any], direction: list[Any], program: Sequence[Instruction], constants: list[Any]) -> str:
    """The derivative of the derivative along the direction, twice along it."""

    def slope(at: Sequence[Any], emulates: bool) -> Any:
        return along(gradients_of(Run(constants, False, emulates), at, program, create_graph=True), direction)

    first = slope(leaves, False)
    if not first.requires_grad:
        return "linear"
    got = along(c.autograd.grad(first, leaves, allow_unused=True), direction).item()
    step = 1e-4
    ends = [slope([x.requires_grad_() for x in shifted(leaves, direction, s)], True).item() for s in (step, -step)]
    wanted = (ends[0] - ends[1]) / (2 * step)
    size = max(1.0, abs(wanted), abs(first.item()))
    assert abs(got - wanted) <= 1e-4 * size, (got, wanted)
    return "twice"


@seed(SEED)
@settings(max_examples=COUNT, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(shapes=SHAPES, program=PROGRAMS, way=WAYS)
@example(shapes=[[2, 2]], program=[(5, 0, 0, 9), (7, 1, 0, 1), (8, 2, 0, 1), (3, 1, 0, 2)], way="twice")
def test_gradients_of_random_programs(shapes: list[list[int]], program: list[Instruction], way: str) -> None:
    event(check(shapes, program, way))


@pytest.mark.parametrize("write", range(12))
@pytest.mark.parametrize("view", range(8))
def test_each_write_to_each_view(write: int, view: int) -> None:
    """The pairs that a small random sample would miss; n encodes both (see Run.step)."""
    n = next(n for n in range(4000) if n % 8 == view and (n // 7) % 12 == write and n % 5)
    for shapes in ([[3, 2]], [[2, 3], [2, 3]], [[]]):
        assert check(shapes, [(0, 0, 0, 0), (5, 1, 0, n), (2, 2, 3, 0), (0, 3, 0, 1)], "grad") == "grad"
