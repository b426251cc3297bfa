"""Test that the workloads of ``benchmarks/`` build and run, and test timing and floors."""

import sys
from pathlib import Path

import numpy as np
import pytest

import candelabra

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from benchmarks.checking import values
from benchmarks.inputs import booleans, integers, normal, uniform
from benchmarks.machine import Limits
from benchmarks.measuring import measure, moved, recorded
from benchmarks.workload import both_ways, forward
from benchmarks.workloads import FAMILIES, all_workloads

#: Larger workloads are left to ``python -m benchmarks --check``.
BYTES, OPERATIONS = 600_000, 3e7
SMALL = [
    workload for workload in all_workloads() if (workload.read or 0) <= BYTES and workload.operations <= OPERATIONS
]


def test_each_family_has_workloads():
    assert {workload.family for workload in all_workloads()} == set(FAMILIES)
    assert {workload.family for workload in SMALL} == set(FAMILIES)


@pytest.mark.parametrize("workload", SMALL, ids=[workload.full_name for workload in SMALL])
def test_a_small_workload_runs_twice(workload):
    work = workload.make(candelabra)
    with recorded(candelabra, workload.recording):
        first, second = values(work()), values(work())
    assert [result.shape for result in first] == [result.shape for result in second]
    if workload.name != "empty(4)":
        assert all(np.isfinite(result).all() for result in first + second)


def test_layouts_hold_the_numbers_drawn():
    for layout in ("contiguous", "transposed", "strided", "expanded"):
        made = normal(6, 10, layout=layout).make(candelabra)
        assert made.shape == (6, 10)
        assert made.is_contiguous() == (layout == "contiguous")
    assert normal(2, 3, 4, 5, layout="channels_last").make(candelabra).stride() == (60, 1, 15, 3)
    assert normal(4, layout="strided").nbytes == 2 * normal(4).nbytes
    assert normal(100, 4, layout="expanded").nbytes == 16
    drawn = [uniform(1000, low=2.0, high=3.0), integers(9, 1000, low=4), booleans(1000)]
    low, high = zip(
        *(
            (entry.make(candelabra).double().min().item(), entry.make(candelabra).double().max().item())
            for entry in drawn
        )
    )
    assert 2.0 <= low[0] < 2.1 and 2.9 < high[0] <= 3.0
    assert (low[1:], high[1:]) == ((4, 0), (8, 1))


def test_bytes_of_a_forward_and_of_a_backward_pass():
    rows = {}
    for workload in (
        forward("sum", lambda xp, a, b: a + b, normal(1000), normal(1000, number=1)),
        both_ways("product", lambda xp, a, b: a * b, normal(1000, grad=True), normal(1000, number=1)),
    ):
        timing = measure(workload, [candelabra, candelabra], rounds=2, seconds=1e-4)
        assert [len(times) for times in timing.times] == [3, 3]  # at least three rounds
        assert all(median > 0 for median in timing.medians)
        rows[workload.name] = moved(timing)
    assert rows["sum"] == (8000, 4000)
    # Read: both inputs twice, and the result's gradient. Written: the result and one gradient.
    assert rows["product"] == (16000 + 4000, 8000)


def test_floors():
    sizes = {1 << 20: 1.0, 1 << 24: 2.0}
    kinds = {"read": 1e-9, "triad": 2e-9, "copy": 3e-9, "fill": 5e-9}
    limits = Limits(
        {kind: {size: factor * cost for size, factor in sizes.items()} for kind, cost in kinds.items()},
        {"float32": 1e9},
    )
    limits.seconds_per_byte["scale"] = {size: factor * 2.5e-9 for size, factor in sizes.items()}
    assert limits.memory_seconds(1 << 20, 1 << 20, in_place=True) == pytest.approx((1 << 21) * 2.5e-9)
    assert limits.memory_seconds(1 << 20, 0) == pytest.approx((1 << 20) * 1e-9)
    assert limits.memory_seconds(1 << 19, 1 << 19) == pytest.approx((1 << 20) * 3e-9)
    assert limits.memory_seconds(0, 1 << 26) == pytest.approx((1 << 26) * 1e-8)
    assert limits.memory_seconds(1 << 22, 0) == pytest.approx(
        (1 << 22) * 1.5e-9
    )  # halfway between the sizes on a logarithmic scale
    assert limits.floor(1 << 20, 0, 1e9, "float32") == pytest.approx(1.0)
    assert limits.floor(100, 100, 0, "float32") is None
