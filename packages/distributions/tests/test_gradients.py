"""Test gradients of densities and of draws."""

import numpy as np
import pytest
from scipy import special

import candelabra
from candelabra import distributions as D
from candelabra import func
from candelabra.autograd import grad, gradcheck, gradgradcheck
from candelabra.distributions.gammas.gamma_draws import log_gamma_draw, log_gamma_slope


def p(*values):
    return candelabra.tensor(values, dtype=candelabra.float64, requires_grad=True)


#: Distributions, their parameters, and the values at which densities are differentiated.
DENSITIES = [
    (D.Bernoulli, (p(0.3, 0.7),), [0.0, 1.0]),
    (D.Beta, (p(0.5, 2.0), p(1.5, 3.0)), [0.3, 0.6]),
    (D.Binomial, (5, p(0.3, 0.7)), [1.0, 5.0]),
    (D.Categorical, (p(0.3, 0.7),), [1.0]),
    (D.Cauchy, (p(0.3, 0.7), p(1.0, 2.0)), [0.0, 5.0]),
    (D.Chi2, (p(0.5, 3.0),), [0.3, 2.0]),
    (D.ContinuousBernoulli, (p(0.3, 0.5, 0.9),), [0.2, 0.5, 0.9]),
    (D.Dirichlet, (p(0.5, 2.0, 1.0),), [0.2, 0.5, 0.3]),
    (D.Exponential, (p(0.5, 3.0),), [0.3, 2.0]),
    (D.FisherSnedecor, (p(2.0, 3.0), p(4.0, 5.0)), [0.3, 2.0]),
    (D.Gamma, (p(0.5, 3.0), p(1.0, 2.0)), [0.3, 2.0]),
    (D.Geometric, (p(0.3, 0.7),), [0.0, 4.0]),
    (D.Gumbel, (p(0.3, 0.7), p(1.0, 2.0)), [0.0, 5.0]),
    (D.HalfNormal, (p(0.5, 3.0),), [0.3, 2.0]),
    (D.InverseGamma, (p(0.5, 3.0), p(1.0, 2.0)), [0.3, 2.0]),
    (D.Kumaraswamy, (p(0.5, 3.0), p(1.0, 2.0)), [0.3, 0.9]),
    (D.Laplace, (p(0.3, 0.7), p(1.0, 2.0)), [0.0, 5.0]),
    (D.LogNormal, (p(0.3, 0.7), p(1.0, 2.0)), [0.5, 5.0]),
    (D.NegativeBinomial, (p(1.5, 3.0), p(0.3, 0.7)), [0.0, 4.0]),
    (D.Normal, (p(0.3, 0.7), p(1.0, 2.0)), [0.0, 5.0]),
    (D.Pareto, (p(0.3, 0.7), p(1.0, 2.0)), [0.9, 5.0]),
    (D.Poisson, (p(0.3, 4.0),), [0.0, 4.0]),
    (D.StudentT, (p(2.0, 3.0), p(0.0, 1.0), p(1.0, 2.0)), [0.3, 2.0]),
    (D.VonMises, (p(0.3, 0.7), p(1.0, 2.0)), [0.0, 2.0]),
    (D.Weibull, (p(0.3, 0.7), p(1.0, 2.0)), [0.9, 5.0]),
]


@pytest.mark.parametrize(("kind", "parameters", "values"), DENSITIES, ids=lambda entry: getattr(entry, "__name__", ""))
def test_log_prob(kind, parameters, values):
    x = candelabra.tensor(values, dtype=candelabra.float64)

    def log_prob(*parameters):
        return kind(*parameters, validate_args=False).log_prob(x)

    assert gradcheck(log_prob, parameters)
    if kind not in (D.VonMises,):  # Bessel functions of order 2 are not implemented
        assert gradgradcheck(log_prob, parameters)


#: Reparameterized distributions.
REPARAMETERIZED = [
    entry
    for entry in DENSITIES
    if entry[0]
    in (
        D.Cauchy,
        D.ContinuousBernoulli,
        D.Exponential,
        D.Gumbel,
        D.HalfNormal,
        D.Kumaraswamy,
        D.Laplace,
        D.LogNormal,
        D.Normal,
        D.Pareto,
        D.Weibull,
    )
]


