"""Test cumulative sums and products against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from values import ALL, COMPLEX, FLOATS, NUMBERS, assert_values, cases, random_tensor, tensor, wide

import candelabra
from candelabra import ops

SHAPES = [(), (1,), (5,), (600,), (9000,), (3, 5), (40, 33), (3, 4300), (4300, 3), (4, 9, 6), (2, 1, 3, 2)]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_cumsum(dtype: str) -> None:
    for x in cases(SHAPES, dtype):
        for dim in range(max(1, x.ndim)):
            array = wide(x)
            exact = array.astype({"f": np.longdouble, "c": np.clongdouble}.get(array.dtype.kind, np.int64))
            expected = array if x.ndim == 0 else np.cumsum(exact, dim).astype(array.dtype)
            scale = np.abs(array) if x.ndim == 0 else np.cumsum(np.abs(array), dim)
            # float64 accumulates in float64, so each element carries the rounding of hundreds of
            # additions.
            assert_values(
                ops.cumsum(x, dim), expected, scale=scale, units=32 if dtype in ("float64", "complex128") else 1
            )


@pytest.mark.parametrize("dtype", NUMBERS)
def test_cumprod(dtype: str) -> None:
    for seed, shape in enumerate([(), (1,), (7,), (3, 5), (4, 9, 6), (6, 30)]):
        x = random_tensor(shape, dtype, "transposed", seed)
        array = wide(x)
        for dim in range(max(1, x.ndim)):
            expected = array if x.ndim == 0 else np.cumprod(array, dim)
            if dtype in FLOATS or dtype in COMPLEX:
                assert_values(ops.cumprod(x, dim), expected, units=16)
            else:  # overflow wraps
                assert_values(ops.cumprod(x, dim), expected)
    near_one = np.random.default_rng(0).uniform(0.999, 1.001, (2, 20_000))
    if dtype in ("float32", "float64"):
        x = tensor(near_one, dtype)
        assert_values(ops.cumprod(x, 1), np.cumprod(wide(x), 1), units=200)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32"])
def test_long_lines(dtype: str) -> None:
    x = random_tensor((150_001,), dtype)
    array = wide(x)
    assert_values(ops.cumsum(x, 0), np.cumsum(array), scale=np.cumsum(np.abs(array)))
    strided = random_tensor((2, 50_000), dtype, "transposed")
    assert_values(ops.cumsum(strided, 1), np.cumsum(wide(strided), 1), scale=np.cumsum(np.abs(wide(strided)), 1))


def test_float32_does_not_drift() -> None:
    x = candelabra.full((4_000_000,), 0.1)
    exact = np.arange(1, 4_000_001) * float(np.float32(0.1))
    assert_values(ops.cumsum(x, 0), exact, units=1)


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values_go_on(dtype: str) -> None:
    array = np.ones((2, 9000))
    array[0, 4500] = np.nan
    array[1, 5] = np.inf
    array[1, 8000] = -np.inf
    with np.errstate(invalid="ignore"):
        expected = np.cumsum(array, 1)
    result = wide(ops.cumsum(tensor(array, dtype), 1))
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(result), np.isinf(expected))


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_in_place(dim: int, dtype: str) -> None:
    for x in (
        random_tensor((30, 5000), dtype),
        random_tensor((30, 5000), dtype, "sliced"),
        random_tensor((30, 5000), dtype, "transposed"),
    ):
        array = wide(x)
        assert x.cumsum_(dim) is x
        assert_values(x, np.cumsum(array, dim), scale=np.cumsum(np.abs(array), dim))


@pytest.mark.parametrize("dtype", ALL)
def test_empty(dtype: str) -> None:
    for shape in ((0,), (0, 3), (3, 0)):
        assert tuple(ops.cumsum(random_tensor(shape, dtype), 0).shape) == shape


def test_wraps() -> None:
    x = tensor(np.full(3, 100, dtype=np.int8))
    assert ops.cumsum(x, 0, dtype=candelabra.int8).tolist() == [100, -56, 44]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "uint8"])
def test_extrema_of_long_lines(dtype: str) -> None:
    """Slices whose extremum changes rarely, often or at each element, and NaN, which propagates to
    the end.
    """
    rng = np.random.default_rng(0)
    lines = [rng.integers(0, 200, 1003), np.arange(1003) // 5, 200 - np.arange(1003) // 6, np.zeros(1003)]
    values = np.stack(lines).astype(np.float64)
    if dtype in ("float32", "float64", "bfloat16"):
        values[0, 700] = np.nan
    x = candelabra.tensor(values.tolist()).to(getattr(candelabra, dtype))
    array = x.to(candelabra.float64).numpy()
    for name, accumulate in (("cummax", np.maximum.accumulate), ("cummin", np.minimum.accumulate)):
        found = getattr(candelabra, name)(x, 1)
        expected = accumulate(array, 1)
        np.testing.assert_array_equal(found.values.to(candelabra.float64).numpy(), expected)
        last = np.zeros(array.shape, np.int64)
        for i, line in enumerate(array):
            place = 0
            for k, value in enumerate(line):
                if np.isnan(value) or value == expected[i, k]:
                    place = k
                last[i, k] = place
        np.testing.assert_array_equal(found.indices.numpy(), last)
