"""Test sorting and selection against NumPy's stable sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from values import FLOATS, REALS, assert_values, cases, random_tensor, tensor, wide

import candelabra
from candelabra import ops

SORTABLE = ["bool", *REALS]
SHAPES = [(), (1,), (2,), (50,), (300,), (5000,), (3, 5), (300, 4), (4, 300), (3, 1, 7), (5, 40, 3)]


def order(array: np.ndarray, dim: int, descending: bool) -> np.ndarray:
    """Return the indices of a stable sort, in which NaN is the largest value."""
    if not descending:
        return np.argsort(array, axis=dim, kind="stable")
    if array.dtype == bool:
        array = array.astype(np.int64)
    if array.dtype.kind == "f":
        return np.lexsort((-array, ~np.isnan(array)), axis=dim) if array.ndim else np.zeros((), dtype=np.int64)
    return np.argsort(~array, axis=dim, kind="stable")


def check_sort(x: Any, dim: int, descending: bool) -> None:
    values, indices = ops.sort(x, dim, descending, True)
    array = wide(x)
    if x.ndim == 0:
        assert_values(values, array)
        assert int(indices) == 0
        return
    expected = order(array, dim, descending)
    assert_values(indices, expected)
    np.testing.assert_array_equal(wide(values), np.take_along_axis(array, expected, dim))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", SORTABLE)
def test_sort(dtype: str, descending: bool) -> None:
    for x in cases(SHAPES, dtype):
        for dim in range(max(1, x.ndim)):
            check_sort(x, dim, descending)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("width", [0, 1, 2**20, 2**32 - 1, 2**32, 2**63, 2**64 - 1])
@pytest.mark.parametrize("n", [3, 100, 191, 5000, 300_000])
def test_ranges_of_int64(n: int, width: int, descending: bool) -> None:
    low = np.iinfo(np.int64).min if width == 2**64 - 1 else 7 - width // 2
    offsets = np.random.default_rng(n).integers(0, width, n, dtype=np.uint64, endpoint=True)
    offsets[:2] = 0, width
    array = (offsets + np.uint64(low % 2**64)).view(np.int64)
    check_sort(tensor(array, "int64"), 0, descending)
    check_sort(tensor(array.repeat(2), "int64")[::2], 0, descending)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(dtype: str, descending: bool) -> None:
    generator = np.random.default_rng(3)
    for n in (9, 400, 3000):
        array = generator.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-6, -3e4], n)
        check_sort(tensor(array, dtype), 0, descending)
    negative_nan = tensor(np.array([1.0, np.copysign(np.nan, -1.0), -np.inf]), dtype)
    assert ops.sort(negative_nan, 0, descending, True)[1].tolist() == ([1, 0, 2] if descending else [2, 0, 1])
    zeros = ops.sort(tensor(np.array([0.0, -0.0, 0.0, -0.0]), dtype), 0, descending, True)
    assert zeros[1].tolist() == [0, 1, 2, 3]
    assert np.signbit(wide(zeros[0])).tolist() == [False, True, False, True]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int16", "bool", "bfloat16", "uint8"])
def test_large(dtype: str) -> None:
    for n in (131_072, 131_073, 400_001):
        check_sort(random_tensor((n,), dtype, "contiguous", n), 0, False)
    check_sort(random_tensor((2, 200_000), dtype, "transposed"), 1, True)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool"])
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced", "expanded"])
def test_bytes(dtype: str, layout: str) -> None:
    """Long slices of bytes use a counting sort."""
    for shape in ((511,), (512,), (1003,), (65_537,), (5, 700), (700, 5), (40, 1500)):
        for dim in range(len(shape)):
            for descending in (False, True):
                check_sort(random_tensor(shape, dtype, layout, len(shape)), dim, descending)


def test_full_range_of_integers() -> None:
    for dtype in (np.int64, np.int32, np.int16, np.int8, np.uint8):
        limits = np.iinfo(dtype)
        array = np.random.default_rng(4).integers(limits.min, limits.max, 3000, dtype=dtype, endpoint=True)
        array[:2] = limits.min, limits.max
        for descending in (False, True):
            check_sort(tensor(array), 0, descending)


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
@pytest.mark.parametrize("count", [5, 40, 5000])
def test_unsigned_integers(dtype: str, count: int) -> None:
    array = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, count, dtype=dtype, endpoint=True)
    x = candelabra.from_numpy(array)
    values, indices = ops.sort(x, 0, False, True)
    np.testing.assert_array_equal(values.numpy(), np.sort(array))
    np.testing.assert_array_equal(indices.numpy(), np.argsort(array, kind="stable"))
    np.testing.assert_array_equal(ops.topk(x, 3, 0, True, True)[0].numpy(), np.sort(array)[::-1][:3])


def test_sorted_already() -> None:
    x = tensor(np.arange(5000))
    check_sort(x, 0, False)
    check_sort(x, 0, True)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", REALS)
def test_topk(dtype: str, largest: bool) -> None:
    for x in cases([(1,), (50,), (300,), (5000,), (3, 5), (300, 4), (5, 40, 3)], dtype):
        for dim in range(x.ndim):
            n = x.shape[dim]
            for k in sorted({0, 1, min(3, n), n // 2, n}):
                values, indices = ops.topk(x, k, dim, largest)
                array = wide(x)
                expected = np.take(order(array, dim, largest), range(k), axis=dim)
                assert_values(indices, expected)
                np.testing.assert_array_equal(wide(values), np.take_along_axis(array, expected, dim))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
def test_topk_of_many(dtype: str) -> None:
    for layout in ("contiguous", "sliced"):
        x = random_tensor((600_000,), dtype, layout)
        for k in (1, 100, 5000, 100_000):
            for largest in (True, False):
                values, indices = ops.topk(x, k, 0, largest)
                expected = order(wide(x), 0, largest)[:k]
                assert_values(indices, expected)
                np.testing.assert_array_equal(wide(values), wide(x)[expected])


@pytest.mark.parametrize("dtype", FLOATS)
def test_topk_takes_nan_as_largest(dtype: str) -> None:
    x = tensor(np.array([1.0, np.nan, np.inf, -np.inf, np.nan, 2.0]), dtype)
    assert ops.topk(x, 4)[1].tolist() == [1, 4, 2, 5]
    assert ops.topk(x, 3, 0, False)[1].tolist() == [3, 0, 5]


@pytest.mark.parametrize("dtype", SORTABLE)
@pytest.mark.parametrize("columns", [1, 5, 37])
def test_columns(dtype: str, columns: int) -> None:
    """Slices that are neighbours in memory, with results in either layout."""
    for rows in (9, 300, 2100):
        x = random_tensor((rows, columns), dtype)
        for transposed in (x, random_tensor((columns, rows), dtype).t()):
            for descending in (False, True):
                check_sort(transposed, 0, descending)
                check_sort(transposed, 1, descending)
            if dtype != "bool":
                values, at = ops.topk(transposed, 3, 0, True, True)
                array = wide(transposed)
                expected = np.take_along_axis(array, order(array, 0, True)[:3], 0)
                np.testing.assert_array_equal(wide(values), expected)
                np.testing.assert_array_equal(np.take_along_axis(array, wide(at), 0), expected)
            check_mode(transposed, 0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
@pytest.mark.parametrize("pattern", ["random", "ascending", "descending", "equal", "few"])
def test_positions_of_ranks(dtype: str, pattern: str) -> None:
    generator = np.random.default_rng(4)
    for n in (1, 7, 300, 2047, 5000):
        array = generator.integers(-100, 100, n) if pattern != "few" else generator.integers(0, 3, n)
        array = {"ascending": np.sort(array), "descending": np.sort(array)[::-1], "equal": np.full(n, 3)}.get(
            pattern, array
        )
        x = tensor(array.copy(), dtype)
        stable = np.argsort(array, kind="stable")
        for rank in {0, n // 3, n - 1}:
            assert int(ops._kthvalue_index(x, 0, rank, "all")) == stable[rank]
        assert int(ops._kthvalue_index(x, 0, 0, "median")) == stable[(n - 1) // 2]


@pytest.mark.parametrize("pattern", ["ascending", "descending", "equal"])
@pytest.mark.parametrize("k", [1, 5, 16, 40])
def test_topk_of_sorted_lines(pattern: str, k: int) -> None:
    for dtype in ("float32", "uint8", "int64"):
        for n in (k, 255, 1000, 300_000):
            if n < k:
                continue
            array = np.sort(np.random.default_rng(n).integers(0, 120, n)) if pattern != "equal" else np.full(n, 7)
            if pattern == "descending":
                array = array[::-1].copy()
            x = tensor(array, dtype)
            for largest in (False, True):
                expected = np.argsort(-array if largest else array, kind="stable")[:k]
                values, at = ops.topk(x, k, 0, largest, True)
                assert wide(values).tolist() == array[expected].tolist()
                assert array[wide(at)].tolist() == array[expected].tolist() and len(set(wide(at).tolist())) == k


def test_empty() -> None:
    values, indices = ops.sort(candelabra.zeros(0, 3), 0)
    assert tuple(values.shape) == tuple(indices.shape) == (0, 3)
    values, indices = ops.topk(candelabra.zeros(3, 0), 2, 0)
    assert tuple(values.shape) == tuple(indices.shape) == (2, 0)


def test_complex_has_no_order() -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        ops.sort(candelabra.zeros(3, dtype=candelabra.complex64))


def _mode_position(line: np.ndarray) -> int:
    numbers = line[line == line]
    if numbers.size == 0:
        return 0
    values, counts = np.unique(numbers, return_counts=True)
    return int(np.flatnonzero(line == values[np.argmax(counts)])[-1])


def check_mode(x: Any, dim: int) -> None:
    lines = np.moveaxis(wide(x), dim, -1)
    found = np.moveaxis(wide(ops._mode_index(x, dim)), dim, -1)
    expected = [_mode_position(line) for line in lines.reshape(-1, lines.shape[-1])]
    np.testing.assert_array_equal(found.reshape(-1), expected)


@pytest.mark.parametrize("dtype", SORTABLE)
def test_mode_position(dtype: str) -> None:
    for x in cases([shape for shape in SHAPES if shape], dtype):
        for dim in range(x.ndim):
            check_mode(x, dim)


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "bfloat16"])
def test_mode_of_long_lines(dtype: str) -> None:
    generator = np.random.default_rng(5)
    for distinct in (1, 9, 200, 150_000):
        check_mode(tensor(generator.integers(0, distinct, 100_001), dtype), 0)
        check_mode(tensor(generator.integers(0, distinct, (2, 40_000)), dtype), 1)


def test_mode_of_keys_that_collide() -> None:
    # Keys that differ only in their leading bits collide in a simple hash. If a table overflows,
    # the kernel sorts.
    steps = np.arange(9000) % 4096 * (1 << 51)
    check_mode(tensor(steps, "int64"), 0)
    check_mode(tensor(np.concatenate([np.arange(60_000), [17]]) * 65536, "int64"), 0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_mode_of_special_values(dtype: str) -> None:
    nan, inf = np.nan, np.inf
    rows = [[nan, nan, 1.0, nan], [nan] * 4, [0.0, -0.0, inf, inf], [-inf, 3.0, -inf, 3.0]]
    assert ops._mode_index(tensor(np.array(rows), dtype), 1).flatten().tolist() == [2, 0, 1, 2]
