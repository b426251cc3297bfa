"""Every view and every operator that moves elements, against NumPy, over random shapes and layouts;
views share memory.
"""

import numpy
import pytest
from drawing import layouts, pair, same, seeds, shapes
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import candelabra


def dim(draw, shape):
    assume(shape)
    return draw(st.integers(-len(shape), len(shape) - 1))


def two(draw, shape):
    return dim(draw, shape), dim(draw, shape)


def permutation(draw, shape):
    return tuple(draw(st.permutations(range(len(shape)))))


def part(draw, shape):
    """A dimension, a start and a length inside it."""
    d = dim(draw, shape)
    start = draw(st.integers(0, shape[d]))
    return d, start, draw(st.integers(0, shape[d] - start))


def piece(draw, shape):
    """A slice of a dimension, as Python would take it."""
    d = dim(draw, shape)
    bounds = st.none() | st.integers(-shape[d] - 1, shape[d] + 1)
    return d, draw(bounds), draw(bounds), draw(st.integers(1, 3))


def along(array, d, start, stop, step=1):
    return array[(slice(None),) * (d % array.ndim) + (slice(start, stop, step),)]


def windows(draw, shape):
    d = dim(draw, shape)
    assume(shape[d] > 0)
    return d, draw(st.integers(1, shape[d])), draw(st.integers(1, 3))


def unfolded(array, d, size, step):
    view = numpy.lib.stride_tricks.sliding_window_view(array, size, axis=d)
    return along(view, d % array.ndim, None, None, step)


def split_sizes(draw, shape):
    d = dim(draw, shape)
    first = draw(st.integers(0, shape[d]))
    return d, [first, shape[d] - first]


def diagonal(draw, shape):
    assume(len(shape) >= 2)
    a, b = draw(st.permutations(range(len(shape))))[:2]
    return draw(st.integers(-2, 2)), a, b


def shifts(draw, shape):
    d = dim(draw, shape)
    return draw(st.integers(-4, 4)), d


