"""Test KL divergences against means over draws, and their registry."""

import warnings

import numpy as np
import pytest

import candelabra
from candelabra import distributions as D
from candelabra.distributions import kl_divergence, register_kl
from candelabra.distributions.kl import _KL_REGISTRY


def t(*values):
    return candelabra.tensor(values, dtype=candelabra.float64)


def m(values):
    return candelabra.tensor(values, dtype=candelabra.float64)


_HALF = np.array([[1.0, 0.0], [0.5, 2.0]])
#: Two instances of each distribution.
MADE = {
    D.Bernoulli: (D.Bernoulli(t(0.2, 0.7)), D.Bernoulli(t(0.5, 0.6))),
    D.Beta: (D.Beta(t(1.5, 3.0), t(2.0, 1.5)), D.Beta(t(2.0, 1.0), t(1.0, 1.5))),
    D.Binomial: (D.Binomial(4, t(0.2, 0.7)), D.Binomial(4, t(0.5, 0.6))),
    D.Categorical: (D.Categorical(m([[0.2, 0.8], [0.5, 0.5]])), D.Categorical(m([[0.4, 0.6], [0.1, 0.9]]))),
    D.Cauchy: (D.Cauchy(t(0.0, 1.0), t(1.0, 2.0)), D.Cauchy(t(1.0, 1.0), t(2.0, 0.5))),
    D.ContinuousBernoulli: (D.ContinuousBernoulli(t(0.2, 0.7)), D.ContinuousBernoulli(t(0.5, 0.6))),
    D.Dirichlet: (D.Dirichlet(m([[1.5, 2.0], [3.0, 1.0]])), D.Dirichlet(m([[1.0, 2.5], [2.0, 2.0]]))),
    D.Exponential: (D.Exponential(t(0.5, 2.0)), D.Exponential(t(1.0, 1.5))),
    D.Gamma: (D.Gamma(t(1.5, 3.0), t(2.0, 1.5)), D.Gamma(t(2.0, 1.0), t(1.0, 1.5))),
    D.Geometric: (D.Geometric(t(0.2, 0.7)), D.Geometric(t(0.5, 0.6))),
    D.Gumbel: (D.Gumbel(t(0.0, 1.0), t(1.0, 2.0)), D.Gumbel(t(1.0, 1.0), t(2.0, 1.5))),
    D.HalfNormal: (D.HalfNormal(t(1.0, 2.0)), D.HalfNormal(t(1.5, 1.5))),
    D.Laplace: (D.Laplace(t(0.0, 1.0), t(1.0, 2.0)), D.Laplace(t(1.0, 1.0), t(2.0, 0.5))),
    D.LogNormal: (D.LogNormal(t(0.0, 1.0), t(1.0, 0.5)), D.LogNormal(t(1.0, 1.0), t(1.5, 0.5))),
    D.LowRankMultivariateNormal: (
        D.LowRankMultivariateNormal(t(0.0, 1.0), m([[1.0], [2.0]]), t(1.0, 0.5)),
        D.LowRankMultivariateNormal(t(1.0, 1.0), m([[0.5], [-1.0]]), t(2.0, 1.5)),
    ),
    D.MultivariateNormal: (
        D.MultivariateNormal(t(0.0, 1.0), scale_tril=m(_HALF)),
        D.MultivariateNormal(t(1.0, 1.0), scale_tril=m(_HALF.T @ _HALF).tril()),
    ),
    D.Normal: (D.Normal(t(0.0, 1.0), t(1.0, 2.0)), D.Normal(t(1.0, 1.0), t(2.0, 1.5))),
    D.OneHotCategorical: (D.OneHotCategorical(m([[0.2, 0.8]])), D.OneHotCategorical(m([[0.4, 0.6]]))),
    D.Pareto: (D.Pareto(t(1.0, 2.0), t(3.0, 5.0)), D.Pareto(t(0.15, 0.4), t(2.0, 3.0))),
    D.Poisson: (D.Poisson(t(0.5, 3.0)), D.Poisson(t(1.0, 2.0))),
    D.Uniform: (D.Uniform(t(0.2, 0.5), t(0.9, 0.7)), D.Uniform(t(-1.0, 0.0), t(2.0, 1.0))),
    D.Wishart: (D.Wishart(t(4.0, 5.0), m(_HALF @ _HALF.T)), D.Wishart(t(5.0, 3.5), m(np.eye(2)))),
}
PAIRS = [(p, q) for p, q in _KL_REGISTRY if p not in (D.ExponentialFamily, D.TransformedDistribution, D.Independent)]


