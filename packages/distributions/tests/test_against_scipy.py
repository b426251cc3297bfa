"""Test densities, CDFs, moments, entropies and draws against scipy.stats."""

import numpy as np
import pytest
from scipy import stats

import candelabra
from candelabra import distributions as D


def t(*values):
    return candelabra.tensor(values, dtype=candelabra.float64)


#: Our distribution with a batch of parameters, and SciPy's distribution for each.
CONTINUOUS = {
    "Beta": (D.Beta(t(0.5, 2.0, 5.0), t(0.7, 3.0, 1.0)), [stats.beta(0.5, 0.7), stats.beta(2, 3), stats.beta(5, 1)]),
    "Cauchy": (D.Cauchy(t(0.0, 1.5), t(1.0, 0.5)), [stats.cauchy(0, 1), stats.cauchy(1.5, 0.5)]),
    "Chi2": (D.Chi2(t(0.5, 1.0, 7.0)), [stats.chi2(0.5), stats.chi2(1), stats.chi2(7)]),
    "Exponential": (D.Exponential(t(0.5, 3.0)), [stats.expon(scale=2), stats.expon(scale=1 / 3)]),
    "FisherSnedecor": (D.FisherSnedecor(t(3.0, 8.0), t(5.0, 9.0)), [stats.f(3, 5), stats.f(8, 9)]),
    "Gamma": (
        D.Gamma(t(0.01, 0.5, 3.0, 200.0), t(1.0, 2.0, 0.5, 3.0)),
        [stats.gamma(0.01), stats.gamma(0.5, scale=0.5), stats.gamma(3, scale=2), stats.gamma(200, scale=1 / 3)],
    ),
    "GeneralizedPareto": (
        D.GeneralizedPareto(t(0.0, 1.0, -1.0), t(1.0, 2.0, 0.5), t(0.3, 0.0, -0.5)),
        [stats.genpareto(0.3), stats.genpareto(0.0, 1, 2), stats.genpareto(-0.5, -1, 0.5)],
    ),
    "Gumbel": (D.Gumbel(t(0.0, 2.0), t(1.0, 3.0)), [stats.gumbel_r(0, 1), stats.gumbel_r(2, 3)]),
    "HalfCauchy": (D.HalfCauchy(t(1.0, 3.0)), [stats.halfcauchy(scale=1), stats.halfcauchy(scale=3)]),
    "HalfNormal": (D.HalfNormal(t(1.0, 3.0)), [stats.halfnorm(scale=1), stats.halfnorm(scale=3)]),
    "InverseGamma": (D.InverseGamma(t(3.0, 5.0), t(1.0, 2.0)), [stats.invgamma(3), stats.invgamma(5, scale=2)]),
    "Laplace": (D.Laplace(t(0.0, 1.0), t(1.0, 2.0)), [stats.laplace(0, 1), stats.laplace(1, 2)]),
    "LogNormal": (D.LogNormal(t(0.0, 0.5), t(1.0, 0.3)), [stats.lognorm(1), stats.lognorm(0.3, scale=np.exp(0.5))]),
    "Normal": (D.Normal(t(0.0, -3.0), t(1.0, 2.5)), [stats.norm(0, 1), stats.norm(-3, 2.5)]),
    "Pareto": (D.Pareto(t(1.0, 2.0), t(3.0, 5.0)), [stats.pareto(3), stats.pareto(5, scale=2)]),
    "StudentT": (D.StudentT(t(3.0, 8.0), t(0.0, 1.0), t(1.0, 2.0)), [stats.t(3), stats.t(8, 1, 2)]),
    "Uniform": (D.Uniform(t(0.0, -1.0), t(1.0, 3.0)), [stats.uniform(0, 1), stats.uniform(-1, 4)]),
    "VonMises": (
        D.VonMises(t(0.0, 1.0, -2.0), t(1e-6, 2.0, 40.0)),
        [stats.vonmises(1e-6), stats.vonmises(2, 1), stats.vonmises(40, -2)],
    ),
    "Weibull": (D.Weibull(t(1.0, 2.0), t(0.7, 3.0)), [stats.weibull_min(0.7), stats.weibull_min(3, scale=2)]),
}
DISCRETE = {
    "Bernoulli": (D.Bernoulli(t(0.2, 0.7)), [stats.bernoulli(0.2), stats.bernoulli(0.7)]),
    "Binomial": (
        D.Binomial(t(10.0, 10.0, 10.0), t(0.2, 0.7, 1.0)),
        [stats.binom(10, 0.2), stats.binom(10, 0.7), stats.binom(10, 1.0)],
    ),
    "Binomial, many": (D.Binomial(t(1000.0, 1000.0), t(0.02, 0.9)), [stats.binom(1000, 0.02), stats.binom(1000, 0.9)]),
    "Geometric": (D.Geometric(t(0.2, 0.7)), [stats.geom(0.2, -1), stats.geom(0.7, -1)]),
    "NegativeBinomial": (D.NegativeBinomial(t(3.0, 4.5), t(0.3, 0.6)), [stats.nbinom(3, 0.7), stats.nbinom(4.5, 0.4)]),
    "Poisson": (D.Poisson(t(0.3, 4.0, 50.0)), [stats.poisson(0.3), stats.poisson(4), stats.poisson(50)]),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    ours, theirs = CONTINUOUS[name]
    levels = np.array([0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98])
    values = np.stack([one.ppf(levels) for one in theirs], -1)
    if name == "VonMises":
        values = np.clip(values, -3.1, 3.1)
    x = candelabra.tensor(values)
    expected = np.stack([one.logpdf(column) for one, column in zip(theirs, values.T, strict=True)], -1)
    np.testing.assert_allclose(ours.log_prob(x).numpy(), expected, rtol=1e-9, atol=1e-9)
    for method, argument, wanted in (("cdf", values, levels), ("icdf", np.tile(levels[:, None], len(theirs)), values)):
        try:
            found = getattr(ours, method)(candelabra.tensor(argument)).numpy()
        except NotImplementedError:
            assert name in {"Beta", "FisherSnedecor", "StudentT", "VonMises"} or (
                method == "icdf" and name in {"Chi2", "Gamma", "InverseGamma"}
            )
            continue
        wanted = np.broadcast_to(wanted[:, None] if wanted.ndim == 1 else wanted, found.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("name", {**CONTINUOUS, **DISCRETE})
def test_moments_and_entropy(name):
    ours, theirs = {**CONTINUOUS, **DISCRETE}[name]
    if name not in ("VonMises", "Cauchy", "HalfCauchy"):
        np.testing.assert_allclose(ours.mean.numpy(), [one.mean() for one in theirs], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(ours.variance.numpy(), [one.var() for one in theirs], rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(ours.stddev.numpy(), [one.std() for one in theirs], rtol=1e-8, atol=1e-12)
    if name in ("VonMises", "FisherSnedecor", "NegativeBinomial", "Poisson"):
        with pytest.raises(NotImplementedError):
            ours.entropy()
        return
    expected = [float(one.entropy()) for one in theirs]
    np.testing.assert_allclose(ours.entropy().numpy(), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours.perplexity().numpy(), np.exp(expected), rtol=1e-5)


@pytest.mark.parametrize("name", DISCRETE)
def test_probabilities(name):
    ours, theirs = DISCRETE[name]
    values = np.stack([one.ppf([0.01, 0.2, 0.5, 0.8, 0.99]) for one in theirs], -1)
    expected = np.stack([one.logpmf(column) for one, column in zip(theirs, values.T, strict=True)], -1)
    np.testing.assert_allclose(ours.log_prob(candelabra.tensor(values)).numpy(), expected, rtol=1e-7, atol=1e-9)
    with pytest.raises(ValueError, match="to be within the support"):
        ours.log_prob(candelabra.tensor(values + 0.5))


@pytest.mark.parametrize("dtype", [candelabra.float64, candelabra.float32], ids=str)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_draws(name, dtype):
    ours, theirs = CONTINUOUS[name]
    count = 5000
    draws = ours.sample((count,))
    assert draws.dtype == candelabra.float64 and not draws.requires_grad and bool(ours.support.check(draws).all())
    if dtype == candelabra.float32:
        names = [n for n in ours.arg_constraints if isinstance(getattr(ours, n), candelabra.Tensor)]
        narrow = type(ours)(**{n: getattr(ours, n).to(dtype) for n in names})
        draws = narrow.sample((count,))
        assert draws.dtype == dtype
        draws = draws.double()
    for one, column in zip(theirs, draws.numpy().T, strict=True):
        if one.dist.name == "vonmises":
            loc = one.args[1] if len(one.args) > 1 else 0.0
            column = (column - loc + np.pi) % (2 * np.pi) - np.pi + loc
        if dtype == candelabra.float32 and one.mean() < 0.02:
            continue  # with so small a shape, most draws underflow float32
        assert stats.kstest(column, one.cdf).pvalue > 1e-4, (name, one.args)


@pytest.mark.parametrize("name", DISCRETE)
def test_counts_of_draws(name):
    ours, theirs = DISCRETE[name]
    count = 20000
    draws = ours.sample((count,)).numpy()
    assert bool(ours.support.check(candelabra.tensor(draws)).all())
    for one, column in zip(theirs, draws.T, strict=True):
        values = np.arange(one.ppf(1e-3), one.ppf(0.999) + 1)
        expected = one.pmf(values) * count
        seen = np.array([(column == value).sum() for value in values])
        assert np.all(np.abs(seen - expected) < 5.5 * np.sqrt(expected) + 3), name


def test_multivariate_normal(rng):
    loc, half = rng.standard_normal(3), rng.standard_normal((3, 3))
    covariance = half @ half.T + np.eye(3)
    wanted = stats.multivariate_normal(loc, covariance)
    values = wanted.rvs(7, random_state=1)
    factor, diagonal = half, np.ones(3)
    made = [
        D.MultivariateNormal(candelabra.tensor(loc), covariance_matrix=candelabra.tensor(covariance)),
        D.MultivariateNormal(candelabra.tensor(loc), precision_matrix=candelabra.tensor(np.linalg.inv(covariance))),
        D.MultivariateNormal(candelabra.tensor(loc), scale_tril=candelabra.tensor(np.linalg.cholesky(covariance))),
        D.LowRankMultivariateNormal(candelabra.tensor(loc), candelabra.tensor(factor), candelabra.tensor(diagonal)),
    ]
    for ours in made:
        np.testing.assert_allclose(ours.log_prob(candelabra.tensor(values)).numpy(), wanted.logpdf(values), rtol=1e-9)
        np.testing.assert_allclose(ours.entropy().numpy(), wanted.entropy(), rtol=1e-9)
        np.testing.assert_allclose(ours.covariance_matrix.numpy(), covariance, rtol=1e-8)
        np.testing.assert_allclose(ours.precision_matrix.numpy(), np.linalg.inv(covariance), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(ours.scale_tril.numpy(), np.linalg.cholesky(covariance), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(ours.variance.numpy(), np.diag(covariance), rtol=1e-9)
        draws = ours.sample((20000,)).numpy()
        np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.25)
        white = np.linalg.solve(np.linalg.cholesky(covariance), (draws - loc).T)
        for row in white:
            assert stats.kstest(row, "norm").pvalue > 1e-4


def test_dirichlet_and_multinomial():
    a = np.array([0.5, 2.0, 3.0])
    ours, wanted = D.Dirichlet(candelabra.tensor(a)), stats.dirichlet(a)
    values = wanted.rvs(5, random_state=0)
    np.testing.assert_allclose(ours.log_prob(candelabra.tensor(values)).numpy(), wanted.logpdf(values.T), rtol=1e-9)
    np.testing.assert_allclose(ours.entropy().item(), wanted.entropy(), rtol=1e-9)
    np.testing.assert_allclose(ours.mean.numpy(), wanted.mean())
    np.testing.assert_allclose(ours.variance.numpy(), wanted.var())
    draws = ours.sample((5000,)).numpy()
    for i in range(3):  # the marginals are beta distributions
        assert stats.kstest(draws[:, i], stats.beta(a[i], a.sum() - a[i]).cdf).pvalue > 1e-4
    tiny = D.Dirichlet(candelabra.full((3,), 1e-3)).sample((200,))
    assert bool(tiny.isfinite().all()) and bool(((tiny.sum(-1) - 1).abs() < 1e-5).all())

    probs = np.array([0.2, 0.3, 0.5])
    many, other = D.Multinomial(6, candelabra.tensor(probs)), stats.multinomial(6, probs)
    counts = other.rvs(5, random_state=0)
    np.testing.assert_allclose(
        many.log_prob(candelabra.tensor(counts).double()).numpy(), other.logpmf(counts), rtol=1e-9
    )
    np.testing.assert_allclose(many.entropy().item(), other.entropy(), rtol=1e-9)
    drawn = many.sample((20000,))
    assert bool((drawn.sum(-1) == 6).all())
    np.testing.assert_allclose(drawn.mean(0).numpy(), 6 * probs, atol=0.06)
    np.testing.assert_allclose(np.cov(drawn.numpy().T), other.cov(), atol=0.08)


def test_wishart(rng):
    half = rng.standard_normal((3, 3))
    covariance = half @ half.T + np.eye(3)
    ours, wanted = D.Wishart(5.5, candelabra.tensor(covariance)), stats.wishart(5.5, covariance)
    values = wanted.rvs(4, random_state=0)
    np.testing.assert_allclose(
        ours.log_prob(candelabra.tensor(values)).numpy(), wanted.logpdf(values.transpose(1, 2, 0)), rtol=1e-9
    )
    np.testing.assert_allclose(ours.entropy().item(), wanted.entropy(), rtol=1e-9)
    np.testing.assert_allclose(ours.mean.numpy(), wanted.mean())
    np.testing.assert_allclose(ours.mode.numpy(), wanted.mode())
    np.testing.assert_allclose(ours.variance.numpy(), wanted.var())
    draws = ours.sample((20000,))
    np.testing.assert_allclose(draws.mean(0).numpy(), wanted.mean(), rtol=0.08, atol=0.4)
    np.testing.assert_allclose(draws.var(0).numpy(), wanted.var(), rtol=0.12, atol=1.0)


def test_lkj():
    # In a 3 x 3 matrix, each correlation, mapped from (-1, 1) to (0, 1), has a beta distribution.
    for concentration in (0.5, 1.0, 3.0):
        ours = D.LKJCholesky(3, candelabra.tensor(concentration, dtype=candelabra.float64))
        factors = ours.sample((5000,))
        assert bool(D.constraints.corr_cholesky.check(factors).all())
        correlations = (factors @ factors.mT).numpy()
        shape = concentration + 0.5
        for i, j in ((1, 0), (2, 0), (2, 1)):
            assert stats.kstest((correlations[:, i, j] + 1) / 2, stats.beta(shape, shape).cdf).pvalue > 1e-4
    # In a 2 x 2 matrix, compare with the density of the single correlation, transformed to the
    # factor's element, by integration.
    angle = np.linspace(0, np.pi, 2001)[1:-1]
    two = D.LKJCholesky(2, candelabra.tensor(2.5, dtype=candelabra.float64))
    factors = np.zeros((len(angle), 2, 2))
    factors[:, 0, 0], factors[:, 1, 0], factors[:, 1, 1] = 1, np.cos(angle), np.sin(angle)
    density = np.exp(two.log_prob(candelabra.tensor(factors)).numpy()) * np.sin(angle)
    assert np.trapezoid(density, angle) == pytest.approx(1, abs=1e-4)


def test_kumaraswamy_and_continuous_bernoulli_integrate():
    x = np.linspace(0, 1, 20001)[1:-1]
    for ours in (
        D.Kumaraswamy(t(1.5, 3.0), t(2.0, 1.2)),
        D.ContinuousBernoulli(t(0.2, 0.4995)),
        D.ContinuousBernoulli(logits=t(1.0, 3.0)),
    ):
        grid = candelabra.tensor(x).unsqueeze(-1)
        density = ours.log_prob(grid).exp().numpy()
        np.testing.assert_allclose(np.trapezoid(density, x, axis=0), 1, atol=1e-3)
        mean = np.trapezoid(density * x[:, None], x, axis=0)
        np.testing.assert_allclose(ours.mean.numpy(), mean, atol=1e-3)
        np.testing.assert_allclose(
            ours.variance.numpy(), np.trapezoid(density * (x[:, None] - mean) ** 2, x, axis=0), atol=1e-3
        )
        np.testing.assert_allclose(
            ours.entropy().numpy(), -np.trapezoid(density * np.log(density), x, axis=0), atol=2e-3
        )
        levels = t(0.1, 0.8)
        np.testing.assert_allclose(ours.cdf(ours.icdf(levels)).numpy(), levels.numpy(), rtol=1e-7)
        for i, column in enumerate(ours.sample((3000,)).numpy().T):
            cdf = lambda v, i=i, ours=ours: ours.cdf(candelabra.tensor(np.stack([v, v], -1))).numpy()[:, i]  # noqa: E731
            assert stats.kstest(column, cdf).pvalue > 1e-4


def test_mixture(rng):
    weights, locs, scales = np.array([0.2, 0.5, 0.3]), np.array([-2.0, 0.0, 3.0]), np.array([0.5, 1.0, 2.0])
    ours = D.MixtureSameFamily(
        D.Categorical(candelabra.tensor(weights)), D.Normal(candelabra.tensor(locs), candelabra.tensor(scales))
    )
    x = np.linspace(-4, 6, 11)
    parts = stats.norm(locs, scales)
    np.testing.assert_allclose(
        ours.log_prob(candelabra.tensor(x)).numpy(), np.log((weights * parts.pdf(x[:, None])).sum(-1))
    )
    np.testing.assert_allclose(ours.cdf(candelabra.tensor(x)).numpy(), (weights * parts.cdf(x[:, None])).sum(-1))
    mean = (weights * locs).sum()
    np.testing.assert_allclose(ours.mean.item(), mean)
    np.testing.assert_allclose(ours.variance.item(), (weights * (scales**2 + (locs - mean) ** 2)).sum())
    draws = ours.sample((5000,)).numpy()
    assert stats.kstest(draws, lambda v: (weights * parts.cdf(v[:, None])).sum(-1)).pvalue > 1e-4
    assert ours.expand((4,)).sample((2,)).shape == (2, 4)


def test_relaxed_draws_are_right_in_order():
    # The probability that a relaxed variable exceeds one half, or that a class is the largest,
    # equals that of the discrete variable.
    probs = t(0.3, 0.8)
    draws = D.RelaxedBernoulli(t(0.5), probs).rsample((20000,))
    np.testing.assert_allclose((draws > 0.5).double().mean(0).numpy(), probs.numpy(), atol=0.015)
    rows = t(0.2, 0.3, 0.5)
    largest = D.RelaxedOneHotCategorical(t(0.7), rows).rsample((20000,)).argmax(-1)
    np.testing.assert_allclose([(largest == i).double().mean().item() for i in range(3)], rows.numpy(), atol=0.015)
