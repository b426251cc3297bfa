"""Combining at positions, unique slices, searching with a sorter, covariance with weights,
quantiles without NaN, complex draws.
"""

import warnings

import numpy
import pytest

import candelabra

RANDOM = numpy.random.default_rng(8)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
def test_index_reduce(reduce, include_self):
    x, source, index = RANDOM.standard_normal((4, 3)), RANDOM.standard_normal((5, 3)), numpy.array([0, 2, 2, 0, 2])
    made = candelabra.index_reduce(
        candelabra.tensor(x), 0, candelabra.tensor(index), candelabra.tensor(source), reduce, include_self=include_self
    )
    expected = x.copy()
    for i in set(index):
        rows = list(source[index == i]) + ([x[i]] if include_self else [])
        expected[i] = {"prod": numpy.prod, "mean": numpy.mean, "amax": numpy.max, "amin": numpy.min}[reduce](
            rows, axis=0
        )
    numpy.testing.assert_allclose(made.numpy(), expected)
    with pytest.raises(RuntimeError, match="one of prod, mean, amax or amin"):
        candelabra.index_reduce(candelabra.ones(2), 0, candelabra.tensor([0]), candelabra.ones(1), "sum")


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_unique_slices(dim):
    x = RANDOM.integers(0, 2, (6, 5, 2))
    values, inverse, counts = candelabra.unique(candelabra.tensor(x), return_inverse=True, return_counts=True, dim=dim)
    expected = numpy.unique(x, return_inverse=True, return_counts=True, axis=dim)
    assert numpy.array_equal(values.numpy(), expected[0])
    assert numpy.array_equal(inverse.numpy(), expected[1].reshape(-1)) and numpy.array_equal(
        counts.numpy(), expected[2]
    )
    runs = candelabra.unique_consecutive(candelabra.tensor([[1, 1], [1, 1], [0, 2], [1, 1]]), dim=0, return_counts=True)
    assert runs[0].tolist() == [[1, 1], [0, 2], [1, 1]] and runs[1].tolist() == [2, 1, 1]
    with pytest.raises(RuntimeError, match="0 sized dimensions"):
        candelabra.unique(candelabra.ones(2, 0), dim=0)


def test_searchsorted_with_a_sorter():
    x, values = RANDOM.standard_normal((3, 7)), RANDOM.standard_normal((3, 4))
    sorter = numpy.argsort(x, -1)
    for side in ("left", "right"):
        made = candelabra.searchsorted(
            candelabra.tensor(x), candelabra.tensor(values), sorter=candelabra.tensor(sorter), side=side
        )
        expected = [numpy.searchsorted(a, v, side, s) for a, v, s in zip(x, values, sorter, strict=True)]
        assert numpy.array_equal(made.numpy(), expected)
    out = candelabra.empty(0, dtype=candelabra.int32)
    assert candelabra.bucketize(candelabra.tensor([3]), candelabra.tensor([1, 5]), out_int32=True, out=out) is out
    with pytest.raises(RuntimeError, match="opposites"):
        candelabra.searchsorted(candelabra.ones(2), candelabra.ones(1), side="left", right=True)
    with pytest.raises(RuntimeError, match="dtype is wrong"):
        candelabra.bucketize(candelabra.tensor([3]), candelabra.tensor([1, 5]), out=out)


def test_covariance_with_weights():
    x, often, weight = RANDOM.standard_normal((3, 6)), RANDOM.integers(1, 4, 6), RANDOM.uniform(0.5, 2, 6)
    made = candelabra.cov(candelabra.tensor(x), fweights=candelabra.tensor(often), aweights=candelabra.tensor(weight))
    numpy.testing.assert_allclose(made.numpy(), numpy.cov(x, fweights=often, aweights=weight))
    numpy.testing.assert_allclose(candelabra.cov(candelabra.tensor(x), correction=0).numpy(), numpy.cov(x, ddof=0))
    numpy.testing.assert_allclose(candelabra.corrcoef(candelabra.tensor(x)).numpy(), numpy.corrcoef(x))
    for keywords, message in (
        ({"fweights": candelabra.tensor(weight)}, "integral dtype"),
        ({"aweights": candelabra.tensor(often)}, "floating point dtype"),
        ({"fweights": candelabra.tensor(often[:2])}, "same numel"),
        ({"aweights": candelabra.tensor(-weight)}, "cannot be negative"),
    ):
        with pytest.raises(RuntimeError, match=message):
            candelabra.cov(candelabra.tensor(x), **keywords)


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_nanquantile(interpolation):
    x = RANDOM.standard_normal((4, 9))
    x[RANDOM.random(x.shape) < 0.3] = numpy.nan
    points = [0.1, 0.5, 0.77]
    made = candelabra.nanquantile(
        candelabra.tensor(x), candelabra.tensor(points, dtype=candelabra.float64), 1, interpolation=interpolation
    )
    numpy.testing.assert_allclose(made.numpy(), numpy.nanquantile(x, points, axis=1, method=interpolation))
    numpy.testing.assert_allclose(candelabra.nanquantile(candelabra.tensor(x), 0.5).item(), numpy.nanquantile(x, 0.5))