@pytest.mark.parametrize(("kind_p", "kind_q"), [*PAIRS, (D.LogNormal, D.LogNormal)], ids=lambda kind: kind.__name__)
def test_pairs(kind_p, kind_q):
    p, q = MADE[kind_p][0], MADE[kind_q][1]
    found = kl_divergence(p, q)
    if bool(found.isinf().all()):
        # p has support where q has none
        draws = p.sample((20000,))
        q._validate_args = False
        try:
            outside = ~q.support.check(draws)
        finally:
            q._validate_args = True
        assert bool(outside.reshape(20000, -1).any(0).all())
        return
    draws = p.sample((20000,))
    q._validate_args = False
    try:
        differences = (p.log_prob(draws) - q.log_prob(draws)).numpy()
    finally:
        q._validate_args = True
    error = differences.std(0) / np.sqrt(len(differences))
    assert found.shape == differences.shape[1:]
    assert np.all(np.abs(differences.mean(0) - found.numpy()) < 5 * error + 1e-9), (found, differences.mean(0), error)
    np.testing.assert_allclose(kl_divergence(p, p).numpy() if kind_p is kind_q else 0, 0, atol=1e-9)


def test_edges():
    inf = float("inf")
    assert kl_divergence(D.Bernoulli(t(0.0, 1.0, 0.5)), D.Bernoulli(t(0.0, 0.5, 1.0))).tolist() == pytest.approx(
        [0.0, np.log(2), inf]
    )
    assert kl_divergence(D.Categorical(t(0.5, 0.5, 0.0)), D.Categorical(t(1.0, 0.0, 0.0))).item() == inf
    assert kl_divergence(D.Uniform(t(0.0), t(1.0)), D.Uniform(t(0.5), t(1.0))).item() == inf
    assert kl_divergence(D.Pareto(t(1.0), t(3.0)), D.Pareto(t(2.0), t(3.0))).item() == inf
    assert kl_divergence(D.Uniform(t(-1.0), t(1.0)), D.Gamma(t(2.0), t(3.0))).item() == inf
    assert kl_divergence(D.Pareto(t(1.0), t(1.5)), D.Normal(t(0.0), t(3.0))).item() == inf
    assert kl_divergence(D.Poisson(t(0.0)), D.Poisson(t(2.0))).item() == 2.0
    with pytest.raises(NotImplementedError, match="q.total_count > p.total_count"):
        kl_divergence(D.Binomial(3, t(0.5)), D.Binomial(4, t(0.5)))
    assert kl_divergence(D.Binomial(5, t(0.5)), D.Binomial(4, t(0.5))).item() == inf
    with pytest.raises(ValueError, match="different event shapes"):
        kl_divergence(MADE[D.MultivariateNormal][0], D.MultivariateNormal(t(0.0, 0.0, 0.0), m(np.eye(3))))


def test_independent_transformed_and_families():
    p, q = MADE[D.Normal]
    joint = kl_divergence(D.Independent(p, 1), D.Independent(q, 1))
    np.testing.assert_allclose(joint.item(), kl_divergence(p, q).sum().item())
    with pytest.raises(NotImplementedError):
        kl_divergence(D.Independent(p, 1), D.Independent(q, 0))
    with pytest.raises(NotImplementedError):
        kl_divergence(D.TransformedDistribution(p, D.ExpTransform()), D.TransformedDistribution(q, D.TanhTransform()))
    families = [kind for kind in MADE if issubclass(kind, D.ExponentialFamily) and kind not in (D.Binomial, D.Wishart)]
    for kind in families:
        general = _KL_REGISTRY[D.ExponentialFamily, D.ExponentialFamily](*MADE[kind])
        np.testing.assert_allclose(
            general.detach().numpy(), kl_divergence(*MADE[kind]).numpy(), rtol=1e-7, err_msg=kind.__name__
        )


def test_look_up():
    class Base(D.Distribution):
        pass

    class Left(Base):
        pass

    class Right(Base):
        pass

    p, q = Left(validate_args=False), Right(validate_args=False)
    with pytest.raises(NotImplementedError, match=r"No KL\(p \|\| q\) is implemented for p type Left and q type Right"):
        kl_divergence(p, q)
    register_kl(Base, Base)(lambda p, q: "base")
    assert kl_divergence(p, q) == "base"
    register_kl(Left, Base)(lambda p, q: "left")
    assert kl_divergence(p, q) == "left" and kl_divergence(q, p) == "base"
    register_kl(Base, Right)(lambda p, q: "right")
    with pytest.warns(
        RuntimeWarning, match=r"Ambiguous kl_divergence\(Left, Right\). Please register_kl\(Left, Right\)"
    ):
        assert kl_divergence(p, q) == "left"
    register_kl(Left, Right)(lambda p, q: "both")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kl_divergence(p, q) == "both"
    for pair in [pair for pair in _KL_REGISTRY if issubclass(pair[0], Base)]:
        del _KL_REGISTRY[pair]
    with pytest.raises(TypeError, match="Expected type_p to be a Distribution subclass"):
        register_kl(3, Base)
    with pytest.raises(TypeError, match="Expected type_q to be a Distribution subclass"):
        register_kl(Base, 3)
