"""Order statistics, sorting, searching, sets and histograms against NumPy, over random shapes,
layouts and dtypes.
"""

import warnings

import numpy
import pytest
from drawing import layouts, ours, pair, same, seeds, shapes
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import candelabra

ORDERED = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8"]
FEW = settings(max_examples=40, deadline=None, derandomize=True)


def drawn(data, shape, layout, seed, dtypes=ORDERED, nan=False):
    """A tensor with one dimension at least, and one of its dimensions that is not empty."""
    assume(shape)
    dtype = data.draw(st.sampled_from(dtypes))
    tensor, array = pair(numpy.random.default_rng(seed), dtype, shape, layout)
    if nan and array.dtype.kind == "f" and data.draw(st.booleans()):
        array = numpy.where(numpy.random.default_rng(seed).random(shape) < 0.2, numpy.nan, array).astype(array.dtype)
        tensor = ours(array, dtype)
    return tensor, array, data.draw(st.integers(-len(shape), len(shape) - 1))


def wide(tensor):
    return tensor.to(candelabra.float32) if tensor.dtype == candelabra.bfloat16 else tensor


def points_at(made, array, dim, keepdim):
    """Whether the indices of a result of one per row are where its values are."""
    values, indices = made if keepdim else (made[0].unsqueeze(dim), made[1].unsqueeze(dim))
    same(values, numpy.take_along_axis(array, indices.numpy(), dim))


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, keepdim=st.booleans())
def test_kthvalue(data, shape, layout, seed, keepdim):
    tensor, array, dim = drawn(data, shape, layout, seed, nan=True)
    assume(shape[dim])
    k = data.draw(st.integers(1, shape[dim]))
    made = candelabra.kthvalue(tensor, k, dim, keepdim)
    expected = numpy.take(numpy.sort(array, dim), [k - 1], dim)
    same(made.values, expected if keepdim else expected.squeeze(dim))
    points_at(made, array, dim, keepdim)


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, keepdim=st.booleans())
def test_mode(data, shape, layout, seed, keepdim):
    """The smallest of the values that are there most often."""
    tensor, array, dim = drawn(data, shape, layout, seed)
    assume(shape[dim])

    def most(row):
        values, counts = numpy.unique(row, return_counts=True)
        return values[counts.argmax()]

    made = candelabra.mode(tensor, dim, keepdim)
    if array.size:
        expected = numpy.apply_along_axis(most, dim, array)
        same(made.values, numpy.expand_dims(expected, dim) if keepdim else expected)
    points_at(made, array, dim, keepdim)


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, keepdim=st.booleans(), ignore=st.booleans())
def test_median(data, shape, layout, seed, keepdim, ignore):
    tensor, array, dim = drawn(data, shape, layout, seed, nan=True)
    assume(shape[dim])
    made = (candelabra.nanmedian if ignore else candelabra.median)(tensor, dim, keepdim)
    ascending = numpy.sort(array, dim)
    numbers = (array == array).sum(dim, keepdims=True)
    if ignore:
        place = numpy.maximum(numbers - 1, 0) // 2
    else:
        place = numpy.where(numbers == shape[dim], (shape[dim] - 1) // 2, shape[dim] - 1)
    expected = numpy.take_along_axis(ascending, place, dim)
    same(made.values, expected if keepdim else expected.squeeze(dim))
    points_at(made, array, dim, keepdim)


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
@settings(max_examples=30, deadline=None, derandomize=True)
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, keepdim=st.booleans())
def test_quantile(interpolation, data, shape, layout, seed, keepdim):
    tensor, array, dim = drawn(data, shape, layout, seed, ["float64"], nan=True)
    assume(0 not in shape)
    q = data.draw(st.sampled_from([0.0, 0.25, 0.5, 1.0, [0.5], [0.125, 0.75, 0.0]]))
    whole = data.draw(st.booleans())
    given_dim, axis = (None, None) if whole else (dim, dim)
    for name in ("quantile", "nanquantile"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = getattr(numpy, name)(array, q, axis=axis, method=interpolation, keepdims=keepdim)
            if name == "quantile":  # NumPy returns a number of the middle for rows with NaN in some methods
                gone = numpy.isnan(array).any(axis=axis, keepdims=keepdim)
                expected = numpy.where(gone, numpy.nan, expected)
        given_q = q if isinstance(q, float) else candelabra.tensor(q, dtype=candelabra.float64)
        made = getattr(candelabra, name)(tensor, given_q, given_dim, keepdim, interpolation=interpolation)
        same(made, expected)


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, largest=st.booleans(), ordered=st.booleans())
def test_topk(data, shape, layout, seed, largest, ordered):
    tensor, array, dim = drawn(data, shape, layout, seed, nan=True)
    k = data.draw(st.integers(0, shape[dim]))
    values, indices = candelabra.topk(tensor, k, dim, largest, ordered)
    expected = numpy.sort(array, dim)
    expected = numpy.take(numpy.flip(expected, dim) if largest else expected, range(k), dim)
    found = wide(values).numpy()
    if not ordered:
        found = numpy.sort(found, dim)
        expected = numpy.sort(expected, dim)
    numpy.testing.assert_array_equal(found, expected)
    same(values, numpy.take_along_axis(array, indices.numpy(), dim))


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, descending=st.booleans())
def test_stable_sort(data, shape, layout, seed, descending):
    """Equal elements stay in their order both ways; NaN is greater than everything."""
    tensor, array, dim = drawn(data, shape, layout, seed, [*ORDERED, "bool"], nan=True)
    if descending:  # stable the other way round: the reversed array from its end
        order = shape[dim] - 1 - numpy.flip(numpy.argsort(numpy.flip(array, dim), dim, kind="stable"), dim)
    else:
        order = numpy.argsort(array, dim, kind="stable")
    values, indices = candelabra.sort(tensor, dim=dim, descending=descending, stable=True)
    same(indices, order)
    same(values, numpy.take_along_axis(array, order, dim))
    same(candelabra.argsort(tensor, dim=dim, descending=descending, stable=True), order)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_running_extremes(name, data, shape, layout, seed):
    """The index is that of the last of equal elements; NaN stays from where it comes on."""
    tensor, array, dim = drawn(data, shape, layout, seed, [*ORDERED, "bool"], nan=True)
    values, indices = getattr(candelabra, name)(tensor, dim)
    rows = numpy.moveaxis(array, dim, -1).reshape(-1, shape[dim]) if array.size else numpy.zeros((0, shape[dim]))
    places = numpy.zeros(rows.shape, int)
    for row, at in zip(rows, places, strict=True):
        best = 0
        for i, x in enumerate(row):
            if x != x or (row[best] == row[best] and (x >= row[best] if name == "cummax" else x <= row[best])):
                best = i
            at[i] = best
    moved = [n for d, n in enumerate(shape) if d != dim % len(shape)]
    places = numpy.moveaxis(places.reshape(*moved, shape[dim]), -1, dim)
    same(indices, places)
    same(values, numpy.take_along_axis(array, places, dim))


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, scale=st.sampled_from([1, 30, 1e3]))
def test_logcumsumexp(data, shape, layout, seed, scale):
    """Also of numbers of which one drowns all before it, with the kernel and with the
    decomposition.
    """
    dtypes = ["float64", "float32", "complex128", "bfloat16", "float16"]
    tensor, array, dim = drawn(data, shape, layout, seed, dtypes if scale == 1 else dtypes[:1])
    tensor, array = tensor * scale, array * scale
    precise = array.astype("complex128" if array.dtype.kind == "c" else "float64")
    tolerance = 2e-2 if tensor.dtype in (candelabra.bfloat16, candelabra.float16) else 1e-5
    for made in (candelabra.logcumsumexp(tensor, dim), candelabra.ops.logcumsumexp.composite(tensor, dim)):
        if array.dtype.kind == "c":  # which branch of the logarithm is left open
            same(made.exp(), numpy.cumsum(numpy.exp(precise), dim), 1e-8)
        else:
            same(made, numpy.logaddexp.accumulate(precise, dim) if array.size else array, tolerance)


