"""Operators that move elements about in several dimensions at once, or by lists of places, against
NumPy.
"""

import itertools

import numpy
import pytest
from drawing import layouts, ours, pair, same, seeds, shapes
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import candelabra

DTYPES = ["float64", "float32", "bfloat16", "float16", "int64", "int32", "uint8", "bool", "complex128"]
FEW = settings(max_examples=40, deadline=None, derandomize=True)


def drawn(data, shape, layout, seed, dtypes=DTYPES):
    return pair(numpy.random.default_rng(seed), data.draw(st.sampled_from(dtypes)), shape, layout)


def some_dims(data, shape):
    dims = data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(1, len(shape)))]
    return [d - len(shape) if data.draw(st.booleans()) else d for d in dims]


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_roll_and_flip(data, shape, layout, seed):
    tensor, array = drawn(data, shape, layout, seed)
    shift = data.draw(st.integers(-7, 7))
    same(candelabra.roll(tensor, shift), numpy.roll(array, shift))
    assume(shape)
    dims = some_dims(data, shape)
    shifts = [data.draw(st.integers(-7, 7)) for _ in dims]
    same(candelabra.roll(tensor, shifts, dims), numpy.roll(array, shifts, dims))
    twice = [*dims, dims[0]]  # a dimension may be rolled again
    same(candelabra.roll(tensor, [*shifts, 1], twice), numpy.roll(array, [*shifts, 1], twice))
    same(candelabra.flip(tensor, dims), numpy.flip(array, dims))


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_splits(data, shape, layout, seed):
    tensor, array = drawn(data, shape, layout, seed)
    assume(shape)
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    places = data.draw(st.lists(st.integers(-6, 6), max_size=4))
    parts = data.draw(st.integers(1, 6))
    for given_places in (places, ours(numpy.array(places, "int64"))):
        made = candelabra.tensor_split(tensor, given_places, dim)
        for one, wanted in zip(made, numpy.array_split(array, places, dim), strict=True):
            same(one, wanted)
            assert one.numel() == 0 or one._is_view()
    for one, wanted in zip(
        candelabra.tensor_split(tensor, parts, dim), numpy.array_split(array, parts, dim), strict=True
    ):
        same(one, wanted)
    size = data.draw(st.integers(1, 4))
    bounds = range(size, shape[dim], size)
    for made in (candelabra.split(tensor, size, dim), tensor.split(size, dim=dim)):
        for one, wanted in zip(made, numpy.split(array, bounds, dim), strict=True):
            same(one, wanted)
    each = -(-shape[dim] // parts)
    wanted = numpy.split(array, range(each, shape[dim], each), dim) if each else [array] * parts
    for one, expected in zip(candelabra.chunk(tensor, parts, dim), wanted, strict=True):
        same(one, expected)
    for one, expected in zip(candelabra.unbind(tensor, dim), numpy.moveaxis(array, dim, 0), strict=True):
        same(one, expected)


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_splits_of_named_dimensions(data, shape, layout, seed):
    tensor, array = drawn(data, shape, layout, seed)
    places = sorted(data.draw(st.lists(st.integers(0, 5), max_size=3)))
    for name, least in (("hsplit", 1), ("vsplit", 2), ("dsplit", 3)):
        if len(shape) >= least:
            made, wanted = getattr(candelabra, name)(tensor, places), getattr(numpy, name)(array, places)
            for one, expected in zip(made, wanted, strict=True):
                same(one, expected)


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_permutations(data, shape, layout, seed):
    tensor, array = drawn(data, shape, layout, seed)
    assume(shape)
    source = some_dims(data, shape)
    target = data.draw(st.permutations(range(len(shape))))[: len(source)]
    same(candelabra.movedim(tensor, source, target), numpy.moveaxis(array, source, target))
    same(candelabra.moveaxis(tensor, source, target), numpy.moveaxis(array, source, target))
    if len(shape) >= 2:
        a, b = data.draw(st.permutations(range(len(shape))))[:2]
        k = data.draw(st.integers(-5, 5))
        same(candelabra.rot90(tensor, k, [a, b]), numpy.rot90(array, k, (a, b)))


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_repetitions(data, shape, layout, seed):
    tensor, array = drawn(data, shape, layout, seed)
    assume(shape)
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    counts = numpy.random.default_rng(seed).integers(0, 4, shape[dim])
    same(candelabra.repeat_interleave(tensor, ours(counts), dim), numpy.repeat(array, counts, dim))
    same(
        candelabra.repeat_interleave(tensor, ours(counts), dim, output_size=int(counts.sum())),
        numpy.repeat(array, counts, dim),
    )
    same(candelabra.repeat_interleave(ours(counts)), numpy.repeat(numpy.arange(len(counts)), counts))
    same(candelabra.repeat_interleave(tensor, 2), numpy.repeat(array, 2))
    times = [data.draw(st.integers(0, 2)) for _ in range(len(shape) + data.draw(st.integers(0, 1)))]
    same(tensor.repeat(*times), numpy.tile(array, times))


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_diagonals(data, shape, layout, seed):
    tensor, array = drawn(data, shape, layout, seed)
    assume(shape)
    offset = data.draw(st.integers(-2, 2))
    size = shape[-1] + abs(offset)
    expected = numpy.zeros((*shape[:-1], size, size), array.dtype)
    row, column = max(-offset, 0), max(offset, 0)
    for i in range(shape[-1]):
        expected[..., row + i, column + i] = array[..., i]
    same(candelabra.diag_embed(tensor, offset), expected)
    a, b = data.draw(st.permutations(range(len(shape) + 1)))[:2]
    same(candelabra.diag_embed(tensor, offset, a, b), numpy.moveaxis(expected, (-2, -1), (a, b)))
    if len(shape) <= 2:
        same(candelabra.diag(tensor, offset), numpy.diag(array, offset))
    same(candelabra.diagflat(tensor, offset), numpy.diagflat(array, offset))
    other, other_array = drawn(
        data, data.draw(st.sampled_from([(), (2,), (1, 3), (0, 2)])), layout, seed, [str(tensor.dtype)[11:]]
    )
    if len(shape) <= 2:
        blocks = [numpy.atleast_2d(array), numpy.atleast_2d(other_array)]
        whole = numpy.zeros([sum(sizes) for sizes in zip(*(block.shape for block in blocks), strict=True)], array.dtype)
        whole[: blocks[0].shape[0], : blocks[0].shape[1]] = blocks[0]
        whole[blocks[0].shape[0] :, blocks[0].shape[1] :] = blocks[1]
        same(candelabra.block_diag(tensor, other), whole)


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_windows(data, shape, layout, seed):
    """Windows may overlap; what is written through one is seen by its neighbours."""
    tensor, array = drawn(data, shape, layout, seed, ["float64", "int64", "complex128", "bool"])
    assume(shape)
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    assume(shape[dim])
    size, step = data.draw(st.integers(1, shape[dim])), data.draw(st.integers(1, 4))
    view = numpy.lib.stride_tricks.sliding_window_view(array, size, axis=dim)
    along = (slice(None),) * (dim % len(shape)) + (slice(None, None, step),)
    windows = tensor.unfold(dim, size, step)
    same(windows, view[along])
    if array.dtype != bool:
        same((windows + windows).sum(-1), 2 * view[along].sum(-1))
    same(candelabra.cat([windows, windows], dim % len(shape)), numpy.concatenate([view[along]] * 2, dim % len(shape)))


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_differences(data, shape, layout, seed):
    tensor, array = drawn(data, shape, layout, seed, ["float64", "int64", "complex128", "bool", "uint8"])
    assume(shape)
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    n = data.draw(st.integers(0, 3))
    thinner = [n_ if d != dim % len(shape) else 2 for d, n_ in enumerate(shape)]
    more, more_array = drawn(data, thinner, layout, seed + 1, [str(tensor.dtype)[11:]])
    same(candelabra.diff(tensor, n, dim), numpy.diff(array, n, dim))
    if n:
        same(
            candelabra.diff(tensor, n, dim, prepend=more, append=more),
            numpy.diff(array, n, dim, prepend=more_array, append=more_array),
        )
    if array.dtype.kind in "fc" and shape[dim] > 0:
        same(candelabra.trapezoid(tensor, dx=0.5, dim=dim), numpy.trapezoid(array, dx=0.5, axis=dim))
        x = numpy.sort(numpy.random.default_rng(seed).uniform(0, 1, shape[dim]))
        same(candelabra.trapezoid(tensor, ours(x), dim=dim), numpy.trapezoid(array, x, axis=dim))


@FEW
@given(data=st.data(), seed=seeds, layout=layouts)
def test_products_of_sets(data, seed, layout):
    arrays = [
        drawn(data, (data.draw(st.integers(0, 3)),), layout, seed + i, ["int64"])
        for i in range(data.draw(st.integers(1, 3)))
    ]
    wanted = numpy.array(list(itertools.product(*(array for _, array in arrays))), "int64")
    made = candelabra.cartesian_prod(*(tensor for tensor, _ in arrays))
    same(made, wanted.reshape(-1) if len(arrays) == 1 else wanted.reshape(-1, len(arrays)))
    tensor, array = arrays[0]
    for r in (1, 2):
        for replaced in (False, True):
            choose = itertools.combinations_with_replacement if replaced else itertools.combinations
            same(
                candelabra.combinations(tensor, r, replaced),
                numpy.array(list(choose(array, r)), "int64").reshape(-1, r),
            )
    same(candelabra.vander(tensor, 4), numpy.vander(array, 4))
    grids = candelabra.meshgrid([tensor for tensor, _ in arrays], indexing="xy")
    for grid, expected in zip(grids, numpy.meshgrid(*(array for _, array in arrays), indexing="xy"), strict=True):
        same(grid, expected)


@FEW
@given(data=st.data(), shape=st.lists(st.integers(1, 5), min_size=1, max_size=4), seed=seeds)
def test_places_in_a_row(data, shape, seed):
    count = numpy.prod(shape)
    places = numpy.random.default_rng(seed).integers(0, count, data.draw(st.sampled_from([(), (4,), (2, 3), (0,)])))
    for made, wanted in zip(
        candelabra.unravel_index(ours(places), tuple(shape)), numpy.unravel_index(places, shape), strict=True
    ):
        same(made, wanted)
    rows, columns, offset = shape[0], shape[-1], data.draw(st.integers(-3, 3))
    same(candelabra.tril_indices(rows, columns, offset), numpy.array(numpy.tril_indices(rows, offset, columns)))
    same(candelabra.triu_indices(rows, columns, offset), numpy.array(numpy.triu_indices(rows, offset, columns)))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: candelabra.roll(x, [1, 2], [0]), RuntimeError, "shifts and dimensions must align"),
        (lambda x: candelabra.flip(x, [0, 0]), RuntimeError, "dim 0 appears multiple times"),
        (lambda x: candelabra.flip(x, [5]), IndexError, "Dimension out of range"),
        (lambda x: candelabra.rot90(x, 1, [0, 0]), RuntimeError, "expected rotation dims to be different"),
        (lambda x: candelabra.movedim(x, [0, 1], [0]), RuntimeError, "same number of dims"),
        (lambda x: candelabra.movedim(x, [0, 0], [0, 1]), RuntimeError, "repeated dim"),
        (lambda x: candelabra.tensor_split(x, 0), RuntimeError, "larger than 0"),
        (lambda x: candelabra.hsplit(x, 2), RuntimeError, "2"),
        (lambda x: candelabra.split(x, -1), RuntimeError, "non-negative"),
        (lambda x: candelabra.split(x, [1, 5]), RuntimeError, "exactly"),
        (lambda x: candelabra.chunk(x, 0), RuntimeError, "greater than 0"),
        (lambda x: candelabra.repeat_interleave(x, candelabra.tensor([1, -1]), 0), RuntimeError, "negative"),
        (lambda x: candelabra.repeat_interleave(x, candelabra.tensor([1, 2, 3]), 0), RuntimeError, "same size"),
        (lambda x: x.repeat(2), RuntimeError, "can not be smaller than number of dimensions"),
        (lambda x: x.unfold(0, 9, 1), RuntimeError, "maximum size for tensor at dimension 0 is 2 but size is 9"),
        (lambda x: x.unfold(0, 1, 0), RuntimeError, "step is 0"),
        (lambda x: candelabra.unravel_index(candelabra.tensor([6]), (2, 3)), ValueError, "out of bounds"),
        (lambda x: candelabra.diag_embed(x, 0, 1, 1), RuntimeError, "cannot be identical"),
    ],
)
def test_errors(call, kind, message):
    x = candelabra.arange(6).reshape(2, 3)
    with pytest.raises(kind, match=message):
        call(x)
