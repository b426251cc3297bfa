"""Test cat, stack, flip, tril, triu, tril_indices and pixel_shuffle against NumPy."""

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


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles_of_many_matrices(dtype: str, name: str) -> None:
    """Few and many columns. A thread's rows need not begin at the start of a matrix."""
    for shape in ((1300, 7, 5), (5000, 3, 4), (40, 33, 70)):
        x = random_tensor(shape, dtype)
        for diagonal in (-4, -1, 0, 2, 9):
            expected = getattr(np, name)(wide(x), diagonal)
            np.testing.assert_array_equal(wide(getattr(candelabra, name)(x, diagonal)), expected)


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


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "float64", "complex128"])
def test_rows_of_pieces(dtype: str) -> None:
    """Pieces of a few bytes, of odd sizes and of many bytes."""
    for widths in [(1, 2), (3, 5, 7), (0, 4, 1), (600, 1, 40), (2, 2, 2, 2, 2)]:
        parts = [random_tensor((130, width), dtype, seed=i) for i, width in enumerate(widths)]
        assert_values(ops.cat(parts, 1), np.concatenate([wide(part) for part in parts], 1), units=0)
    many = [random_tensor((9, 33), dtype, seed=i) for i in range(7)]
    for dim in range(3):
        assert_values(ops.stack(many, dim), np.stack([wide(part) for part in many], dim), units=0)
    large = [random_tensor((700, width), dtype, seed=i) for i, width in enumerate((1500, 300))]  # non-temporal stores
    assert_values(ops.cat(large, 1), np.concatenate([wide(part) for part in large], 1), units=0)


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "float64", "complex128"])
def test_copies_of_short_rows(dtype: str) -> None:
    x = random_tensor((37, 11, 6), dtype)
    for width in (1, 2, 3, 4, 5, 6):
        assert_values(x[:, ::2, :width].contiguous(), wide(x)[:, ::2, :width], units=0)
    assert_values(x.permute(2, 0, 1)[:5].contiguous(), wide(x).transpose(2, 0, 1)[:5], units=0)
    assert_values(x.permute(1, 2, 0).contiguous(), wide(x).transpose(1, 2, 0), units=0)
    flat = random_tensor((5000,), dtype)
    windows = np.lib.stride_tricks.sliding_window_view(wide(flat), 4)[::2]
    assert_values(flat.unfold(0, 4, 2).contiguous(), windows, units=0)
    assert_values(flat[::2].contiguous(), wide(flat)[::2], units=0)
    assert_values(flat[:900, None].expand(900, 1300).contiguous(), np.repeat(wide(flat)[:900, None], 1300, 1), units=0)
    assert_values(flat.expand(300, 5000).contiguous(), np.tile(wide(flat), (300, 1)), units=0)


def _pixel_shuffle(a: np.ndarray, r: int) -> np.ndarray:
    *batch, channels, height, width = a.shape
    split = a.reshape((*batch, channels // (r * r), r, r, height, width))
    return np.moveaxis(split, (-4, -3), (-3, -1)).reshape((*batch, channels // (r * r), height * r, width * r))


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "complex128"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_shuffles(dtype: str, layout: str) -> None:
    for shape, r in (((2, 36, 5, 7), 3), ((3, 16, 20, 1), 2), ((8, 9, 11), 1), ((1, 2, 48, 8, 33), 4)):
        x = random_tensor(shape, dtype, layout)
        shuffled = ops.pixel_shuffle(x, r)
        assert_values(shuffled, _pixel_shuffle(wide(x), r), units=0)
        assert_values(ops.pixel_unshuffle(shuffled, r), wide(x), units=0)
    for shape, groups in (((2, 12, 5), 4), ((3, 12, 40, 9), 3), ((1, 6, 2, 3, 4), 6), ((2, 5, 3), 1)):
        x = random_tensor(shape, dtype, layout)
        each = shape[1] // groups
        expected = np.concatenate([wide(x)[:, k::each] for k in range(each)], 1)
        assert_values(ops.channel_shuffle(x, groups), expected, units=0)


def test_shuffles_keep_channels_last() -> None:
    x = random_tensor((2, 36, 10, 14), "float32").contiguous(memory_format=candelabra.channels_last)
    last = candelabra.channels_last
    for name, count in (("pixel_shuffle", 3), ("pixel_unshuffle", 2), ("channel_shuffle", 4)):
        made = getattr(ops, name)(x, count)
        assert made.is_contiguous(memory_format=last)
        np.testing.assert_array_equal(made.numpy(), getattr(ops, name)(x.contiguous(), count).numpy())
    expected = _pixel_shuffle(x.numpy(), 3)
    np.testing.assert_array_equal(ops.pixel_shuffle(x, 3).numpy(), expected)


def test_refused_shuffles() -> None:
    x = candelabra.ones(1, 6, 4, 5)
    for wrong, words in (
        (lambda: ops.pixel_shuffle(x, 2), "divisible by the square of upscale_factor"),
        (lambda: ops.pixel_shuffle(x, 0), "positive upscale_factor"),
        (lambda: ops.pixel_shuffle(x, 2**33), "overflows"),
        (lambda: ops.pixel_shuffle(x[0, 0], 1), "at least 3 dimensions"),
        (lambda: ops.pixel_unshuffle(x, 2), "width to be divisible by downscale_factor"),
        (lambda: ops.channel_shuffle(x, 4), "divisible by groups"),
        (lambda: ops.channel_shuffle(x, -1), "must be positive"),
    ):
        with pytest.raises(RuntimeError, match=words):
            wrong()


@pytest.mark.parametrize("upper", [False, True])
def test_triangle_indices(upper: bool) -> None:
    for rows, columns in ((0, 0), (1, 9), (9, 1), (300, 500), (500, 300), (1, 100_000), (100_000, 1)):
        for offset in (-(10**12), -301, -2, 0, 3, 499, 10**12):
            near = min(max(offset, -rows - 1), columns + 1)
            expected = (np.triu_indices if upper else np.tril_indices)(rows, near, columns)
            for dtype in (candelabra.int32, candelabra.int64):
                made = ops._tril_triu_indices(rows, columns, offset, upper, dtype=dtype)
                assert made.dtype is dtype
                np.testing.assert_array_equal(made.numpy(), np.stack(expected))
    with pytest.raises(RuntimeError, match="overflow"):
        ops._tril_triu_indices(2**40, 2**40, 0, upper, dtype=candelabra.int64)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16"])
def test_large_outer_product(dtype: str) -> None:
    """A large outer product uses non-temporal stores of whole cache lines. Rows that are not whole
    lines use ordinary stores.
    """
    for rows, columns in ((1100, 1024), (1531, 1040), (1100, 1001)):
        a, b = np.arange(rows) % 7 + 1, np.arange(columns) % 11 + 1
        made = candelabra.outer(tensor(a, dtype), tensor(b, dtype))
        np.testing.assert_array_equal(wide(made), np.outer(a, b))
