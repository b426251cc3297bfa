"""Draws from binomial distributions, against their probabilities."""

from itertools import pairwise

import numpy
import pytest
from scipy import stats

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra


@pytest.mark.parametrize(
    ("count", "prob"),
    [(1, 0.5), (5, 0.9), (20, 0.3), (7, 0.01), (30, 0.5), (200, 0.25), (1000, 0.97), (10**6, 1e-5), (10**6, 0.4)],
)
def test_frequencies(count, prob):
    generator = candelabra.Generator().manual_seed(count)
    size = 40_000
    drawn = candelabra.binomial(
        candelabra.full((size,), float(count)), candelabra.full((size,), prob), generator
    ).numpy()
    assert (drawn == numpy.floor(drawn)).all() and drawn.min() >= 0 and drawn.max() <= count
    exact = stats.binom(count, numpy.float32(prob))
    # Classes between the quantiles, each expected at least some thousand times.
    edges = numpy.unique(exact.ppf(numpy.linspace(0.05, 0.95, 10)))
    bins = numpy.concatenate([[-1.0], edges, [count]]) if edges[-1] < count else numpy.concatenate([[-1.0], edges])
    expected = numpy.diff(exact.cdf(bins)) * size
    observed = numpy.array([((drawn > low) & (drawn <= high)).sum() for low, high in pairwise(bins)])
    kept = expected > 5
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    assert statistic < stats.chi2(max(kept.sum() - 1, 1)).ppf(1 - 1e-4)


def test_the_same_seed_gives_the_same_draws():
    n, p = candelabra.full((100,), 50.0), candelabra.full((100,), 0.4)
    draw = lambda: candelabra.binomial(n, p, candelabra.Generator().manual_seed(1))  # noqa: E731
    assert candelabra.equal(draw(), draw())


def test_probabilities_and_counts_at_the_ends():
    n = candelabra.tensor([4.0, 4.0, 4.0, 4.0, 0.0, -1.0, float("nan"), 4.0])
    p = candelabra.tensor([0.0, 1.0, -1.0, 2.0, 0.5, 0.5, 0.5, float("nan")])
    numpy.testing.assert_array_equal(candelabra.binomial(n, p).numpy(), [0, 4, 0, 4, 0, 0, numpy.nan, numpy.nan])
    assert candelabra.binomial(candelabra.empty(0), candelabra.empty(0)).shape == (0,)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes_and_broadcasting(dtype):
    dtype = getattr(candelabra, dtype)
    drawn = candelabra.binomial(candelabra.full((3, 1), 8.0, dtype=dtype), candelabra.tensor([0.1, 0.9], dtype=dtype))
    assert drawn.dtype is dtype and drawn.shape == (3, 2) and drawn.min() >= 0 and drawn.max() <= 8


def test_dtypes_are_checked():
    one = candelabra.ones(1)
    with pytest.raises(ValueError, match="only supports floating-point dtypes for count, got: candelabra.int64"):
        candelabra.binomial(one.long(), one)
    with pytest.raises(ValueError, match="dtypes for prob"):
        candelabra.binomial(one, one.long())
    with pytest.raises(RuntimeError, match="Found dtype candelabra.float64 but expected candelabra.float32"):
        candelabra.binomial(one, one.double())


def test_convolution_of_time_batch_channels():
    rng = numpy.random.default_rng(0)
    x, w, b = rng.standard_normal((5, 2, 3)), rng.standard_normal((2, 3, 4)), rng.standard_normal(4)
    for pad in (0, 1):
        padded = numpy.pad(x, ((pad, pad), (0, 0), (0, 0)))
        steps = padded.shape[0] - 1
        expected = sum(padded[k : k + steps] @ w[k] for k in range(2)) + b
        made = candelabra.conv_tbc(*map(candelabra.from_numpy, (x, w, b)), pad)
        numpy.testing.assert_allclose(made.numpy(), expected, atol=1e-12)
    for shapes, message in (
        (((5, 2), (2, 3, 4), (4,)), "Input must have 3 dims"), (((5, 2, 3), (3, 4), (4,)), "Weight tensor must have 3 dims"),
        (((5, 2, 3), (2, 3, 4), ()), "Bias must be 1-D"), (((5, 2, 3), (2, 2, 4), (4,)), "input channels"),
        (((5, 2, 3), (2, 3, 4), (3,)), "output channels"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=message):
            candelabra.conv_tbc(*(candelabra.ones(shape) for shape in shapes))