def test_nonzero_static_and_fill():
    x = candelabra.tensor([[0, 1], [2, 3]])
    assert candelabra.nonzero_static(x, size=2).tolist() == [[0, 1], [1, 0]]
    assert candelabra.nonzero_static(x, size=4, fill_value=9).tolist() == [[0, 1], [1, 0], [1, 1], [9, 9]]
    assert candelabra.fill(x, 7).tolist() == [[7, 7], [7, 7]] and x.sum().item() == 6
    with pytest.raises(RuntimeError, match="0-dimension value tensor"):
        candelabra.fill(x, candelabra.ones(2))


def test_empty_permuted():
    x = candelabra.empty_permuted((2, 3, 5), (1, 2, 0), dtype=candelabra.float64)
    assert x.stride() == (1, 10, 2) and x.dtype is candelabra.float64
    with pytest.raises(RuntimeError, match="does not match the length"):
        candelabra.empty_permuted((2, 3), (0,))
    with pytest.raises(RuntimeError, match="Duplicate dim"):
        candelabra.empty_permuted((2, 3), (0, 0))


def test_complex_draws():
    candelabra.manual_seed(0)
    x = candelabra.randn(40000, dtype=candelabra.complex128).numpy()
    assert abs(x.real.var() - 0.5) < 0.02 and abs(x.imag.var() - 0.5) < 0.02 and abs((x.real * x.imag).mean()) < 0.02
    y = candelabra.rand(40000, dtype=candelabra.complex64).numpy()
    assert (
        abs(y.real.mean() - 0.5) < 0.02 and abs(y.imag.mean() - 0.5) < 0.02 and y.real.min() >= 0 and y.imag.max() < 1
    )


def test_ranges_of_whole_numbers_from_fractions():
    assert candelabra.arange(1.0, 5.000001, 2.0, dtype=candelabra.int64).tolist() == [1, 3]
    assert candelabra.linspace(4.3, 0, 3, dtype=candelabra.int64).tolist() == [4, 2, 0]
    with pytest.raises(ValueError, match="step must be nonzero"):
        candelabra.arange(0, 64, 0.5, out=candelabra.empty(0, dtype=candelabra.int64))


def test_low_rank():
    x = RANDOM.standard_normal((12, 3)) @ RANDOM.standard_normal((3, 9))
    U, S, V = candelabra.svd_lowrank(candelabra.tensor(x), q=4)
    numpy.testing.assert_allclose(((U * S) @ V.mH).numpy(), x, atol=1e-9)
    U, S, V = candelabra.pca_lowrank(candelabra.tensor(x), q=4)
    numpy.testing.assert_allclose(S.numpy()[:3], numpy.linalg.svd(x - x.mean(0))[1][:3], rtol=1e-9)
    a = x @ x.T + numpy.diag(numpy.arange(12.0))
    numpy.testing.assert_allclose(
        candelabra.lobpcg(candelabra.tensor(a), k=2)[0].numpy(), numpy.linalg.eigvalsh(a)[::-1][:2], rtol=1e-6
    )
    with pytest.raises(ValueError, match="not applicable when the number of A rows"):
        candelabra.lobpcg(candelabra.eye(3), k=2)


def test_refused_dtypes():
    whole, truths = candelabra.tensor([1, 2]), candelabra.tensor([True, False])
    with pytest.raises(RuntimeError, match="expected input to have floating point or complex dtype"):
        candelabra.nanmean(whole)
    with pytest.raises(RuntimeError, match="does not support complex inputs"):
        candelabra.nansum(whole.to(candelabra.complex64))
    for reduce, kind in (("mean", NotImplementedError), ("max", RuntimeError)):
        with pytest.raises(kind):
            candelabra.scatter_reduce(truths, 0, candelabra.tensor([0]), truths[:1], reduce)


NON_TUPLE = "Using a non-tuple sequence for multidimensional indexing is deprecated"


@pytest.mark.parametrize(
    "parts",
    [
        [[0, 0], [0, 1]],
        [candelabra.tensor([0, 1]), candelabra.tensor([0, 1])],
        [slice(None), 0],
        [None, 0],
        [..., 0],
        [0, [0, 1]],
        [[]],
        [candelabra.tensor([True, False, True])],
        [(0, 1), (0, 1)],
    ],
)
def test_list_of_sequences_is_read_as_a_tuple(parts):
    x = candelabra.arange(12).reshape(3, 4)
    with pytest.warns(UserWarning, match=NON_TUPLE):
        found = x[parts]
    assert found.equal(x[tuple(parts)])
    written, expected = x.clone(), x.clone()
    with pytest.warns(UserWarning, match=NON_TUPLE):
        written[parts] = -1
    expected[tuple(parts)] = -1
    assert written.equal(expected)


@pytest.mark.parametrize("key", [[0, 1], range(2), [[0]] * 32, numpy.array([[0, 0], [0, 1]])])
def test_other_sequences_are_one_index(key):
    x = candelabra.arange(12).reshape(3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x[key].equal(x[candelabra.tensor(list(key))])