@pytest.mark.parametrize(
    ("kind", "parameters", "values"), REPARAMETERIZED, ids=lambda entry: getattr(entry, "__name__", "")
)
def test_rsample(kind, parameters, values):
    def draw(*parameters):
        candelabra.manual_seed(3)
        return kind(*parameters).rsample((4,))

    assert kind(*parameters).has_rsample
    assert gradcheck(draw, parameters)


def test_rsample_of_matrices(rng):
    loc = candelabra.tensor(rng.standard_normal(3), requires_grad=True)
    factor = candelabra.tensor(rng.standard_normal((3, 2)), requires_grad=True)
    diagonal = candelabra.tensor(rng.uniform(0.5, 1, 3), requires_grad=True)
    full = candelabra.tensor(np.tril(rng.standard_normal((3, 3))) + 3 * np.eye(3), requires_grad=True)

    def low_rank(loc, factor, diagonal):
        candelabra.manual_seed(3)
        return D.LowRankMultivariateNormal(loc, factor, diagonal).rsample((2,))

    def normal(loc, full):
        candelabra.manual_seed(3)
        return D.MultivariateNormal(loc, scale_tril=full.tril()).rsample((2,))

    assert gradcheck(low_rank, (loc, factor, diagonal))
    assert gradcheck(normal, (loc, full))
    x = candelabra.tensor(rng.standard_normal((2, 3)))
    assert gradcheck(lambda *a: D.LowRankMultivariateNormal(*a).log_prob(x), (loc, factor, diagonal))
    assert gradcheck(lambda loc, full: D.MultivariateNormal(loc, scale_tril=full.tril()).log_prob(x), (loc, full))


@pytest.mark.parametrize("shape", [1e-3, 0.1, 0.9, 1.0, 4.0, 29.0, 31.0, 300.0, 1e5])
def test_gamma_draws_move_with_their_quantile(shape):
    levels = np.array([0.001, 0.1, 0.4, 0.6, 0.9, 0.999])
    z = special.gammaincinv(shape, levels)
    keep = z > 1e-280
    levels, z = levels[keep], z[keep]
    h = shape * 1e-4
    quantile = lambda a: np.log(special.gammaincinv(a, levels))  # noqa: E731
    expected = (
        8 * (quantile(shape + h) - quantile(shape - h)) - (quantile(shape + 2 * h) - quantile(shape - 2 * h))
    ) / (12 * h)
    found = log_gamma_slope(candelabra.full((len(z),), shape, dtype=candelabra.float64), candelabra.tensor(np.log(z)))
    np.testing.assert_allclose(found.numpy(), expected, rtol=3e-7)


def test_gradients_of_gamma_draws_have_the_right_mean():
    concentration, rate = p(0.3, 2.0, 50.0), p(1.0, 2.0, 0.5)
    draws = D.Gamma(concentration, rate).rsample((10000,))
    by_shape, by_rate = grad(draws.mean(0).sum(), (concentration, rate))
    # The mean is a / r.
    np.testing.assert_allclose(by_shape.numpy(), (1 / rate).detach().numpy(), rtol=0.08)
    np.testing.assert_allclose(by_rate.numpy(), (-concentration / rate**2).detach().numpy(), rtol=0.08)


def test_gradients_of_beta_dirichlet_and_student_draws():
    a, b = p(0.5, 3.0), p(2.0, 1.5)
    draws = D.Beta(a, b).rsample((10000,))
    by_a, by_b = grad((draws**2).mean(0).sum(), (a, b))
    # The mean of x^2 is a (a + 1) / ((a + b) (a + b + 1)).
    square = lambda a, b: a * (a + 1) / ((a + b) * (a + b + 1))  # noqa: E731
    wanted = grad(square(a, b).sum(), (a, b))
    np.testing.assert_allclose(by_a.numpy(), wanted[0].numpy(), rtol=0.1, atol=0.004)
    np.testing.assert_allclose(by_b.numpy(), wanted[1].numpy(), rtol=0.1, atol=0.004)

    c = p(0.7, 2.0, 1.0)
    (found,) = grad((D.Dirichlet(c).rsample((10000,))[..., 0]).mean(), (c,))
    (wanted,) = grad((c / c.sum())[0], (c,))
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=0.1, atol=0.005)

    df = p(6.0)
    (found,) = grad((D.StudentT(df).rsample((20000,)) ** 2).mean(), (df,))
    assert found.item() == pytest.approx(-2 / (6 - 2) ** 2, rel=0.6)  # the derivative of df / (df - 2)


