"""cat, stack, flip, tril and triu against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from values import ALL, LAYOUTS, assert_values, cases, random_tensor, tensor, wide

import candelabra
from candelabra import ops


@pytest.mark.parametrize("dtype", ALL)
def test_cat(dtype: str) -> None:
    for dim in range(3):
        parts = []
        for i, layout in enumerate([*LAYOUTS, "contiguous"]):
            shape = [4, 5, 6]
            shape[dim] = i
            parts.append(random_tensor(tuple(shape), dtype, layout, i))
        assert_values(ops.cat(parts, dim), np.concatenate([wide(part) for part in parts], dim), units=0)
    one = random_tensor((3,), dtype)
    assert_values(ops.cat([one]), wide(one), units=0)


@pytest.mark.parametrize("dtype", ALL)
def test_stack(dtype: str) -> None:
    parts = [random_tensor((4, 5), dtype, layout, i) for i, layout in enumerate(LAYOUTS)]
    for dim in range(3):
        assert_values(ops.stack(parts, dim), np.stack([wide(part) for part in parts], dim), units=0)
    numbers = [random_tensor((), dtype, seed=i) for i in range(3)]
    assert_values(ops.stack(numbers), np.stack([wide(part) for part in numbers]), units=0)


def test_cat_of_large_tensors_and_into_given_memory() -> None:
    parts = [random_tensor((300, n), "float32", "transposed", n) for n in (1, 700, 50)]
    expected = np.concatenate([wide(part) for part in parts], 1)
    assert_values(ops.cat(parts, 1), expected, units=0)
    out = candelabra.empty(751, 300).T
    ops.cat(parts, 1, out=out)
    assert_values(out, expected, units=0)
    assert tuple(ops.cat([candelabra.zeros(0, 4), candelabra.zeros(0, 4)]).shape) == (0, 4)


@pytest.mark.parametrize("dtype", ALL)
def test_flip(dtype: str) -> None:
    for x in cases([(1,), (7,), (3, 40), (4, 5, 6), (0, 3)], dtype):
        for dims in ([0], [x.ndim - 1], list(range(x.ndim)), []):
            assert_values(ops.flip(x, dims), np.flip(wide(x), dims), units=0)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles(dtype: str, name: str) -> None:
    for x in cases([(5, 5), (3, 8), (8, 3), (2, 3, 20, 20), (4, 0), (0, 4)], dtype):
        for diagonal in (0, 1, -2, 100, -100):
            expected = getattr(np, name)(wide(x), diagonal)
            assert_values(getattr(ops, name)(x, diagonal), expected, units=0)


@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles_in_place(name: str) -> None:
    for layout in ("contiguous", "transposed", "sliced"):
        x = random_tensor((3, 30, 20), "float32", layout)
        expected = getattr(np, name)(wide(x), 1)
        assert getattr(x, name + "_")(1) is x
        assert_values(x, expected, units=0)


def test_triangle_clears_nan() -> None:
    assert ops.tril(tensor(np.full((2, 2), np.nan)), -2).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("rows", [2, 3, 4, 5])
def test_short_rows_are_interleaved(dtype: str, rows: int) -> None:
    x = random_tensor((3, rows, 2, 19), dtype, "contiguous", rows)
    expected = np.ascontiguousarray(np.moveaxis(wide(x), 1, -1))
    assert np.array_equal(wide(x.movedim(1, -1).clone(memory_format=candelabra.contiguous_format)), expected)
    row = x[:, 0]
    repeated = row.unsqueeze(-1).expand(3, 2, 19, rows).clone(memory_format=candelabra.contiguous_format)
    assert np.array_equal(wide(repeated), np.repeat(wide(row)[..., None], rows, -1))
