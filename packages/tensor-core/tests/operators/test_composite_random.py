"""Random tensors made of the random operators: their distributions, ranges, seeds and errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c

COUNT = 20_000


@pytest.fixture(autouse=True)
def seeded():
    c.manual_seed(20)


def p_value(samples: c.Tensor, distribution, *arguments) -> float:
    return stats.kstest(samples.double().numpy().ravel(), getattr(stats, distribution)(*arguments).cdf).pvalue


@pytest.mark.parametrize(
    "draw,distribution,arguments",
    [
        (lambda: c.rand(COUNT), "uniform", ()),
        (lambda: c.rand(COUNT, dtype=c.float64), "uniform", ()),
        (lambda: c.randn(COUNT), "norm", ()),
        (lambda: c.rand_like(c.empty(100, 200)), "uniform", ()),
        (lambda: c.randn_like(c.empty(100, 200).T), "norm", ()),
        (lambda: c.normal(2.0, 3.0, (COUNT,)), "norm", (2, 3)),
        (lambda: c.normal(c.full((COUNT,), 2.0), c.tensor(3.0)), "norm", (2, 3)),
        (lambda: c.normal(c.full((COUNT,), 2.0), 3.0), "norm", (2, 3)),
        (lambda: c.normal(2.0, c.full((COUNT,), 3.0)), "norm", (2, 3)),
        (lambda: c.empty(COUNT, dtype=c.float64).cauchy_(1, 2), "cauchy", (1, 2)),
        (lambda: c.empty(COUNT, dtype=c.float64).log_normal_(0.5, 0.25), "lognorm", (0.25, 0, math.exp(0.5))),
        (lambda: c.empty(COUNT, dtype=c.float64).exponential_(2), "expon", (0, 0.5)),
    ],
)
def test_continuous_distributions(draw, distribution, arguments):
    assert p_value(draw(), distribution, *arguments) > 1e-3


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    return stats.chisquare(counts, probabilities / probabilities.sum() * counts.sum()).pvalue


def test_randint():
    x = c.randint(-2, 4, (COUNT,))
    assert x.dtype is c.int64
    values, counts = np.unique(x.numpy(), return_counts=True)
    assert values.tolist() == [-2, -1, 0, 1, 2, 3]
    assert chi_square(counts, np.ones(6)) > 1e-3
    assert c.randint(3, (2, 2)).shape == (2, 2)
    assert c.randint(high=3, size=(2,), low=2).tolist() == [2, 2]
    assert c.randint(0, 2, (3,), dtype=c.float32).dtype is c.float32
    assert c.randint_like(c.ones(3, dtype=c.int32), 5, 6).tolist() == [5, 5, 5]


@pytest.mark.parametrize("rate", [0.3, 4.0, 100.0])
def test_poisson(rate):
    x = c.poisson(c.full((COUNT,), rate)).numpy()
    edges = np.unique(stats.poisson.ppf([0.05, 0.2, 0.4, 0.6, 0.8, 0.95], rate))
    bounds = np.concatenate([[-1], edges, [1e9]])
    probabilities = np.diff(stats.poisson.cdf(bounds, rate))
    assert chi_square(np.histogram(x, bounds + 0.5)[0], probabilities) > 1e-3


def test_geometric():
    x = c.empty(COUNT).geometric_(0.3).numpy()
    bounds = np.array([0, 1, 2, 3, 5, 8, 1e9])
    assert x.min() >= 1
    assert chi_square(np.histogram(x, bounds + 0.5)[0], np.diff(stats.geom.cdf(bounds, 0.3))) > 1e-3


def test_bernoulli():
    assert abs(c.bernoulli(c.full((COUNT,), 0.3)).mean().item() - 0.3) < 0.02
    assert abs(c.bernoulli(c.empty(COUNT), 0.3).mean().item() - 0.3) < 0.02
    assert abs(c.empty(COUNT).bernoulli_(0.3).mean().item() - 0.3) < 0.02
    p = c.tensor([0.0, 1.0]).repeat(50)
    assert c.empty(100).bernoulli_(p).tolist() == p.tolist()


@pytest.mark.parametrize("replacement", [True, False])
def test_multinomial(replacement):
    weights = np.array([1.0, 0.0, 3.0, 6.0])
    first = c.multinomial(c.tensor(weights).expand(COUNT, 4), 1, replacement)[:, 0].numpy()
    counts = np.bincount(first, minlength=4)
    assert counts[1] == 0
    assert chi_square(counts[[0, 2, 3]], weights[[0, 2, 3]]) > 1e-3


def test_multinomial_without_replacement_draws_each_once():
    x = c.multinomial(c.rand(50, 10) + 0.1, 10)
    assert (x.sort(1)[0] == c.arange(10)).all()
    assert c.multinomial(c.tensor([0.0, 2.0, 0.0]), 1).tolist() == [1]


def test_randperm():
    x = c.randperm(1000)
    assert x.dtype is c.int64
    assert x.sort()[0].tolist() == list(range(1000))
    assert x.tolist() != list(range(1000))
    assert c.randperm(0).shape == (0,)
    assert c.randperm(5, dtype=c.int32).dtype is c.int32


def test_random_fills_the_range_of_the_dtype():
    assert c.empty(1000, dtype=c.uint8).random_().max().item() > 200
    assert c.empty(1000, dtype=c.int8).random_().min().item() >= 0
    assert set(c.empty(100, dtype=c.bool).random_().tolist()) == {True, False}
    x = c.empty(1000).random_()
    assert x.max().item() <= 2**24
    assert set(c.empty(200).random_(3).tolist()) == {0.0, 1.0, 2.0}
    assert set(c.empty(200).random_(-1, 1).tolist()) == {-1.0, 0.0}


def test_the_same_seed_gives_the_same_numbers():
    draws = []
    for _ in range(2):
        c.manual_seed(5)
        draws.append(
            [
                c.randn(3).tolist(),
                c.randperm(9).tolist(),
                c.multinomial(c.ones(5), 3).tolist(),
                c.poisson(c.ones(4) * 9).tolist(),
            ]
        )
    assert draws[0] == draws[1]
    assert c.initial_seed() == 5


def test_generators_are_apart_from_the_default():
    g = c.Generator().manual_seed(1)
    state = c.get_rng_state()
    first = c.randn(4, generator=g)
    c.randint(5, (2,), generator=g), c.randperm(3, generator=g), c.normal(c.zeros(2), 1.0, generator=g)
    assert c.get_rng_state().tolist() == state.tolist()
    assert c.randn(4, generator=g.manual_seed(1)).tolist() == first.tolist()
    one = c.ops.native_dropout.composite(c.ones(50), 0.5, generator=g.manual_seed(2))[1]
    assert c.ops.native_dropout.composite(c.ones(50), 0.5, generator=g.manual_seed(2))[1].tolist() == one.tolist()


def test_state_can_be_kept_and_put_back():
    c.rand(3)
    state = c.get_rng_state()
    first = c.rand(5)
    c.set_rng_state(state)
    assert c.rand(5).tolist() == first.tolist()
    assert c.seed() == c.initial_seed()


def test_dropout():
    x = c.ones(1000)
    assert c.dropout(x, 0.5, False) is x
    assert c.dropout(x, 0.0, True) is x
    assert set(c.dropout(x, 0.5, True).tolist()) == {0.0, 2.0}


@pytest.mark.parametrize(
    "call,message",
    [
        ("c.randint(5, 5, (2,))", "from=5 >= to=5"),
        ("c.randperm(-1)", "non-negative"),
        ("c.normal(0.0, c.tensor([-1.0]))", "std >= 0"),
        ("c.poisson(c.tensor([-1.0]))", "negative"),
        ("c.dropout(c.ones(2), 1.5, True)", "between 0 and 1"),
        ("c.multinomial(c.ones(2, 2, 2), 1)", "1 or 2 dim"),
        ("c.multinomial(c.ones(2), 3)", "without replacement"),
        ("c.multinomial(c.zeros(2), 1)", "sum of probabilities <= 0"),
        ("c.multinomial(c.tensor([-1.0, 2.0]), 1)", "element < 0"),
        ("c.multinomial(c.tensor([1.0, 0.0]), 2)", "not enough non-negative"),
        ("c.multinomial(c.tensor([1, 2]), 1)", "floating-point"),
        ("c.empty(2).geometric_(1.5)", "geometric_"),
        ("c.empty(2).cauchy_(0, -1)", "sigma > 0"),
        ("c.empty(2).log_normal_(0, 0)", "std > 0"),
    ],
)
def test_errors(call, message):
    with pytest.raises(RuntimeError, match=message):
        eval(call)


def test_wrong_calls():
    for call in (
        lambda: c.randint(3),
        lambda: c.randint(1, 2, 3, 4),
        lambda: c.normal(0.0, 1.0),
        lambda: c.rand(2, sise=3),
    ):
        with pytest.raises(TypeError):
            call()
