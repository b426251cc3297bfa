"""Test histc with every range, dtype and layout against NumPy in float64."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from values import wide

import candelabra
from candelabra import Tensor, ops

DTYPES = ["float16", "bfloat16", "float32", "float64"]
INF, NAN = math.inf, math.nan


def made(numbers: Any, dtype: str) -> Tensor:
    return candelabra.tensor(numbers, dtype=candelabra.float64).to(getattr(candelabra, dtype))


def expected(x: Tensor, bins: int, low: float, high: float) -> list[float]:
    """Count in float64. The numbers are scaled down so that their differences do not overflow."""
    values = np.ravel(wide(x)).astype(np.float64)
    scale = 2.0**-10 if max(abs(low), abs(high)) > 1 else 1.0
    values = values[(values >= low) & (values <= high)] * scale
    return np.histogram(values, bins, (low * scale, high * scale))[0].astype(np.float64).tolist()


def check(x: Tensor, bins: int, low: float, high: float) -> None:
    result = candelabra.histc(x, bins, low, high)
    assert result.shape == (bins,)
    assert result.dtype == x.dtype
    assert result.to(candelabra.float64).tolist() == expected(x, bins, low, high)


#: Calls that once crashed. They run in a process of their own, because a write out of bounds may go
#: unnoticed.
FAULTS = [
    "c.histc(c.tensor([3e38, -3e38]), bins=30)",
    "c.histc(c.tensor([1.0, -1.0]), bins=3, min=-1e308, max=0)",
    "c.histc(c.tensor([1.0, -1.0]), bins=3, min=-float('inf'), max=0)",
    "c.histc(c.tensor([1.0, -1.0]), bins=3, min=0, max=float('inf'))",
    "c.histc(c.tensor([1.0, float('inf')]), bins=3)",
    "c.histc(c.tensor([1.0, -float('inf')]), bins=3)",
    "c.histc(c.tensor([-1e308, 1.7e308], dtype=c.float64), bins=300)",
    "c.ops._histc(c.tensor([-1.0, 1.0]), 3, -1e308, 1e308)",
    "c.ops._histc(c.tensor([-1.0, 1.0]), 3, -float('inf'), 1.0)",
    "c.ops._histc(c.tensor([-1.0, 1.0]), 3, float('nan'), 1.0)",
]


@pytest.mark.parametrize("call", FAULTS)
def test_no_fault(call: str) -> None:
    program = (
        f"import candelabra as c\nfor _ in range(20):\n    try:\n        {call}\n    except RuntimeError:\n        pass"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("bins", [1, 2, 30, 1000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_widest_range(dtype: str, bins: int) -> None:
    largest = candelabra.finfo(getattr(candelabra, dtype)).max
    # Except for the ends, no number is so close to an edge that rounding matters.
    numbers = made(largest * np.array([-1, -0.9123, -0.51234, -0.2123, 0.01234, 0.2123, 0.81234, 1]), dtype)
    check(numbers, bins, -largest, largest)
    assert candelabra.histc(numbers, bins).tolist() == candelabra.histc(numbers, bins, -largest, largest).tolist()
    check(numbers, bins, 0.0, largest)
    check(numbers, bins, -largest, 0.0)


def test_range_of_float32_that_overflows() -> None:
    x = candelabra.tensor([3e38, 0.0, 1.0, -3e38])
    assert candelabra.histc(x, 4).tolist() == [1, 0, 2, 1]
    assert candelabra.histc(x[::3], 30).tolist() == [1] + 28 * [0] + [1]
    assert candelabra.histc(x.double(), 4).tolist() == [1, 0, 2, 1]
    wide_range = candelabra.tensor([-1.7e308, 2.0, 1.7e308], dtype=candelabra.float64)
    assert candelabra.histc(wide_range, 4).tolist() == [1, 0, 1, 1]
    assert candelabra.histc(wide_range, 3, -1e308, 1e308).tolist() == [0, 1, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_denormal_range(dtype: str) -> None:
    tiny = float(np.finfo(dtype).smallest_subnormal)
    x = candelabra.tensor([0.0, tiny, 2 * tiny, 3 * tiny], dtype=getattr(candelabra, dtype))
    assert candelabra.histc(x, 3).tolist() == [1, 1, 2]
    assert candelabra.histc(x, 1).tolist() == [4]
    assert candelabra.histc(x, 1000).to(candelabra.int64).nonzero().flatten().tolist() == [0, 333, 666, 999]
    assert candelabra.histc(x, 3, 0.0, tiny).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "low, high", [(-INF, 0.0), (0.0, INF), (-INF, INF), (NAN, 1.0), (0.0, NAN), (INF, -INF), (NAN, NAN)]
)
def test_range_that_is_not_finite(low: float, high: float) -> None:
    for x in (candelabra.tensor([1.0, 2.0]), candelabra.tensor([])):
        with pytest.raises(RuntimeError, match=r"histc\(\): range of \[.*\] is not finite"):
            candelabra.histc(x, 3, low, high)


@pytest.mark.parametrize("number", [INF, -INF, NAN])
def test_data_that_is_not_finite(number: float) -> None:
    x = candelabra.tensor([-1.0, 2.0, number, 0.5])
    with pytest.raises(RuntimeError, match="is not finite"):
        candelabra.histc(x, 3)
    assert candelabra.histc(x, 3, -2.0, 2.0).tolist() == [1, 1, 1]
    assert candelabra.histc(x, 2, -2.0, 2.0).tolist() == [1, 2]


@pytest.mark.parametrize("dtype, number", [("float16", 1e6), ("bfloat16", 1e39), ("float32", 1e39), ("float32", 1e308)])
def test_end_that_is_no_number_of_the_dtype(dtype: str, number: float) -> None:
    x = made([1.0, 2.0], dtype)
    for low, high in ((0.0, number), (-number, 0.0), (-number, number)):
        with pytest.raises(RuntimeError, match="value cannot be converted to type .* without overflow"):
            candelabra.histc(x, 3, low, high)


def test_refusals() -> None:
    x = candelabra.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="max must be larger than min"):
        candelabra.histc(x, 3, 1.0, 0.0)
    for bins in (0, -1):
        with pytest.raises(RuntimeError, match="bins must be > 0"):
            candelabra.histc(x, bins)
    for low, high in ((1.0, 1.0), (1.0, 0.0)):
        with pytest.raises(RuntimeError, match="max must be larger than min"):
            ops._histc(x, 3, low, high)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [0.0, 1.0, -3.0, 6e4, 3e9, 1e30, 3.3e38, 1e308])
def test_one_number_lies_in_the_middle(dtype: str, number: float) -> None:
    if number > candelabra.finfo(getattr(candelabra, dtype)).max:
        pytest.skip("the dtype does not have it")
    x = made([number, number], dtype)
    assert candelabra.histc(x, 3).tolist() == [0, 2, 0]
    assert candelabra.histc(x, 4).tolist() == [0, 0, 2, 0]
    assert candelabra.histc(x, 3, 5.0, 5.0).tolist() == [0, 2, 0]
    assert candelabra.histc(-x, 3).tolist() == [0, 2, 0]


def test_bounds_that_are_one_number_of_the_dtype() -> None:
    x = candelabra.tensor([1.0, 1.0, 2.0, 3.0])
    assert candelabra.histc(x, 3, 1.0, 1 + 1e-12).tolist() == [2, 0, 0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_empty(dtype: str) -> None:
    x = made([], dtype)
    assert candelabra.histc(x, 3).tolist() == [0, 0, 0]
    assert candelabra.histc(x, 3, 1.0, 2.0).tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_edges_and_layouts(dtype: str) -> None:
    x = made(np.arange(-40, 80).reshape(10, 12) / 8, dtype)
    for layout in (x, x.t(), x[::2, ::3], x[:, 5], x[3:4].expand(5, 12), x[2, 3]):
        for bins, low, high in ((8, 0.0, 8.0), (1, -1.0, 1.0), (64, -4.0, 4.0), (7, 0.0, 7.0)):
            check(layout, bins, low, high)


@pytest.mark.parametrize("dtype", DTYPES)
def test_many_bins_and_elements(dtype: str) -> None:
    rng = np.random.default_rng(3)
    x = made(np.round(rng.standard_normal(100_000) * 16) / 16, dtype)
    for bins in (4, 100, 70_000):
        result = candelabra.histc(x.to(candelabra.float64), bins, -8.0, 8.0)
        assert result.tolist() == expected(x, bins, -8.0, 8.0)
        if dtype == "float32":
            assert candelabra.histc(x, bins, -8.0, 8.0).tolist() == result.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_random_ranges(dtype: str) -> None:
    """For any range, the counts add up to the number of elements inside."""
    rng = np.random.default_rng(5)
    info = candelabra.finfo(getattr(candelabra, dtype))
    low, high = math.log2(info.tiny) - 8, math.log2(info.max)
    for _ in range(200):
        ends = sorted((rng.choice([-1, 1], 2) * 2.0 ** rng.uniform(low, high, 2)).tolist())
        x = made(rng.choice([-1, 1], 200) * 2.0 ** rng.uniform(low, high, 200), dtype)
        if not ends[0] < ends[1]:
            continue
        counted = candelabra.histc(x, int(rng.integers(1, 50)), *ends).to(candelabra.float64).sum().item()
        least, most = (float(wide(made(end, dtype))) for end in ends)
        values = wide(x).astype(np.float64)
        assert counted == ((values >= least) & (values <= most)).sum()