def test_log_gamma_draw_without_and_with_gradient_agree():
    concentration = candelabra.tensor([0.5, 5.0])
    candelabra.manual_seed(1)
    plain = log_gamma_draw(concentration)
    candelabra.manual_seed(1)
    recorded = log_gamma_draw(concentration.clone().requires_grad_())
    assert plain.tolist() == recorded.tolist() and recorded.requires_grad and recorded.dtype == candelabra.float32


def test_straight_through():
    probs = p(0.2, 0.3, 0.5)
    draws = D.OneHotCategoricalStraightThrough(probs).rsample((3,))
    assert bool((draws.sum(-1) == 1).all())
    (found,) = grad((draws * candelabra.tensor([1.0, 2.0, 3.0])).sum(), (probs,))
    (wanted,) = grad(3 * (probs / probs.sum() * candelabra.tensor([1.0, 2.0, 3.0])).sum(), (probs,))
    np.testing.assert_allclose(found.numpy(), wanted.numpy())


def test_entropy_of_exponential_families():
    # The general formula, with the gradient of the log normalizer, agrees with each distribution's
    # own.
    for made in (
        D.Normal(p(0.0, 1.0), p(1.0, 2.0)),
        D.Gamma(p(0.5, 3.0), p(1.0, 2.0)),
        D.Beta(p(0.5, 3.0), p(1.0, 2.0)),
        D.Exponential(p(0.5, 3.0)),
        D.Bernoulli(p(0.2, 0.7)),
        D.ContinuousBernoulli(p(0.2, 0.7)),
    ):
        general = D.ExponentialFamily.entropy(made)
        if isinstance(made, D.Normal):
            np.testing.assert_allclose(general.detach().numpy(), made.entropy().detach().numpy(), rtol=1e-9)
        elif isinstance(made, D.Bernoulli | D.ContinuousBernoulli | D.Exponential | D.Gamma):
            np.testing.assert_allclose(general.detach().numpy(), made.entropy().detach().numpy(), rtol=1e-7)


def test_gamma_draws_within_transformations():
    concentration = p(0.5, 2.0).detach()

    def draw(concentration):
        candelabra.manual_seed(0)
        return D.Gamma(concentration, 1.0, validate_args=False).rsample().sum()

    leaf = concentration.clone().requires_grad_()
    (expected,) = grad(draw(leaf), (leaf,))
    np.testing.assert_allclose(func.grad(draw)(concentration).numpy(), expected.numpy())
    value, tangent = func.jvp(draw, (concentration,), (candelabra.ones(2, dtype=candelabra.float64),))
    assert value.item() == draw(concentration).item()
    np.testing.assert_allclose(tangent.item(), expected.sum().item())
    drawn = func.vmap(lambda a: D.Gamma(a, 1.0, validate_args=False).sample(), randomness="different")(concentration)
    assert drawn.shape == (2,) and bool((drawn > 0).all())
    slopes = func.vmap(func.grad(lambda a: D.Gamma(a, 1.0, validate_args=False).rsample()), randomness="different")(
        concentration
    )
    assert slopes.shape == (2,) and bool((slopes > 0).all())
    with pytest.raises(RuntimeError, match="within vmap with randomness='error'"):
        func.vmap(lambda a: D.Gamma(a, 1.0, validate_args=False).sample())(concentration)


def test_gradients_of_gamma_draws_have_no_gradients():
    concentration = p(2.0)
    draw = D.Gamma(concentration, 1.0).rsample()
    (first,) = grad(draw.sum(), (concentration,), create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable|differentiate twice"):
        grad(first.sum(), (concentration,))

    def draw_of(a):
        candelabra.manual_seed(0)
        return D.Gamma(a, 1.0, validate_args=False).rsample().sum()

    x = candelabra.tensor([2.0], dtype=candelabra.float64)
    ones = candelabra.ones_like(x)
    for twice in (
        lambda: func.jvp(func.grad(draw_of), (x,), (ones,)),
        lambda: func.grad(lambda a: func.grad(draw_of)(a).sum())(x),
        lambda: func.jvp(lambda a: func.jvp(draw_of, (a,), (ones,))[1], (x,), (ones,)),
    ):
        with pytest.raises(RuntimeError, match="can be differentiated once, not twice"):
            twice()