def test_logcumsumexp_of_what_is_not_finite():
    infinite = float("inf")
    rows = [
        [-infinite, -infinite, 1, 1],
        [0, infinite, 5, infinite],
        [1, float("nan"), 2, 3],
        [-infinite, -1000, 1000, -infinite],
    ]
    with numpy.errstate(invalid="ignore"):
        expected = numpy.logaddexp.accumulate(numpy.array(rows), 1)
    x = candelabra.tensor(rows, dtype=candelabra.float64)
    same(candelabra.logcumsumexp(x, 1), expected)
    same(candelabra.ops.logcumsumexp.composite(x, 1), expected)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, right=st.booleans(), small=st.booleans())
def test_searchsorted(data, shape, layout, seed, right, small):
    """Rows of boundaries for rows of values; values of one row for all; a sorter; bucketize."""
    tensor, array, _ = drawn(data, shape, layout, seed, ["float64", "int64", "int32", "uint8", "float16", "bfloat16"])
    random = numpy.random.default_rng(seed)
    dtype = str(tensor.dtype).rpartition(".")[2]
    count = data.draw(st.integers(0, 4))
    edges = random.integers(0, 5, (*shape[:-1], count))
    order = numpy.argsort(edges, -1, kind="stable")
    ascending = numpy.take_along_axis(edges, order, -1)
    side = "right" if right else "left"
    expected = numpy.empty(shape, int)
    for row in numpy.ndindex(*shape[:-1]):
        expected[row] = numpy.searchsorted(ascending[row], array[row], side)
    wanted = candelabra.int32 if small else candelabra.int64
    for made in (
        candelabra.searchsorted(ours(ascending, dtype), tensor, right=right, out_int32=small),
        candelabra.searchsorted(ours(ascending, dtype), tensor, side=side, out_int32=small),
        candelabra.searchsorted(ours(edges, dtype), tensor, right=right, out_int32=small, sorter=ours(order)),
    ):
        assert made.dtype == wanted
        same(made, expected)
    line = numpy.sort(random.integers(0, 5, count))
    same(candelabra.searchsorted(ours(line, dtype), tensor, right=right), numpy.searchsorted(line, array, side))
    same(candelabra.bucketize(tensor, ours(line, dtype), right=right), numpy.searchsorted(line, array, side))
    assert candelabra.searchsorted(ours(line), 2, right=right).item() == numpy.searchsorted(line, 2, side)


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, ascending=st.booleans())
def test_unique(data, shape, layout, seed, ascending):
    tensor, array, dim = drawn(data, shape, layout, seed, [*ORDERED, "bool"])
    values, inverse, counts = candelabra.unique(tensor, ascending, return_inverse=True, return_counts=True)
    expected, places, numbers = numpy.unique(array, return_inverse=True, return_counts=True)
    same(values, expected)
    same(inverse, places.reshape(shape))
    same(counts, numbers)
    assume(0 not in shape)
    values, inverse, counts = candelabra.unique(tensor, return_inverse=True, return_counts=True, dim=dim)
    expected, places, numbers = numpy.unique(array, return_inverse=True, return_counts=True, axis=dim)
    same(values, expected)
    same(inverse, places.reshape(-1))
    same(counts, numbers)


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_unique_consecutive(data, shape, layout, seed):
    tensor, array, dim = drawn(data, shape, layout, seed, [*ORDERED, "bool"])

    def runs(slices):
        kept = [i for i in range(len(slices)) if i == 0 or not numpy.array_equal(slices[i], slices[i - 1])]
        lengths = numpy.diff([*kept, len(slices)])
        return kept, numpy.repeat(range(len(kept)), lengths), lengths

    made = candelabra.unique_consecutive(tensor, return_inverse=True, return_counts=True)
    kept, places, lengths = runs(array.reshape(-1))
    for mine, wanted in zip(made, (array.reshape(-1)[kept], places.reshape(shape), lengths), strict=True):
        same(mine, wanted.astype(array.dtype) if mine is made[0] else wanted)
    assume(0 not in shape)
    made = candelabra.unique_consecutive(tensor, return_inverse=True, return_counts=True, dim=dim)
    kept, places, lengths = runs(numpy.moveaxis(array, dim, 0))
    for mine, wanted in zip(made, (numpy.take(array, kept, dim), places, lengths), strict=True):
        same(mine, wanted)


