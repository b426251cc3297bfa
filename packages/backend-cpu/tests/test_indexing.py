"""Test gather, scatter, index_select, masks and embedding against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from values import ALL, COMPLEX, FLOATS, LAYOUTS, NUMBERS, assert_values, random_tensor, tensor, wide

import candelabra
from candelabra import ops

LAYOUT_OF_INDEX = ["contiguous", "transposed", "sliced"]


def indices(shape: tuple[int, ...], size: int, seed: int = 0, low: int = 0, layout: str = "contiguous") -> Any:
    array = np.random.default_rng([seed, size, *shape]).integers(low, size, shape)
    if layout == "transposed":
        return tensor(np.ascontiguousarray(array.T)).permute(*range(len(shape) - 1, -1, -1))
    if layout == "sliced" and shape:
        return tensor(np.repeat(array, 2, -1))[..., ::2]
    return tensor(array)


def unchanged(x: Any, array: np.ndarray) -> None:
    np.testing.assert_array_equal(wide(x), array)


def adding(array: np.ndarray, dtype: str) -> np.ndarray:
    """Return a copy to accumulate into, in a dtype that wraps like `dtype`."""
    return array.copy() if dtype in ("bool", *COMPLEX, *FLOATS) else array.astype(dtype)


# ---- gather, scatter


@pytest.mark.parametrize("dtype", ALL)
def test_gather(dtype: str) -> None:
    for layout in LAYOUTS:
        for shape, picked in [
            ((7,), (9,)),
            ((5, 6), (5, 6)),
            ((5, 6), (3, 4)),
            ((4, 5, 6), (4, 2, 6)),
            ((300, 40), (300, 40)),
        ]:
            x = random_tensor(shape, dtype, layout)
            for dim in range(len(shape)):
                bounds = [*shape]
                wanted = tuple(
                    min(a, b) if d != dim else a for d, (a, b) in enumerate(zip(picked, bounds, strict=True))
                )
                index = indices(wanted, shape[dim], dim, layout=LAYOUT_OF_INDEX[dim])
                region = wide(x)[tuple(slice(None) if d == dim else slice(0, wanted[d]) for d in range(len(shape)))]
                assert_values(ops.gather(x, dim, index), np.take_along_axis(region, wide(index), dim), units=0)
    assert_values(ops.gather(random_tensor((), dtype), 0, tensor(np.array(0))), wide(random_tensor((), dtype)), units=0)


def scattered(array: np.ndarray, dim: int, index: np.ndarray, source: Any, add: bool) -> np.ndarray:
    result = array.copy()
    for place in np.ndindex(*index.shape):
        target = list(place)
        target[dim] = index[place]
        value = source[place] if isinstance(source, np.ndarray) else source
        result[tuple(target)] = result[tuple(target)] + value if add else value
    return result


@pytest.mark.parametrize("dtype", ALL)
def test_scatter(dtype: str) -> None:
    for layout in LAYOUTS:
        for shape, written in [((7,), (9,)), ((5, 6), (5, 6)), ((5, 6), (3, 4)), ((4, 5, 6), (3, 2, 6))]:
            x = random_tensor(shape, dtype, layout)
            for dim in range(len(shape)):
                index = indices(written, shape[dim], dim, layout=LAYOUT_OF_INDEX[dim])
                if any(w > s for d, (w, s) in enumerate(zip(written, shape, strict=True)) if d != dim):
                    continue
                source = random_tensor(tuple(w + 1 for w in written), dtype, layout, 1)
                assert_values(
                    ops.scatter(x, dim, index, source),
                    scattered(wide(x), dim, wide(index), wide(source), False),
                    units=0,
                )
                assert_values(ops.scatter(x, dim, index, 1), scattered(wide(x), dim, wide(index), 1, False), units=0)
                total = adding(wide(x), dtype)
                expected = scattered(total, dim, wide(index), wide(source).astype(total.dtype), True)
                magnitude = scattered(np.abs(total), dim, wide(index), np.abs(wide(source).astype(total.dtype)), True)
                assert_values(ops.scatter_add(x, dim, index, source), expected, scale=magnitude.astype("f8"))
                in_place = x.clone()
                in_place.scatter_(dim, index, source)
                assert_values(in_place, scattered(wide(x), dim, wide(index), wide(source), False), units=0)


def test_scatter_add_is_exact_in_parallel() -> None:
    index = indices((200_000, 3), 50)
    source = tensor(np.random.default_rng(0).integers(-9, 9, (200_000, 3)))
    expected = np.zeros((50, 3), dtype=np.int64)
    for column in range(3):
        np.add.at(expected[:, column], wide(index)[:, column], wide(source)[:, column])
    assert_values(ops.scatter_add(candelabra.zeros(50, 3, dtype=candelabra.int64), 0, index, source), expected)
    assert_values(
        ops.scatter_add(candelabra.zeros(3, 50, dtype=candelabra.int64), 1, index.T.contiguous(), source.T), expected.T
    )


@pytest.mark.parametrize("bad", [5, -1, 1 << 40])
def test_gather_and_scatter_refuse_bad_indices(bad: int) -> None:
    x = candelabra.ones(5, 3)
    index = tensor(np.array([[0, 1, 2], [3, bad, 4]]))
    message = rf"index {bad} is out of bounds for dimension 0 with size 5"
    with pytest.raises(RuntimeError, match=message):
        ops.gather(x, 0, index)
    for write in (x.scatter_, x.scatter_add_):
        with pytest.raises(RuntimeError, match=message):
            write(0, index, candelabra.zeros(2, 3) + 7)
    unchanged(x, np.ones((5, 3)))


# ---- along one dimension


@pytest.mark.parametrize("dtype", ALL)
def test_index_select(dtype: str) -> None:
    for layout in LAYOUTS:
        for shape in [(7,), (5, 6), (4, 5, 6), (3, 1, 4), (200, 300)]:
            x = random_tensor(shape, dtype, layout)
            for dim in range(len(shape)):
                index = indices((9,), shape[dim], dim, layout=LAYOUT_OF_INDEX[dim])
                assert_values(ops.index_select(x, dim, index), np.take(wide(x), wide(index), dim), units=0)
    x = random_tensor((), dtype)
    assert_values(ops.index_select(x, 0, tensor(np.array([0]))), wide(x), units=0)


def added(array: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray, alpha: Any = 1) -> np.ndarray:
    result = np.moveaxis(array.copy(), dim, 0)
    for j, at in enumerate(index):
        value = np.moveaxis(source, dim, 0)[j]
        result[at] = result[at] | value if value.dtype == bool else result[at] + alpha * value
    return np.moveaxis(result, 0, dim)


@pytest.mark.parametrize("dtype", ALL)
def test_index_add_copy_fill(dtype: str) -> None:
    for layout in LAYOUTS:
        for shape in [(7,), (5, 6), (4, 5, 6), (3, 1, 4), (20, 300)]:
            x = random_tensor(shape, dtype, layout)
            for dim in range(len(shape)):
                index = indices((9,), shape[dim], dim, layout=LAYOUT_OF_INDEX[dim])
                source = random_tensor((*shape[:dim], 9, *shape[dim + 1 :]), dtype, layout, 2)
                array, values, at = wide(x), wide(source), wide(index)
                total = adding(array, dtype)
                alpha = 1 if dtype == "bool" else 3
                expected = added(total, dim, at, values.astype(total.dtype), alpha)
                scale = 3 * added(np.abs(total).astype("f8"), dim, at, np.abs(values).astype("f8"), 1)
                assert_values(ops.index_add(x, dim, index, source, alpha=alpha), expected, scale=scale)
                copied = np.moveaxis(array.copy(), dim, 0)
                copied[at] = np.moveaxis(values, dim, 0)  # the last duplicate index wins, as in NumPy
                assert_values(ops.index_copy(x, dim, index, source), np.moveaxis(copied, 0, dim), units=0)
                filled = np.moveaxis(array.copy(), dim, 0)
                filled[at] = 1
                assert_values(ops.index_fill(x, dim, index, 1), np.moveaxis(filled, 0, dim), units=0)
                in_place = x.clone()
                in_place.index_copy_(dim, index, source)
                assert_values(in_place, np.moveaxis(copied, 0, dim), units=0)


def test_index_fill_counts_from_the_end() -> None:
    assert ops.index_fill(candelabra.ones(3), 0, tensor(np.array([-1])), 5).tolist() == [1, 1, 5]


@pytest.mark.parametrize("bad", [5, -1, -6])
def test_bad_indices_along_a_dimension(bad: int) -> None:
    x = candelabra.ones(3, 5)
    index = tensor(np.array([0, bad]))
    source = candelabra.zeros(3, 2)
    message = rf"index {bad} is out of bounds for dimension 1 with size 5"
    calls = [
        lambda: ops.index_select(x, 1, index),
        lambda: x.index_add_(1, index, source),
        lambda: x.index_copy_(1, index, source),
    ]
    if bad != -1:
        calls.append(lambda: x.index_fill_(1, index, 7))
    for call in calls:
        with pytest.raises(IndexError, match=message):
            call()
    unchanged(x, np.ones((3, 5)))


# ---- advanced indexing

PATTERNS: list[tuple[tuple[int, ...], tuple[Any, ...]]] = [
    ((7,), ((4,),)),
    ((7,), ((2, 3),)),
    ((5, 6), ((4,),)),
    ((5, 6), (None, (4,))),
    ((5, 6), ((4,), (4,))),
    ((5, 6), ((4, 1), (3,))),
    ((4, 5, 6), (None, (3,), (3,))),
    ((4, 5, 6), ((3,), None, (2, 1))),
    ((4, 5, 6), (None, (2, 2))),
    ((4, 5, 6), ((), None, (3,))),
    ((3, 4, 5, 6), (None, (2,), (3, 1))),
    ((3, 4, 5, 6), ((2,), None, (2,))),
    ((300, 50), ((1000,),)),
    ((40, 300), (None, (1000,))),
]


def pattern_indices(shape: tuple[int, ...], pattern: tuple[Any, ...]) -> tuple[list[Any], tuple[Any, ...]]:
    given = [None if p is None else indices(p, shape[d], d, low=-shape[d]) for d, p in enumerate(pattern)]
    return given, tuple(slice(None) if index is None else wide(index) for index in given)


@pytest.mark.parametrize("dtype", ALL)
def test_index(dtype: str) -> None:
    for layout in LAYOUTS:
        for shape, pattern in PATTERNS:
            x = random_tensor(shape, dtype, layout)
            given, numpy_index = pattern_indices(shape, pattern)
            assert_values(ops.index(x, given), wide(x)[numpy_index], units=0)


@pytest.mark.parametrize("dtype", ALL)
def test_index_put(dtype: str) -> None:
    for layout in LAYOUTS:
        for shape, pattern in PATTERNS:
            x = random_tensor(shape, dtype, layout)
            given, numpy_index = pattern_indices(shape, pattern)
            picked = wide(x)[numpy_index]
            for values in (
                random_tensor(picked.shape, dtype, layout, 3),
                random_tensor(picked.shape[-1:], dtype, seed=4),
            ):
                expected = wide(x)
                expected[numpy_index] = wide(values)
                assert_values(ops.index_put(x, given, values), expected, units=0)
                total, scale = adding(wide(x), dtype), np.abs(wide(x)).astype("f8")
                # Copied, because numpy.add.at reads broadcast values incorrectly.
                every = np.broadcast_to(wide(values), picked.shape).astype(total.dtype)
                (np.logical_or if dtype == "bool" else np.add).at(total, numpy_index, every)
                np.add.at(scale, numpy_index, np.abs(every).astype("f8"))
                assert_values(ops.index_put(x, given, values, True), total, scale=16 * scale)
                in_place = x.clone()
                in_place.index_put_(given, values)
                assert_values(in_place, expected, units=0)


def test_index_with_masks_and_subscripts() -> None:
    x = random_tensor((4, 5, 6), "float32")
    array = wide(x)
    mask = array[:, :, 0] > 0
    assert_values(x[tensor(mask)], array[mask], units=0)
    assert_values(x[tensor(np.array([0, -1])), :, tensor(np.array([1, 2]))], array[[0, -1], :, [1, 2]], units=0)
    x[tensor(mask)] = 0.0
    array[mask] = 0
    assert_values(x, array, units=0)


@pytest.mark.parametrize("bad", [6, -7])
def test_bad_subscripts(bad: int) -> None:
    x = candelabra.ones(5, 6)
    given = [tensor(np.array([0, 1])), tensor(np.array([0, bad]))]
    message = rf"index {bad} is out of bounds for dimension 1 with size 6"
    with pytest.raises(IndexError, match=message):
        ops.index(x, given)
    with pytest.raises(IndexError, match=message):
        x.index_put_(given, candelabra.zeros(2))
    unchanged(x, np.ones((5, 6)))
    with pytest.raises(IndexError):
        ops.index(candelabra.ones(5, 0), [tensor(np.array([7]))])


@pytest.mark.parametrize("dtype", ALL)
def test_take(dtype: str) -> None:
    for layout in LAYOUTS:
        x = random_tensor((4, 5, 6), dtype, layout)
        index = indices((3, 50), 120, low=-120, layout="transposed")
        assert_values(ops.take(x, index), np.take(wide(x), wide(index)), units=0)
    with pytest.raises(IndexError, match="tried to access index 120 on a tensor of 120 elements"):
        ops.take(x, tensor(np.array([120])))
    with pytest.raises(IndexError):
        ops.take(candelabra.zeros(0), tensor(np.array([0])))


# ---- masks


@pytest.mark.parametrize("dtype", ALL)
def test_masked_fill_and_select(dtype: str) -> None:
    for seed, layout in enumerate(LAYOUTS):
        for shape in [(), (7,), (5, 6), (4, 5, 6), (300, 400)]:
            x = random_tensor(shape, dtype, layout, seed)
            array = wide(x)
            for mask in (random_tensor(shape, "bool", layout, seed), random_tensor(shape[-1:], "bool", seed=seed)):
                chosen = np.broadcast_to(wide(mask), shape)
                assert_values(ops.masked_fill(x, mask, 1), np.where(chosen, np.ones((), array.dtype), array), units=0)
                assert_values(
                    ops.masked_fill(x, mask, random_tensor((), dtype)),
                    np.where(chosen, wide(random_tensor((), dtype)), array),
                    units=0,
                )
                assert_values(ops.masked_select(x, mask), array[chosen], units=0)
                in_place = x.clone()
                in_place.masked_fill_(mask, 0)
                assert_values(in_place, np.where(chosen, np.zeros((), array.dtype), array), units=0)
    wider = random_tensor((3, 5), "bool")
    assert_values(
        ops.masked_select(random_tensor((5,), dtype), wider),
        np.broadcast_to(wide(random_tensor((5,), dtype)), (3, 5))[wide(wider)],
        units=0,
    )


@pytest.mark.parametrize("dtype", ALL)
def test_masked_scatter(dtype: str) -> None:
    for seed, layout in enumerate(LAYOUTS):
        for shape in [(7,), (5, 6), (4, 5, 6), (200, 300)]:
            x, source = random_tensor(shape, dtype, layout, seed), random_tensor(shape, dtype, layout, seed + 1)
            mask = random_tensor(shape, "bool", layout, seed)
            expected = wide(x)
            expected[wide(mask)] = wide(source).ravel()[: int(wide(mask).sum())]
            assert_values(ops.masked_scatter(x, mask, source), expected, units=0)
    with pytest.raises(RuntimeError, match="source has only 3"):
        ops.masked_scatter(candelabra.zeros(4), candelabra.ones(4, dtype=candelabra.bool), candelabra.ones(3))


@pytest.mark.parametrize("dtype", ALL)
def test_nonzero(dtype: str) -> None:
    for seed, layout in enumerate(LAYOUTS):
        for shape in [(1,), (7,), (5, 6), (4, 5, 6), (300, 400), (100_000,), (0,), (3, 0)]:
            keep = random_tensor(shape, "bool", layout, seed)
            x = (random_tensor(shape, dtype, layout, seed + 7).to(getattr(candelabra, dtype))) * keep.to(
                getattr(candelabra, dtype)
            )
            assert_values(ops.nonzero(x), np.argwhere(wide(x)))
    assert tuple(ops.nonzero(tensor(np.array(3))).shape) == (1, 0)
    assert tuple(ops.nonzero(tensor(np.array(0))).shape) == (0, 0)
    if dtype in FLOATS:
        assert ops.nonzero(
            tensor(np.array([0.0, -0.0, np.nan, 1e-7 if dtype == "float16" else 1e-30]), dtype)
        ).tolist() == [
            [2],
            [3],
        ]


# ---- embedding


@pytest.mark.parametrize("dtype", NUMBERS)
def test_embedding(dtype: str) -> None:
    for layout in LAYOUTS:
        for width in (1, 3, 64):
            weight = random_tensor((11, width), dtype, layout)
            for shape in [(), (5,), (4, 7), (2, 3, 4)]:
                index = indices(shape, 11, layout="transposed" if len(shape) > 1 else "contiguous")
                assert_values(ops.embedding(weight, index), wide(weight)[wide(index)], units=0)
    with pytest.raises(IndexError, match="index 11 is out of bounds for dimension 0 with size 11"):
        ops.embedding(weight, tensor(np.array([3, 11])))


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
@pytest.mark.parametrize("padding", [-1, 3])
def test_embedding_backward(dtype: str, padding: int) -> None:
    for width in (1, 3, 64):
        for shape in [(), (5,), (40, 70)]:
            index = indices(shape, 11)
            grad = random_tensor((*shape, width), dtype, "transposed")
            at, values = wide(index).ravel(), wide(grad).reshape(-1, width)
            expected, scale = np.zeros((11, width), dtype=values.dtype), np.zeros((11, width))
            np.add.at(expected, at[at != padding], values[at != padding])
            np.add.at(scale, at, np.abs(values))
            # float32 rounds at each of about 250 additions; the half precisions accumulate in
            # float32.
            units = 1 if dtype in ("float16", "bfloat16") else 16
            assert_values(ops.embedding_backward(grad, index, 11, padding), expected, scale=scale, units=units)


# ---- empty tensors


def test_empty_indices() -> None:
    none = candelabra.zeros(0, dtype=candelabra.int64)
    x = candelabra.ones(3, 4)
    assert tuple(ops.index_select(x, 1, none).shape) == (3, 0)
    assert tuple(ops.index(x, [none]).shape) == (0, 4)
    assert tuple(ops.take(x, none).shape) == (0,)
    assert tuple(ops.embedding(x, none).shape) == (0, 4)
    assert_values(ops.embedding_backward(candelabra.zeros(0, 4), none, 2), np.zeros((2, 4)))
    assert_values(ops.index_add(x, 0, none, candelabra.zeros(0, 4)), np.ones((3, 4)))
    assert_values(ops.index_put(x, [none], candelabra.zeros(0, 4)), np.ones((3, 4)))
    assert tuple(ops.masked_select(candelabra.zeros(0), candelabra.zeros(0, dtype=candelabra.bool)).shape) == (0,)
    assert tuple(ops.gather(x, 0, candelabra.zeros(0, 4, dtype=candelabra.int64)).shape) == (0, 4)


# ---- special paths for large tensors


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "complex64"])
@pytest.mark.parametrize(
    ("rows", "columns", "count"), [(5, 70, 300), (900, 64, 400), (40, 9, 64), (3, 200, 70), (100_000, 16, 100)]
)
def test_index_add_of_many_rows(dtype: str, rows: int, columns: int, count: int) -> None:
    """Rows with the same index are accumulated in index order, for any number of threads."""
    x, source = random_tensor((rows, columns), dtype), random_tensor((count, columns), dtype, seed=1)
    index = indices((count,), rows)
    expected = adding(wide(x), dtype)
    np.add.at(expected, wide(index), wide(source))
    made = [ops.index_add(x, 0, index, source)]
    assert_values(made[0], expected, units=4 if dtype in FLOATS else 8, scale=np.abs(expected).max() + count)
    threads = candelabra.get_num_threads()
    try:
        for n in (1, 3):
            candelabra.set_num_threads(n)
            made.append(ops.index_add(x, 0, index, source))
    finally:
        candelabra.set_num_threads(threads)
    assert all(bool((each == made[0]).all()) for each in made)
    np.testing.assert_array_equal(wide(x.clone().index_add_(0, index, source)), wide(made[0]))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_scatter_add_of_a_long_line(dtype: str) -> None:
    x, source, index = random_tensor((50,), dtype), random_tensor((70_000,), dtype, seed=1), indices((70_000,), 50)
    expected = adding(wide(x), dtype)
    if dtype == "bool":
        np.logical_or.at(expected, wide(index), wide(source))
    else:
        np.add.at(expected, wide(index), wide(source))
    assert_values(ops.scatter_add(x, 0, index, source), expected, units=2, scale=70_000)
    ones = np.bincount(wide(index), minlength=50)
    np.testing.assert_array_equal(wide(candelabra.bincount(index)), ones)
    with pytest.raises(RuntimeError, match="index 50 is out of bounds"):
        ops.scatter_add(x, 0, index + 1, source)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
def test_gather_and_scatter_of_blocks(dtype: str, dim: int) -> None:
    """Slices that are neighbours in memory and exceed a block, with and without a copy of self."""
    shape = (30, 40, 300)
    x, source = random_tensor(shape, dtype), random_tensor(shape, dtype, seed=1)
    index = indices(shape, shape[dim])
    assert_values(ops.gather(x, dim, index), np.take_along_axis(wide(x), wide(index), dim), units=0)
    expected = wide(x).copy()
    # Write one index at a time, so that the last duplicate wins in NumPy, too.
    for k in range(shape[dim]):
        at: list[Any] = [slice(None)] * 3
        at[dim] = slice(k, k + 1)
        np.put_along_axis(expected, wide(index)[tuple(at)], wide(source)[tuple(at)], dim)
    assert_values(ops.scatter(x, dim, index, source), expected, units=0)
    assert_values(x.clone().scatter_(dim, index, source), expected, units=0)
    low = index.clone()
    low[(-1,) * 3] = -1
    for refused in (lambda: ops.gather(x, dim, low), lambda: ops.scatter(x, dim, low, source)):
        with pytest.raises(RuntimeError, match="index -1 is out of bounds"):
            refused()


def test_elements_by_number() -> None:
    x, rows, columns = (
        random_tensor((40, 50), "float32"),
        indices((3000,), 40, low=-40),
        indices((3000,), 50, 1, low=-50),
    )
    assert_values(x[rows, columns], wide(x)[wide(rows), wide(columns)], units=0)
    assert_values(x.t()[columns, rows], wide(x)[wide(rows), wide(columns)], units=0)
    flat = indices((60, 50), 2000, low=-2000)
    assert_values(ops.take(x, flat), wide(x).reshape(-1)[wide(flat)], units=0)
    with pytest.raises(IndexError, match="index 50 is out of bounds for dimension 1 with size 50"):
        x[rows, columns * 0 + 50]
    with pytest.raises(IndexError, match="tried to access index 2000"):
        ops.take(x, flat.abs() * 0 + 2000)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "complex128"])
def test_rows_of_transposed_matrices(dtype: str) -> None:
    generator = np.random.default_rng(11)
    for rows, columns in ((40, 300), (300, 40), (5, 3000)):
        array = np.abs(generator.standard_normal((rows, columns)) * 50).astype(dtype)
        for x in (tensor(array, dtype), tensor(np.ascontiguousarray(array.T), dtype).t()):
            for dim in (0, 1):
                size = array.shape[dim]
                index = generator.integers(0, size, size + 2)
                np.testing.assert_array_equal(
                    wide(ops.index_select(x, dim, tensor(index, "int64"))), np.take(wide(x), index, dim)
                )
                # The last duplicate index wins.
                index = generator.integers(0, size, size)
                expected = wide(x).copy()
                source = wide(x)[::-1, ::-1]
                at: list[Any] = [slice(None)] * 2
                for j, place in enumerate(index):
                    at[dim] = place
                    expected[tuple(at)] = np.take(source, j, dim)
                for given in (tensor(source, dtype), tensor(np.ascontiguousarray(source.T), dtype).t()):
                    np.testing.assert_array_equal(wide(ops.index_copy(x, dim, tensor(index, "int64"), given)), expected)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128"])
def test_masks_of_runs(dtype: str) -> None:
    generator = np.random.default_rng(12)
    array = np.abs(generator.standard_normal(100_001) * 50).astype(dtype)
    for runs in ([1, 1], [31, 33], [500, 3], [3, 500], [40_000, 70_000]):
        mask = np.resize(np.repeat([True, False], runs), array.size)
        np.testing.assert_array_equal(wide(ops.masked_select(tensor(array, dtype), tensor(mask, "bool"))), array[mask])
