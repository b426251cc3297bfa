"""Every reduction, scan, sorting and indexing operator along a dimension, against NumPy, over
random shapes and layouts.
"""

import warnings

import numpy
import pytest
import scipy.special
from drawing import layouts, pair, same, seeds, shapes
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import candelabra


def median(x, axis, keepdims):
    """The lower of the middle two."""
    made = numpy.take(numpy.sort(x, axis), [(x.shape[axis] - 1) // 2], axis)
    return made if keepdims else made.squeeze(axis)


#: name: (NumPy's function of array, axis, keepdims; dtypes; whether an empty dimension is allowed)
REDUCTIONS = {
    "sum": (lambda x, d, k: x.sum(axis=d, keepdims=k, dtype=None if x.dtype.kind in "fc" else "int64"), "all", True),
    "prod": (lambda x, d, k: x.prod(axis=d, keepdims=k, dtype=None if x.dtype.kind in "fc" else "int64"), "all", True),
    "mean": (lambda x, d, k: x.mean(axis=d, keepdims=k), "float", False),
    "nansum": (lambda x, d, k: numpy.nansum(x, axis=d, keepdims=k), "real", True),
    "nanmean": (lambda x, d, k: numpy.nanmean(x, axis=d, keepdims=k), "real", False),
    "amax": (lambda x, d, k: x.max(axis=d, keepdims=k), "ordered", False),
    "amin": (lambda x, d, k: x.min(axis=d, keepdims=k), "ordered", False),
    "argmax": (lambda x, d, k: numpy.argmax(x, axis=d, keepdims=k), "real", False),
    "argmin": (lambda x, d, k: numpy.argmin(x, axis=d, keepdims=k), "real", False),
    "all": (lambda x, d, k: x.all(axis=d, keepdims=k), "bool", True),
    "any": (lambda x, d, k: x.any(axis=d, keepdims=k), "bool", True),
    "var": (lambda x, d, k: x.var(axis=d, keepdims=k, ddof=1), "variance", False),
    "std": (lambda x, d, k: x.std(axis=d, keepdims=k, ddof=1), "variance", False),
    "logsumexp": (lambda x, d, k: scipy.special.logsumexp(x, axis=d, keepdims=k), "real", False),
    "median": (median, "ordered", False),
    "count_nonzero": (lambda x, d, k: numpy.count_nonzero(x, axis=d), "all", True),
    "aminmax": (lambda x, d, k: (x.min(axis=d, keepdims=k), x.max(axis=d, keepdims=k)), "ordered", False),
}
#: The same of results of the input's shape.
SCANS = {
    "cumsum": (lambda x, d: numpy.cumsum(x, d, dtype=None if x.dtype.kind in "fc" else "int64"), "all"),
    "cumprod": (lambda x, d: numpy.cumprod(x, d, dtype=None if x.dtype.kind in "fc" else "int64"), "all"),
    "logcumsumexp": (lambda x, d: numpy.logaddexp.accumulate(x, d), "real"),
    "cummax": (lambda x, d: numpy.maximum.accumulate(x, d), "ordered"),
    "cummin": (lambda x, d: numpy.minimum.accumulate(x, d), "ordered"),
    "sort": (lambda x, d: numpy.sort(x, d), "ordered"),
    "msort": (lambda x, d: numpy.sort(x, 0), "ordered"),
    "softmax": (lambda x, d: scipy.special.softmax(x, d), "real"),
    "log_softmax": (lambda x, d: scipy.special.log_softmax(x, d), "real"),
    "diff": (lambda x, d: numpy.diff(x, axis=d), "ordered"),
}
DTYPES = {
    "all": ["float64", "int64", "uint8", "complex128"], "float": ["float64", "complex128"], "real": ["float64"],
    "ordered": ["float64", "int64", "uint8"], "bool": ["float64", "int64", "bool"], "variance": ["float64"],
}  # fmt: skip


def drawn(data, shape, layout, seed, kinds):
    assume(shape)
    tensor, array = pair(numpy.random.default_rng(seed), data.draw(st.sampled_from(DTYPES[kinds])), shape, layout)
    return tensor, array, data.draw(st.integers(-len(shape), len(shape) - 1))


@pytest.mark.parametrize("name", REDUCTIONS)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, keepdim=st.booleans())
def test_reduction(name, data, shape, layout, seed, keepdim):
    theirs, kinds, empty = REDUCTIONS[name]
    tensor, array, dim = drawn(data, shape, layout, seed, kinds)
    assume(empty or shape[dim] > 0)
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = theirs(array, dim, keepdim)
        if name == "count_nonzero":
            made = candelabra.count_nonzero(tensor, dim)
        elif name == "aminmax":
            made = candelabra.aminmax(tensor, dim=dim, keepdim=keepdim)
        else:
            made = getattr(candelabra, name)(tensor, dim, keepdim=keepdim)
    if name == "median":
        made = made.values
    for ours, wanted in zip(
        made if isinstance(made, tuple) else (made,),
        expected if isinstance(expected, tuple) else (expected,),
        strict=True,
    ):
        same(ours, numpy.asarray(wanted))


@pytest.mark.parametrize("name", SCANS)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_scan(name, data, shape, layout, seed):
    theirs, kinds = SCANS[name]
    tensor, array, dim = drawn(data, shape, layout, seed, kinds)
    assume(shape[dim] > 0 and 0 not in shape)
    if name == "msort":
        made = candelabra.msort(tensor)
    elif name == "diff":
        made = candelabra.diff(tensor, dim=dim)
    else:
        made = getattr(candelabra, name)(tensor, dim)
    values = made[0] if isinstance(made, tuple) else made
    if name == "diff" and array.dtype == numpy.uint8:
        return same(values, theirs(array, dim))
    same(values, theirs(array, dim))
    if isinstance(made, tuple):
        same(values, numpy.take_along_axis(array, made[1].numpy(), dim))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_over_all_dimensions(data, shape, layout, seed):
    tensor, array = pair(numpy.random.default_rng(seed), "float64", shape, layout)
    same(tensor.sum(), array.sum())
    same(tensor.prod(), array.prod())
    same(candelabra.linalg.vector_norm(tensor), numpy.linalg.norm(array))
    dims = tuple(range(0, len(shape), 2))
    if dims:
        same(tensor.sum(dims), array.sum(dims))
    if array.size:
        same(tensor.amax(), array.max())
        same(tensor.mean(), array.mean())
        assert tensor.argmax().item() == array.argmax()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, count=st.integers(0, 4))