@FEW
@given(
    data=st.data(), shape=shapes, layout=layouts, seed=seeds, invert=st.booleans(), count=st.sampled_from([0, 1, 3, 70])
)
def test_isin(data, shape, layout, seed, invert, count):
    tensor, array, _ = drawn(data, shape, layout, seed)
    others = numpy.random.default_rng(seed).integers(0, 4, count)
    dtype = str(tensor.dtype).rpartition(".")[2]
    same(candelabra.isin(tensor, ours(others, dtype), invert=invert), numpy.isin(array, others, invert=invert))
    same(candelabra.isin(tensor, 2, invert=invert), numpy.isin(array, 2, invert=invert))
    assert candelabra.isin(2, tensor, invert=invert).item() == numpy.isin(2, array, invert=invert)


@FEW
@given(data=st.data(), seed=seeds, count=st.integers(0, 9), least=st.integers(0, 12), step=st.sampled_from([1, 2]))
def test_bincount(data, seed, count, least, step):
    random = numpy.random.default_rng(seed)
    dtype = data.draw(st.sampled_from(["int64", "int32", "int16", "int8", "uint8"]))
    array = random.integers(0, 8, count * step)
    tensor = ours(array, dtype)[::step]
    same(candelabra.bincount(tensor, minlength=least), numpy.bincount(array[::step], minlength=least))
    weights = random.uniform(-1, 1, count)
    for kind in ("float64", "float32", "int64"):
        given_weights = ours(weights.astype(kind), kind)
        made = candelabra.bincount(tensor, given_weights, least)
        assert made.dtype == (candelabra.float32 if kind == "float32" else candelabra.float64)
        same(made, numpy.bincount(array[::step], weights.astype(kind), least), 1e-6)


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, bins=st.integers(1, 7))
def test_histc(data, shape, layout, seed, bins):
    tensor, array = pair(
        numpy.random.default_rng(seed), data.draw(st.sampled_from(["float64", "float32"])), shape, layout
    )
    # no number is where two bins meet: to which of them it belongs is a matter of rounding
    tensor, array = (tensor * 8).round() / 8 + 1 / 64, numpy.round(array * 8) / 8 + array.dtype.type(1 / 64)
    for between in ((-2, 2), (0, 1.5), (-8, 8)):
        expected = numpy.histogram(array, bins, between)[0]
        same(candelabra.histc(tensor, bins, *between), expected.astype(array.dtype))
    whole = candelabra.histc(tensor, 1)
    same(whole, numpy.array([array.size], array.dtype))
    if array.size and array.min() < array.max():
        same(candelabra.histc(tensor, bins), candelabra.histc(tensor, bins, array.min(), array.max()).numpy())


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, keepdim=st.booleans())
def test_extremes_with_places(data, shape, layout, seed, keepdim):
    tensor, array, dim = drawn(data, shape, layout, seed, [*ORDERED, "bool"], nan=True)
    assume(shape[dim])
    for name, reduce in (("max", numpy.max), ("min", numpy.min)):
        made = getattr(candelabra, name)(tensor, dim, keepdim)
        same(made.values, reduce(array, dim, keepdims=keepdim))
        points_at(made, array, dim, keepdim)
        if array.dtype == bool:
            continue
        place = getattr(candelabra, f"arg{name}")(tensor, dim, keepdim)
        same(place, getattr(numpy, f"arg{name}")(array, dim, keepdims=keepdim))