#: name: (arguments, Candelabra's, NumPy's, whether the result shares memory)
CASES = {
    "transpose": (two, lambda x, a, b: x.transpose(a, b), numpy.swapaxes, True),
    "swapaxes": (two, lambda x, a, b: candelabra.swapaxes(x, a, b), numpy.swapaxes, True),
    "permute": (lambda draw, s: (permutation(draw, s),), lambda x, p: x.permute(p), numpy.transpose, True),
    "movedim": (two, lambda x, a, b: x.movedim(a, b), numpy.moveaxis, True),
    "unsqueeze": (
        lambda draw, s: (draw(st.integers(-len(s) - 1, len(s))),), lambda x, d: x.unsqueeze(d), numpy.expand_dims, True,
    ),
    "squeeze": (lambda draw, s: (), lambda x: x.squeeze(), numpy.squeeze, True),
    "narrow": (part, lambda x, d, a, n: x.narrow(d, a, n), lambda x, d, a, n: along(x, d, a, a + n), True),
    "slice": (piece, lambda x, d, a, b, k: along(x, d, a, b, k), along, True),
    "select": (
        lambda draw, s: (lambda d: (d, draw(st.integers(-s[d], s[d] - 1)) if s[d] else assume(False)))(dim(draw, s)),
        lambda x, d, i: x.select(d, i), lambda x, d, i: numpy.take(x, i, d), True,
    ),
    "unfold": (windows, lambda x, d, n, k: x.unfold(d, n, k), unfolded, True),
    "diagonal": (diagonal, lambda x, o, a, b: x.diagonal(o, a, b), numpy.diagonal, True),
    "expand": (
        lambda draw, s: (draw(st.integers(0, 2)),), lambda x, n: x.expand(n, *x.shape), lambda x, n: numpy.broadcast_to(x, (n, *x.shape)), True,
    ),
    "view": (lambda draw, s: (), lambda x: x.contiguous().view(-1) if x.numel() else x.reshape(0), numpy.ravel, False),
    "reshape": (lambda draw, s: (), lambda x: x.reshape(*x.shape, 1), lambda x: x.reshape(*x.shape, 1), True),
    "flatten": (lambda draw, s: (), lambda x: x.flatten(), numpy.ravel, False),
    "split": (split_sizes, lambda x, d, n: candelabra.cat(x.split(n, d)[::-1], d),
              lambda x, d, n: numpy.concatenate(numpy.split(x, [n[0]], d)[::-1], d), False),
    "tensor_split": (lambda draw, s: (dim(draw, s), draw(st.integers(1, 4))), lambda x, d, n: candelabra.cat(x.tensor_split(n, d)[::-1], d),
                     lambda x, d, n: numpy.concatenate(numpy.array_split(x, n, d)[::-1], d), False),
    "flip": (lambda draw, s: (dim(draw, s),), lambda x, d: x.flip(d), numpy.flip, False),
    "roll": (shifts, lambda x, k, d: x.roll(k, d), numpy.roll, False),
    "rot90": (lambda draw, s: (draw(st.integers(-3, 3)), *diagonal(draw, s)[1:]), lambda x, k, a, b: candelabra.rot90(x, k, (a, b)),
              lambda x, k, a, b: numpy.rot90(x, k, (a, b)), False),
    "tile": (lambda draw, s: (draw(st.lists(st.integers(0, 2), min_size=1, max_size=4)),), lambda x, n: x.tile(tuple(n)), numpy.tile, False),
    "repeat_interleave": (lambda draw, s: (draw(st.integers(0, 3)), dim(draw, s)), lambda x, n, d: x.repeat_interleave(n, d), numpy.repeat, False),
    "cat": (lambda draw, s: (dim(draw, s),), lambda x, d: candelabra.cat([x, x], d), lambda x, d: numpy.concatenate([x, x], d), False),
    "stack": (lambda draw, s: (draw(st.integers(-len(s) - 1, len(s))),), lambda x, d: candelabra.stack([x, x], d),
              lambda x, d: numpy.stack([x, x], d), False),
    "hstack": (lambda draw, s: (), lambda x: candelabra.hstack([x, x]), lambda x: numpy.hstack([x, x]), False),
    "vstack": (lambda draw, s: (), lambda x: candelabra.vstack([x, x]), lambda x: numpy.vstack([x, x]), False),
    "dstack": (lambda draw, s: (), lambda x: candelabra.dstack([x, x]), lambda x: numpy.dstack([x, x]), False),
    "column_stack": (lambda draw, s: (assume(s), ())[1], lambda x: candelabra.column_stack([x, x]), lambda x: numpy.column_stack([x, x]), False),
    "tril": (lambda draw, s: diagonal(draw, s)[:1], lambda x, k: x.tril(k), numpy.tril, False),
    "triu": (lambda draw, s: diagonal(draw, s)[:1], lambda x, k: x.triu(k), numpy.triu, False),
    "atleast_3d": (lambda draw, s: (), candelabra.atleast_3d, numpy.atleast_3d, True),
    "clone": (lambda draw, s: (), lambda x: x.clone(), numpy.copy, False),
    "kron": (lambda draw, s: (), lambda x: candelabra.kron(x, x), lambda x: numpy.kron(x, x), False),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_operator(name, data, shape, layout, seed):
    draw_arguments, ours, theirs, shares = CASES[name]
    arguments = draw_arguments(data.draw, shape)
    dtype = data.draw(st.sampled_from(["float64", "int64", "uint8"]))
    tensor, array = pair(numpy.random.default_rng(seed), dtype, shape, layout)
    made = ours(tensor, *arguments)
    same(made, theirs(array, *arguments))
    if shares and made.numel():
        assert made.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_indexing_expressions(data, shape, layout, seed):
    """Reading and writing by numbers, slices, None, Ellipsis, lists and masks."""
    random = numpy.random.default_rng(seed)
    tensor, array = pair(random, "float64", shape, layout)
    index = []
    for size in shape[: data.draw(st.integers(0, len(shape)))]:
        kinds = ["slice", "all", "none"] + (["number", "list"] if size else [])
        kind = data.draw(st.sampled_from(kinds))
        if kind == "none":
            index.append(None)
        index.append(
            {
                "slice": lambda size=size: slice(
                    data.draw(st.integers(-size, size)), None, data.draw(st.integers(1, 2))
                ),
                "all": lambda: slice(None),
                "none": lambda: slice(None),
                "number": lambda size=size: data.draw(st.integers(-size, size - 1)),
                "list": lambda size=size: data.draw(st.lists(st.integers(-size, size - 1), min_size=1, max_size=3)),
            }[kind]()
        )
    lists = [entry for entry in index if isinstance(entry, list)]
    # Lists of one length, beside each other, with no number among them: what NumPy and PyTorch mean
    # by others differs in the order.
    assume(len(lists) <= 1 or len({len(entry) for entry in lists}) == 1)
    assume(not (lists and any(isinstance(entry, int) for entry in index)))
    index = (*index, Ellipsis) if data.draw(st.booleans()) else tuple(index)
    same(tensor[index], array[index])
    written, expected = tensor.clone(), array.copy()
    written[index] = 7.0
    expected[index] = 7.0
    same(written, expected)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_masks(data, shape, layout, seed):
    random = numpy.random.default_rng(seed)
    (tensor, array), mask = pair(random, "float64", shape, layout), random.random(shape) < 0.5
    ours = candelabra.tensor(mask, dtype=candelabra.bool).reshape(shape)
    same(tensor[ours], array[mask])
    same(tensor.masked_select(ours), array[mask])
    same(tensor.masked_fill(ours, 2.5), numpy.where(mask, 2.5, array))
    same(candelabra.where(ours, tensor, 0), numpy.where(mask, array, 0))
    same(ours.nonzero(), numpy.argwhere(mask))
    written, expected = tensor.clone(), array.copy()
    written[ours] = -1.0
    expected[mask] = -1.0
    same(written, expected)
