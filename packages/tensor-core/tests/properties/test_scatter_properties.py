"""Taking from and putting at positions, and combining what comes to one place, against loops over
NumPy arrays.
"""

import math

import numpy
import pytest
from drawing import layouts, ours, pair, same, seeds, shapes
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import candelabra

NUMBERS = ["float64", "float32", "int64", "int32", "uint8", "bfloat16", "float16"]
WITH_COMPLEX = [*NUMBERS, "complex128", "bool"]
FEW = settings(max_examples=40, deadline=None, derandomize=True)


def name_of(tensor):
    return str(tensor.dtype).rpartition(".")[2]


def drawn(data, shape, layout, seed, dtypes=NUMBERS):
    assume(shape)
    dtype = data.draw(st.sampled_from(dtypes))
    tensor, array = pair(numpy.random.default_rng(seed), dtype, shape, layout)
    return tensor, array, data.draw(st.integers(-len(shape), len(shape) - 1))


def combined(reduce, values, integers):
    """What several numbers that come to one place become."""
    if reduce == "sum":
        return sum(values)
    if reduce == "prod":
        return math.prod(values)
    if reduce == "mean":
        total = sum(values)
        return total // len(values) if integers else total / len(values)
    return {"amax": max, "amin": min}[reduce](values)


def put_together(array, where, source, reduce, include_self):
    """`array` with `source[i]` combined into `where[i]`, for every i."""
    arriving = {}
    for place, value in zip(where, source, strict=True):
        arriving.setdefault(place, []).append(value)
    integers = array.dtype.kind in "iu"
    result = array.astype("int64" if integers else "float64")
    for place, values in arriving.items():
        values = [int(v) if integers else float(v) for v in values]
        old = [int(array[place]) if integers else float(array[place])] if include_self else []
        result[place] = combined(reduce, old + values, integers)
    return result.astype(array.dtype)


def tolerance(tensor):
    return {"bfloat16": 3e-2, "float16": 4e-3, "float32": 1e-5}.get(name_of(tensor), 1e-9)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, include_self=st.booleans(), inplace=st.booleans())
def test_scatter_reduce(reduce, data, shape, layout, seed, include_self, inplace):
    """The index may be smaller than self, and the source larger than the index."""
    tensor, array, dim = drawn(data, shape, layout, seed)
    random = numpy.random.default_rng(seed)
    axis = dim % len(shape)
    sizes = [data.draw(st.integers(0, 4)) if d == axis else data.draw(st.integers(0, n)) for d, n in enumerate(shape)]
    assume(shape[axis] or 0 in sizes)
    grid = random.integers(0, max(shape[axis], 1), sizes)
    beyond = [n + data.draw(st.integers(0, 1)) for n in sizes]
    dtype = name_of(tensor)
    source, source_array = pair(random, dtype, beyond, data.draw(layouts))
    where = [(*at[:axis], grid[at], *at[axis + 1 :]) for at in numpy.ndindex(*sizes)]
    expected = put_together(array, where, [source_array[at] for at in numpy.ndindex(*sizes)], reduce, include_self)
    if inplace:
        made = tensor.clone()
        made.scatter_reduce_(dim, ours(grid), source, reduce, include_self=include_self)
    else:
        made = candelabra.scatter_reduce(tensor, dim, ours(grid), source, reduce, include_self=include_self)
    same(made, expected, tolerance(tensor))
    if reduce == "sum" and include_self:
        same(candelabra.scatter_add(tensor, dim, ours(grid), source), expected, tolerance(tensor))