def test_along_a_dimension(data, shape, layout, seed, count):
    """Taking and putting by positions."""
    tensor, array, dim = drawn(data, shape, layout, seed, "real")
    assume(0 not in shape)
    random = numpy.random.default_rng(seed)
    places = random.integers(0, shape[dim], count)
    index = candelabra.tensor(places, dtype=candelabra.int64)
    same(tensor.index_select(dim, index), numpy.take(array, places, dim))
    grid = random.integers(0, shape[dim], [n if d != dim % len(shape) else count for d, n in enumerate(shape)])
    same(
        tensor.gather(dim, candelabra.tensor(grid, dtype=candelabra.int64).reshape(grid.shape)),
        numpy.take_along_axis(array, grid, dim),
    )
    flat = random.integers(0, array.size, count)
    same(tensor.take(candelabra.tensor(flat, dtype=candelabra.int64)), array.reshape(-1)[flat])
    filled, expected = tensor.index_fill(dim, index, 9.0), numpy.moveaxis(array.copy(), dim, 0)
    expected[places] = 9.0
    same(filled, numpy.moveaxis(expected, 0, dim))
    source = values_like(random, array, dim, count)
    added, expected = tensor.index_add(dim, index, candelabra.tensor(source)), numpy.moveaxis(array.copy(), dim, 0)
    numpy.add.at(expected, places, numpy.moveaxis(source, dim, 0))
    same(added, numpy.moveaxis(expected, 0, dim))
    scattered, expected = (
        tensor.scatter_add(
            dim, candelabra.tensor(grid, dtype=candelabra.int64).reshape(grid.shape), candelabra.tensor(source)
        ),
        array.copy(),
    )
    at = list(numpy.indices(grid.shape))
    at[dim % len(shape)] = grid
    numpy.add.at(expected, tuple(at), source)
    same(scattered, expected)


def values_like(random, array, dim, count):
    shape = list(array.shape)
    shape[dim] = count
    return random.uniform(-1, 1, shape)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(shape=shapes, layout=layouts, seed=seeds)
def test_sets(shape, layout, seed):
    tensor, array = pair(numpy.random.default_rng(seed), "int64", shape, layout)
    made = candelabra.unique(tensor, return_inverse=True, return_counts=True)
    values, inverse, counts = numpy.unique(array, return_inverse=True, return_counts=True)
    same(made[0], values)
    same(made[1], inverse.reshape(shape))
    same(made[2], counts)
    edges = candelabra.tensor([-2, 0, 1])
    same(candelabra.bucketize(tensor, edges), numpy.searchsorted(edges.numpy(), array))
    same(candelabra.bucketize(tensor, edges, right=True), numpy.searchsorted(edges.numpy(), array, side="right"))
    same(candelabra.isin(tensor, edges), numpy.isin(array, edges.numpy()))
    flat = numpy.abs(array.reshape(-1))
    same(candelabra.bincount(tensor.reshape(-1).abs()), numpy.bincount(flat) if flat.size else numpy.zeros(0, int))
