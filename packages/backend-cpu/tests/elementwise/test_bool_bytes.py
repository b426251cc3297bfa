"""Bools in foreign memory may be any byte. Every operator must treat all nonzero bytes as true."""

from __future__ import annotations

import numpy as np
import pytest

import candelabra
from candelabra.catalogue import OPERATORS
from candelabra.catalogue.declaration import RANDOM
from candelabra.composite import FUNCTIONS

BYTES = np.array([2, 0, 128, 1, 0, 255, 1, 0, 2, 2, 0, 1], dtype=np.uint8)

#: Functions that return the bytes unchanged, only look at memory, or do not compute with elements.
BYTES_THEMSELVES = {
    "view_dtype", "from_numpy", "frombuffer", "asarray", "as_tensor", "from_dlpack", "save", "load", "tensor", "view",
    "set_printoptions", "manual_seed", "seed", "initial_seed", "set_num_threads", "set_num_interop_threads", "set_default_dtype",
    "set_default_device", "set_grad_enabled", "inference_mode", "use_deterministic_algorithms", "set_rng_state", "get_rng_state",
    "empty", "empty_like", "empty_strided", "empty_permuted", "multinomial", "poisson", "rand_like", "randn_like", "normal", "rand",
    "randn", "randint", "randint_like", "randperm", "dropout", "binomial", "alpha_dropout", "feature_dropout", "pca_lowrank",
    "svd_lowrank", "lobpcg",
}  # fmt: skip

NAMES = sorted(
    name
    for name in {*OPERATORS, *FUNCTIONS}
    if name not in BYTES_THEMSELVES and not (name in OPERATORS and OPERATORS[name].tags & RANDOM)
)


def foreign(shape: tuple[int, ...], strided: bool = False) -> tuple[candelabra.Tensor, candelabra.Tensor]:
    """Return arbitrary bytes viewed as bools, and the same truth values as bytes 0 and 1."""
    count = int(np.prod(shape))
    whole = np.resize(BYTES, 2 * count if strided else count)
    given = candelabra.from_numpy(whole.copy()).view(candelabra.bool)
    clean = candelabra.from_numpy((whole != 0).astype(np.uint8)).view(candelabra.bool)
    if strided:
        given, clean = given[::2], clean[::2]
    return given.view(shape) if not strided else given.unflatten(0, shape), clean.view(
        shape
    ) if not strided else clean.unflatten(0, shape)


def outcome(call, tensors):
    try:
        return described(call(*tensors))
    except Exception as error:
        return type(error).__name__


def described(result):
    if isinstance(result, candelabra.Tensor):
        return str(result.dtype), tuple(result.shape), str(result.tolist())
    if isinstance(result, (tuple, list)):
        return [described(part) for part in result]
    return str(result)


def calls(function):
    index = candelabra.tensor([1, 0, 2])
    numbers = candelabra.arange(12.0).view(3, 4)
    yield lambda b: function(b)
    yield lambda b: function(b, b.flip(0))
    yield lambda b: function(b, 1)
    yield lambda b: function(b, 0)
    yield lambda b: function(b, True)
    yield lambda b: function([b, b])
    yield lambda b: function(b, numbers)
    yield lambda b: function(numbers, b)
    yield lambda b: function(b, b, b.flip(1))
    yield lambda b: function(b, numbers, 2 * numbers)
    yield lambda b: function(numbers, b, numbers)
    yield lambda b: function(numbers, b, 5.0)
    yield lambda b: function(b, 0, index)
    yield lambda b: function(b, 0, index, b)
    yield lambda b: function(b, 0, index, True)
    yield lambda b: function(b, 1, index.view(3, 1).expand(3, 2), b)
    yield lambda b: function(b, [index], b, True)
    yield lambda b: function(b, [b])


@pytest.mark.parametrize("name", NAMES)
def test_any_byte_but_zero_is_true(name):
    function = FUNCTIONS.get(name) or OPERATORS[name]
    for strided in (False, True):
        given, clean = foreign((3, 4), strided)
        for k, call in enumerate(calls(function)):
            assert outcome(call, (given,)) == outcome(call, (clean,)), (name, strided, k)


@pytest.mark.parametrize("size", [1, 7, 64, 1000, 70000])
def test_counting_and_writing_agree(size):
    bytes = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    bytes[::3] = 0
    mask = candelabra.from_numpy(bytes).view(candelabra.bool)
    truth = bytes != 0
    numbers = candelabra.arange(size)
    assert candelabra.nonzero(mask)[:, 0].tolist() == np.flatnonzero(truth).tolist()
    assert candelabra.nonzero(mask[::2])[:, 0].tolist() == np.flatnonzero(truth[::2]).tolist()
    assert numbers[mask].tolist() == np.flatnonzero(truth).tolist()
    assert candelabra.where(mask, numbers, -1).tolist() == np.where(truth, np.arange(size), -1).tolist()
    assert int(mask.sum()) == int(truth.sum()) == int(candelabra.count_nonzero(mask))
    assert bool(mask.any()) == bool(truth.any())
    assert bool(mask.all()) == bool(truth.all())
    assert (~mask).tolist() == (~truth).tolist()
    assert mask.to(candelabra.float32).tolist() == truth.astype(np.float32).tolist()
    numbers[mask] = -5
    assert numbers.tolist() == np.where(truth, -5, np.arange(size)).tolist()


def test_sorting_and_extrema_take_truths():
    given, clean = foreign((3, 4))
    for dim in (0, 1):
        for descending in (False, True):
            for one, other in zip(given.sort(dim, descending), clean.sort(dim, descending)):
                assert one.tolist() == other.tolist()
        assert [part.tolist() for part in given.max(dim)] == [part.tolist() for part in clean.max(dim)]
        assert [part.tolist() for part in given.min(dim)] == [part.tolist() for part in clean.min(dim)]
    assert given.unique().tolist() == [False, True]
    many = candelabra.from_numpy(np.resize(BYTES, 5000).copy()).view(candelabra.bool)
    assert many.sort().values.tolist() == sorted(many.tolist())


def test_in_place_results_are_truths():
    for change in (
        lambda x, y: x.logical_and_(y), lambda x, y: x.logical_or_(y), lambda x, y: x.logical_xor_(y), lambda x, y: x.mul_(y),
        lambda x, y: x.add_(y), lambda x, y: x.bitwise_xor_(y), lambda x, y: x.masked_fill_(y, True), lambda x, y: x.eq_(y),
        lambda x, y: x.index_add_(0, candelabra.tensor([0, 0, 1]), y), lambda x, y: x.scatter_add_(0, y.to(candelabra.int64), y),
    ):  # fmt: skip
        results = []
        for pair in zip(foreign((3, 4)), (part.flip(1) for part in foreign((3, 4)))):
            results.append(change(*pair).tolist())
        assert results[0] == results[1]


@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin"])
@pytest.mark.parametrize("include_self", [False, True])
def test_scatter_reduce(reduce, include_self):
    results = []
    for x in foreign((12,)):
        index = candelabra.tensor([0, 0, 1, 2, 3, 5, 5, 5, 5, 6, 7, 11])
        results.append(x.scatter_reduce(0, index, x.flip(0), reduce, include_self=include_self).tolist())
    assert results[0] == results[1]