@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, include_self=st.booleans())
def test_index_reduce(reduce, data, shape, layout, seed, include_self):
    tensor, array, dim = drawn(data, shape, layout, seed)
    random = numpy.random.default_rng(seed)
    axis = dim % len(shape)
    count = data.draw(st.integers(0, 4)) if shape[axis] else 0
    places = random.integers(0, max(shape[axis], 1), count)
    source_shape = (*shape[:axis], count, *shape[axis + 1 :])
    source, source_array = pair(random, name_of(tensor), source_shape, data.draw(layouts))
    where = [(*at[:axis], int(places[at[axis]]), *at[axis + 1 :]) for at in numpy.ndindex(*source_shape)]
    expected = put_together(array, where, list(source_array.reshape(-1)), reduce, include_self)
    index = ours(places, data.draw(st.sampled_from(["int64", "int32"])))
    same(
        candelabra.index_reduce(tensor, dim, index, source, reduce, include_self=include_self),
        expected,
        tolerance(tensor),
    )
    made = tensor.clone()
    made.index_reduce_(dim, index, source, reduce, include_self=include_self)
    same(made, expected, tolerance(tensor))


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_scatter(data, shape, layout, seed):
    """Places are named once: which of several values stays is not promised."""
    tensor, array, dim = drawn(data, shape, layout, seed, WITH_COMPLEX)
    random = numpy.random.default_rng(seed)
    axis = dim % len(shape)
    sizes = [data.draw(st.integers(0, n)) for n in shape]
    order = numpy.argsort(random.random([n if d != axis else shape[axis] for d, n in enumerate(sizes)]), axis)
    grid = numpy.take(order, range(sizes[axis]), axis)
    source, source_array = pair(random, name_of(tensor), sizes, data.draw(layouts))
    expected, filled = array.copy(), array.copy()
    for at in numpy.ndindex(*sizes):
        place = (*at[:axis], grid[at], *at[axis + 1 :])
        expected[place] = source_array[at]
        filled[place] = 1
    same(candelabra.scatter(tensor, dim, ours(grid), source), expected)
    same(candelabra.scatter(tensor, dim, ours(grid), 1), filled)
    made = tensor.clone()
    made.scatter_(dim, ours(grid), source)
    same(made, expected)
    same(candelabra.gather(made, dim, ours(grid)), source_array)


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_take_along_dim(data, shape, layout, seed):
    """Sizes of one are expanded on both sides; without a dimension, the index is into the elements
    in a row.
    """
    tensor, array, dim = drawn(data, shape, layout, seed, WITH_COMPLEX)
    random = numpy.random.default_rng(seed)
    axis = dim % len(shape)
    sizes = [
        data.draw(st.integers(0, 3)) if d == axis else data.draw(st.sampled_from([1, n])) for d, n in enumerate(shape)
    ]
    assume(shape[axis] or 0 in sizes)
    grid = random.integers(-shape[axis], max(shape[axis], 1), sizes) if data.draw(st.booleans()) else None
    if grid is None or (grid < 0).any():  # NumPy counts from the end, PyTorch does not
        grid = random.integers(0, max(shape[axis], 1), sizes)
    widened = [n if d == axis else max(n, sizes[d]) if 0 not in (n, sizes[d]) else 0 for d, n in enumerate(shape)]
    full = numpy.broadcast_to(grid, [sizes[axis] if d == axis else n for d, n in enumerate(widened)])
    same(
        candelabra.take_along_dim(tensor, ours(grid), dim),
        numpy.take_along_axis(numpy.broadcast_to(array, widened), full, axis),
    )
    if array.size:
        flat = random.integers(0, array.size, data.draw(st.integers(0, 5)))
        same(candelabra.take_along_dim(tensor, ours(flat)), numpy.take_along_axis(array.reshape(-1), flat, 0))


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, accumulate=st.booleans())
def test_index_put(data, shape, layout, seed, accumulate):
    """Some dimensions indexed, others whole; values broadcast to what is indexed."""
    tensor, array, _ = drawn(data, shape, layout, seed, [*NUMBERS, "complex128"])
    assume(0 not in shape)
    random = numpy.random.default_rng(seed)
    first = data.draw(st.integers(0, len(shape) - 1))
    last = data.draw(st.integers(first, len(shape) - 1))
    spread = data.draw(st.sampled_from([(), (1,), (4,), (2, 2), (0,)]))
    arrays = [
        random.integers(-n, n, data.draw(st.sampled_from([spread, spread[-1:]]))) for n in shape[first : last + 1]
    ]
    keys = (*([slice(None)] * first), *arrays)
    indexed = array[keys].shape
    shrunk = indexed[data.draw(st.integers(0, len(indexed))) :]
    values, values_array = pair(random, name_of(tensor), shrunk, data.draw(layouts))
    if not accumulate:  # which of several values stays is not promised
        values_array = numpy.full(shrunk, 3, values_array.dtype)
        values = ours(values_array, name_of(tensor))
    expected = array.copy()
    if accumulate:
        numpy.add.at(expected, keys, numpy.broadcast_to(values_array, indexed).copy())  # NumPy misreads expanded ones
    else:
        expected[keys] = values_array
    indices = (*([None] * first), *map(ours, arrays))
    same(candelabra.index_put(tensor, indices, values, accumulate), expected, tolerance(tensor))
    made = tensor.clone()
    made.index_put_(indices, values, accumulate)
    same(made, expected, tolerance(tensor))


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, accumulate=st.booleans())
def test_put(data, shape, layout, seed, accumulate):
    tensor, array, _ = drawn(data, shape, layout, seed, [*NUMBERS, "complex128"])
    random = numpy.random.default_rng(seed)
    sizes = data.draw(st.sampled_from([(), (3,), (2, 2), (0,)])) if array.size else (0,)
    if accumulate or not array.size:
        places = random.integers(-array.size, max(array.size, 1), sizes) if array.size else numpy.zeros(0, int)
    else:
        assume(math.prod(sizes) <= array.size)
        places = random.permutation(array.size)[: math.prod(sizes)].reshape(sizes)
    source, source_array = pair(random, name_of(tensor), sizes, data.draw(layouts))
    expected = array.copy().reshape(-1)
    if accumulate:
        numpy.add.at(expected, places.reshape(-1), source_array.reshape(-1))
    else:
        expected[places.reshape(-1)] = source_array.reshape(-1)
    same(candelabra.put(tensor, ours(places), source, accumulate), expected.reshape(shape), tolerance(tensor))
    made = tensor.clone()
    made.put_(ours(places), source, accumulate)
    same(made, expected.reshape(shape), tolerance(tensor))
    same(candelabra.take(tensor, ours(places)), array.reshape(-1)[places])


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_masks_that_take_and_put(data, shape, layout, seed):
    tensor, array, _ = drawn(data, shape, layout, seed, WITH_COMPLEX)
    random = numpy.random.default_rng(seed)
    kept = shape[data.draw(st.integers(0, len(shape))) :]
    narrow = random.random([data.draw(st.sampled_from([1, n])) for n in kept]) < 0.5
    mask = numpy.broadcast_to(narrow, shape)
    source, source_array = pair(random, name_of(tensor), (array.size + 1,), "strided")
    expected = array.copy()
    expected[mask] = source_array[: mask.sum()]
    same(candelabra.masked_scatter(tensor, ours(narrow), source), expected)
    made = tensor.clone()
    made.masked_scatter_(ours(narrow), source)
    same(made, expected)
    same(candelabra.masked_select(tensor, ours(narrow)), array[mask])
    same(candelabra.masked_fill(tensor, ours(narrow), 1), numpy.where(mask, array.dtype.type(1), array))


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_along_an_index(data, shape, layout, seed):
    tensor, array, dim = drawn(data, shape, layout, seed, [*NUMBERS, "complex128"])
    random = numpy.random.default_rng(seed)
    axis = dim % len(shape)
    count = data.draw(st.integers(0, shape[axis]))
    places = random.permutation(shape[axis])[:count]
    index = ours(places.astype("int64"), data.draw(st.sampled_from(["int64", "int32"])))
    source_shape = (*shape[:axis], count, *shape[axis + 1 :])
    source, source_array = pair(random, name_of(tensor), source_shape, data.draw(layouts))
    along = (slice(None),) * axis + (places,)
    copied, filled, added = array.copy(), array.copy(), array.copy()
    copied[along] = source_array
    filled[along] = 2
    added[along] += (2 * source_array).astype(array.dtype)
    same(candelabra.index_copy(tensor, dim, index.to(candelabra.int64), source), copied)
    same(candelabra.index_fill(tensor, dim, index.to(candelabra.int64), 2), filled)
    same(candelabra.index_fill(tensor, dim, index.to(candelabra.int64), ours(numpy.array(2), name_of(tensor))), filled)
    same(candelabra.index_add(tensor, dim, index, source, alpha=2), added, tolerance(tensor))
    same(candelabra.index_select(tensor, dim, index), numpy.take(array, places, axis))


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_views_with_other_elements(data, shape, layout, seed):
    """select_scatter, slice_scatter, diagonal_scatter: a copy in which the part that the view shows
    is another.
    """
    tensor, array, dim = drawn(data, shape, layout, seed, WITH_COMPLEX)
    random = numpy.random.default_rng(seed)
    axis = dim % len(shape)

    def check(function, view, *arguments):
        expected = array.copy()
        part = view(expected)
        values, values_array = pair(random, name_of(tensor), part.shape, data.draw(layouts))
        part[...] = values_array
        same(function(tensor, values, *arguments), expected)

    if shape[axis]:
        i = data.draw(st.integers(-shape[axis], shape[axis] - 1))
        check(candelabra.select_scatter, lambda x: x[(slice(None),) * axis + (i, Ellipsis)], dim, i)
    bounds = st.none() | st.integers(-shape[axis] - 1, shape[axis] + 1)
    start, stop, step = data.draw(bounds), data.draw(bounds), data.draw(st.integers(1, 3))
    check(
        candelabra.slice_scatter,
        lambda x: x[(slice(None),) * axis + (slice(start, stop, step),)],
        dim,
        start,
        stop,
        step,
    )
    if len(shape) >= 2:
        a, b = data.draw(st.permutations(range(len(shape))))[:2]
        offset = data.draw(st.integers(-2, 2))

        def diagonal(x):
            view = x.diagonal(offset, a, b)
            view.flags.writeable = True
            return view

        check(candelabra.diagonal_scatter, diagonal, offset, a, b)


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_as_strided_scatter(data, shape, layout, seed):
    """Strides count elements of the copy's memory, which is contiguous where the tensor's is."""
    assume(0 not in shape)
    array = numpy.arange(math.prod(shape), dtype="float64").reshape(shape)
    tensor = ours(array)
    size = (data.draw(st.integers(0, 3)), data.draw(st.integers(1, 2)))
    stride = (2, 1)
    reach = sum((n - 1) * k for n, k in zip(size, stride, strict=True)) + 1 if 0 not in size else 0
    assume(reach <= array.size)
    offset = data.draw(st.integers(0, array.size - reach))
    values, values_array = pair(numpy.random.default_rng(seed), "float64", size, layout)
    expected = array.reshape(-1).copy()
    for i, j in numpy.ndindex(*size):
        expected[offset + i * stride[0] + j * stride[1]] = values_array[i, j]
    same(candelabra.as_strided_scatter(tensor, values, size, stride, offset), expected.reshape(shape))
    same(tensor, array)


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_positions_of_nonzero(data, shape, layout, seed):
    tensor, array = pair(numpy.random.default_rng(seed), data.draw(st.sampled_from(WITH_COMPLEX)), shape, layout)
    same(candelabra.nonzero(tensor), numpy.argwhere(array))
    same(candelabra.argwhere(tensor), numpy.argwhere(array))
    same(candelabra.count_nonzero(tensor), numpy.count_nonzero(array))
    expected = numpy.argwhere(array)
    fixed = candelabra.nonzero_static(tensor, size=3, fill_value=-7)
    wanted = numpy.full((3, len(shape)), -7)
    wanted[: len(expected)] = expected[:3]
    same(fixed, wanted)
    if shape:
        for made, places in zip(candelabra.nonzero(tensor, as_tuple=True), numpy.nonzero(array), strict=True):
            same(made, places)
