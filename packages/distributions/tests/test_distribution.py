"""Test what distributions share: shapes, expand, validation, repr, constraints, and utils."""

import copy
import pickle

import numpy as np
import pytest

import candelabra
from candelabra import distributions as D
from candelabra.distributions import constraints, utils

ONES = candelabra.ones(2)
HALVES = ONES / 2
EVERY = [
    D.Bernoulli(HALVES),
    D.Bernoulli(logits=HALVES),
    D.Beta(ONES, ONES),
    D.Binomial(3, HALVES),
    D.Categorical(candelabra.ones(2, 3)),
    D.Categorical(logits=candelabra.ones(2, 3)),
    D.Cauchy(ONES, ONES),
    D.Chi2(ONES),
    D.ContinuousBernoulli(HALVES),
    D.Dirichlet(candelabra.ones(2, 3)),
    D.Exponential(ONES),
    D.FisherSnedecor(ONES, ONES),
    D.Gamma(ONES, ONES),
    D.GeneralizedPareto(ONES, ONES, ONES),
    D.Geometric(HALVES),
    D.Gumbel(ONES, ONES),
    D.HalfCauchy(ONES),
    D.HalfNormal(ONES),
    D.Independent(D.Normal(candelabra.ones(2, 3), 1.0), 1),
    D.InverseGamma(ONES, ONES),
    D.Kumaraswamy(ONES, ONES),
    D.LKJCholesky(3, ONES),
    D.Laplace(ONES, ONES),
    D.LogNormal(ONES, ONES),
    D.LogisticNormal(candelabra.ones(2, 3), candelabra.ones(2, 3)),
    D.LowRankMultivariateNormal(candelabra.ones(2, 3), candelabra.ones(2, 3, 1), candelabra.ones(2, 3)),
    D.MixtureSameFamily(D.Categorical(candelabra.ones(2, 3)), D.Normal(candelabra.ones(2, 3), 1.0)),
    D.Multinomial(3, candelabra.ones(2, 3)),
    D.MultivariateNormal(candelabra.ones(2, 3), candelabra.eye(3)),
    D.NegativeBinomial(ONES, HALVES),
    D.Normal(ONES, ONES),
    D.OneHotCategorical(candelabra.ones(2, 3)),
    D.OneHotCategoricalStraightThrough(candelabra.ones(2, 3)),
    D.Pareto(ONES, ONES),
    D.Poisson(ONES),
    D.RelaxedBernoulli(1.0, HALVES),
    D.RelaxedOneHotCategorical(1.0, candelabra.ones(2, 3)),
    D.StudentT(ONES),
    D.TransformedDistribution(D.Normal(ONES, ONES), D.ExpTransform()),
    D.Uniform(ONES, 2 * ONES),
    D.VonMises(ONES, ONES),
    D.Weibull(ONES, ONES),
    D.Wishart(4 * ONES, candelabra.eye(3)),
]


@pytest.mark.parametrize("made", EVERY, ids=lambda made: type(made).__name__)
def test_shapes_and_expansion(made):
    assert made.batch_shape == (2,)
    for shape in ((), (3,), (2, 3), (0,)):
        draws = made.sample(shape)
        assert draws.shape == (*shape, 2, *made.event_shape) and not draws.requires_grad
        assert made.log_prob(draws).shape == (*shape, 2)
        assert bool(made.support.check(draws).all())
        if made.has_rsample:
            assert made.rsample(shape).shape == draws.shape
    wide = made.expand((4, 2))
    assert type(wide) is type(made) and wide.batch_shape == (4, 2) and wide.event_shape == made.event_shape
    draws = wide.sample((3,))
    assert draws.shape == (3, 4, 2, *made.event_shape)
    np.testing.assert_allclose(wide.log_prob(draws).numpy(), made.log_prob(draws).numpy(), rtol=1e-5)
    assert wide.expand((5, 4, 2)).sample().shape == (5, 4, 2, *made.event_shape)
    for name in ("mean", "variance", "mode", "stddev"):
        try:
            value = getattr(made, name)
        except NotImplementedError:
            continue
        assert value.shape in ((2, *made.event_shape), (2,)), name
        assert getattr(wide, name).shape == (4, *value.shape), name
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        x = draws[0, 0]
        np.testing.assert_array_equal(other.log_prob(x).numpy(), made.log_prob(x).numpy())
    if made.has_enumerate_support:
        values = made.enumerate_support()
        assert values.shape[1:] == (2, *made.event_shape) and made.enumerate_support(expand=False).shape[1] == 1
        np.testing.assert_allclose(made.log_prob(values).exp().sum(0).numpy(), 1, rtol=1e-5)


def test_printing():
    assert repr(D.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(D.Normal(ONES, ONES)) == f"Normal(loc: {ONES.size()}, scale: {ONES.size()})"
    assert repr(D.Independent(D.Normal(ONES, ONES), 1)).endswith(", 1)")
    assert repr(constraints.positive) == "GreaterThan(lower_bound=0.0)"
    assert repr(constraints.unit_interval) == "Interval(lower_bound=0.0, upper_bound=1.0)"
    assert repr(constraints.simplex) == "Simplex()" and repr(constraints.real) == "Real()"
    assert repr(constraints.independent(constraints.real, 1)) == "IndependentConstraint(Real(), 1)"


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: D.Normal(0.0, -1.0), ValueError, r"Expected parameter scale \(Tensor of shape \(\)\) of distribution Normal\(loc: 0.0, scale: -1.0\) to satisfy the constraint GreaterThan\(lower_bound=0.0\), but found invalid values:\n-1.0"),
        (lambda: D.Normal("a", 1.0), ValueError, "must all be instances of Number"),
        (lambda: D.Bernoulli(), ValueError, "Either `probs` or `logits` must be specified, but not both."),
        (lambda: D.Bernoulli(0.5, 0.5), ValueError, "Either `probs` or `logits` must be specified, but not both."),
        (lambda: D.Bernoulli(1.5), ValueError, "Expected parameter probs"),
        (lambda: D.Categorical(candelabra.tensor(1.0)), ValueError, "`probs` parameter must be at least one-dimensional."),
        (lambda: D.Categorical(logits=candelabra.tensor(1.0)), ValueError, "`logits` parameter must be at least one-dimensional."),
        (lambda: D.Categorical(candelabra.tensor([-1.0, 3.0])), ValueError, "Simplex"),
        (lambda: D.Dirichlet(candelabra.tensor(1.0)), ValueError, "`concentration` parameter must be at least one-dimensional."),
        (lambda: D.Geometric(0.0), ValueError, "to be positive but found invalid values"),
        (lambda: D.Uniform(1.0, 0.0), ValueError, "LessThan"),
        (lambda: D.Gamma(-1.0, 1.0), ValueError, "Expected parameter concentration"),
        (lambda: D.LKJCholesky(1), ValueError, "greater than or equal to 2. Found dim=1"),
        (lambda: D.Multinomial(ONES, ONES), NotImplementedError, "inhomogeneous total_count is not supported"),
        (lambda: D.MultivariateNormal(ONES), ValueError, "Exactly one of covariance_matrix or precision_matrix or scale_tril"),
        (lambda: D.MultivariateNormal(candelabra.tensor(1.0), candelabra.eye(1)), ValueError, "loc must be at least one-dimensional."),
        (lambda: D.MultivariateNormal(ONES, ONES), ValueError, "covariance_matrix must be at least two-dimensional"),
        (lambda: D.MultivariateNormal(ONES, -candelabra.eye(2)), ValueError, "PositiveDefinite"),
        (lambda: D.LowRankMultivariateNormal(ONES, candelabra.ones(3, 1), ONES), ValueError, "cov_factor must be a batch of matrices"),
        (lambda: D.LowRankMultivariateNormal(ONES, candelabra.ones(2, 1), candelabra.ones(3)), ValueError, "cov_diag must be a batch of vectors"),
        (lambda: D.Wishart(1.0, candelabra.eye(3)), ValueError, "expected to be greater than ndim - 1 = 2"),
        (lambda: D.Wishart(5.0), AssertionError, "Exactly one of"),
        (lambda: D.MixtureSameFamily(D.Normal(ONES, ONES), D.Normal(ONES, ONES)), ValueError, "The Mixture distribution needs to be"),
        (lambda: D.MixtureSameFamily(D.Categorical(ONES), 3), ValueError, "The Component distribution needs to be"),
        (lambda: D.MixtureSameFamily(D.Categorical(candelabra.ones(3)), D.Normal(ONES, ONES)), ValueError, "does not equal"),
        (lambda: D.Independent(D.Normal(ONES, ONES), 2), ValueError, "Expected reinterpreted_batch_ndims <= len"),
    ],
)  # fmt: skip
def test_parameters_are_checked(make, error, text):
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "The value argument to log_prob must be a Tensor"),
        (candelabra.ones(3), "Value is not broadcastable with batch_shape\\+event_shape: \\(3,\\) vs \\(2,\\)"),
        (-ONES, "to be within the support"),
        (ONES * float("nan"), "but found invalid values:\ntensor\\(\\[nan, nan\\]\\)"),
    ],
)
def test_values_are_checked(value, text):
    with pytest.raises(ValueError, match=text):
        D.Exponential(ONES).log_prob(value)
    with pytest.raises(ValueError, match="The right-most size of value must match event_shape: \\(2,\\) vs \\(3,\\)"):
        D.Dirichlet(candelabra.ones(3)).log_prob(ONES)


def test_checks_can_be_left_out():
    assert D.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    assert D.Exponential(ONES, validate_args=False).log_prob(-ONES).tolist() == [1.0, 1.0]
    D.Distribution.set_default_validate_args(False)
    try:
        assert D.Normal(0.0, -1.0).scale.item() == -1
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError):
        D.Distribution.set_default_validate_args(None)


def test_own_subclasses():
    class Shifted(D.Normal):
        def __init__(self, loc):
            super().__init__(loc, 1.0)

    with pytest.raises(
        NotImplementedError,
        match="Subclass Shifted of Normal that defines a custom __init__ method must also define a custom .expand",
    ):
        Shifted(ONES).expand((3, 2))

    class Plain(D.Normal):
        pass

    assert type(Plain(ONES, 1.0).expand((3, 2))) is Plain

    class Own(D.Distribution):
        pass

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        own = Own()
    for name in ("mean", "mode", "variance", "support"):
        with pytest.raises(NotImplementedError):
            getattr(own, name)
    for call in (own.sample, own.entropy, own.enumerate_support, lambda: own.expand((2,)), lambda: own.icdf(ONES)):
        with pytest.raises(NotImplementedError):
            call()
    with pytest.warns(UserWarning, match="sample_n will be deprecated"):
        assert D.Normal(0.0, 1.0).sample_n(3).shape == (3,)


def test_seeds():
    made = D.Gamma(ONES, ONES)
    candelabra.manual_seed(5)
    first = made.sample((4,))
    candelabra.manual_seed(5)
    assert made.sample((4,)).tolist() == first.tolist() != made.sample((4,)).tolist()


@pytest.mark.parametrize(
    ("constraint", "inside", "outside"),
    [
        (constraints.boolean, 1.0, 0.5),
        (constraints.one_hot, [0.0, 1.0], [1.0, 1.0]),
        (constraints.nonnegative_integer, 0.0, -1.0),
        (constraints.positive_integer, 1.0, 0.0),
        (constraints.integer_interval(1, 3), 3.0, 2.5),
        (constraints.real, -3.0, float("nan")),
        (constraints.positive, 1.0, 0.0),
        (constraints.nonnegative, 0.0, -1.0),
        (constraints.greater_than(2.0), 3.0, 2.0),
        (constraints.greater_than_eq(2.0), 2.0, 1.0),
        (constraints.less_than(2.0), 1.0, 2.0),
        (constraints.multinomial(3), [1.0, 2.0], [2.0, 2.0]),
        (constraints.unit_interval, 1.0, 1.1),
        (constraints.half_open_interval(0.0, 1.0), 0.0, 1.0),
        (constraints.simplex, [0.3, 0.7], [0.3, 0.8]),
        (constraints.lower_triangular, [[1.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]]),
        (constraints.lower_cholesky, [[1.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [1.0, -1.0]]),
        (constraints.corr_cholesky, [[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.6, 0.7]]),
        (constraints.square, [[1.0, 0.0], [1.0, 1.0]], [[1.0, 0.0]]),
        (constraints.symmetric, [[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [1.0, 1.0]]),
        (constraints.positive_semidefinite, [[1.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [2.0, 1.0]]),
        (constraints.positive_definite, [[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]),
        (constraints.independent(constraints.positive, 1), [1.0, 2.0], [1.0, -1.0]),
    ],
    ids=str,
)
def test_constraints(constraint, inside, outside):
    assert bool(constraint.check(candelabra.tensor(inside)).all())
    found = constraint.check(candelabra.tensor(outside))
    assert not bool(found.any()) and found.ndim == candelabra.tensor(outside).ndim - constraint.event_dim


def test_dependent_constraints():
    assert constraints.is_dependent(D.Uniform.support) and not constraints.is_dependent(D.Normal.support)
    with pytest.raises(ValueError, match="Cannot determine validity of dependent constraint"):
        constraints.dependent.check(ONES)
    with pytest.raises(NotImplementedError):
        constraints.dependent.is_discrete
    said = constraints.dependent(is_discrete=True, event_dim=1)
    assert said.is_discrete and said.event_dim == 1
    assert D.Binomial.support.is_discrete and D.Categorical.support.event_dim == 0
    two = constraints.cat([constraints.positive, constraints.boolean], 0, [1, 2])
    assert two.is_discrete and two.check(candelabra.tensor([2.0, 1.0, 0.5])).tolist() == [True, True, False]
    stacked = constraints.stack([constraints.positive, constraints.real], 0)
    assert stacked.check(candelabra.tensor([[-1.0, 2.0], [3.0, 4.0]])).tolist() == [[False, True], [True, True]]


def test_utils(rng):
    full = candelabra.tensor(rng.standard_normal((2, 4, 4)))
    for diag in (-3, -1, 0):
        vector = utils.tril_matrix_to_vec(full, diag)
        np.testing.assert_array_equal(utils.vec_to_tril_matrix(vector, diag).numpy(), full.tril(diag).numpy())
    with pytest.raises(ValueError, match="is outside valid range"):
        utils.tril_matrix_to_vec(full, 5)
    with pytest.raises(ValueError, match="cannot be expressed as the lower triangular part"):
        utils.vec_to_tril_matrix(candelabra.ones(4))
    probs = candelabra.tensor([0.2, 0.3, 0.5])
    np.testing.assert_allclose(utils.logits_to_probs(utils.probs_to_logits(probs)).numpy(), probs.numpy(), rtol=1e-6)
    np.testing.assert_allclose(
        utils.logits_to_probs(utils.probs_to_logits(probs, True), True).numpy(), probs.numpy(), rtol=1e-6
    )
    one, two, three = utils.broadcast_all(1, candelabra.ones(2, 1, dtype=candelabra.float64), candelabra.ones(3))
    assert one.dtype == candelabra.float64 and one.shape == two.shape == three.shape == (2, 3)

    class Counted:
        count = 0

        @utils.lazy_property
        def value(self):
            """What is counted."""
            self.count += 1
            return self.count

    counted = Counted()
    assert (
        counted.value == counted.value == 1
        and utils.is_lazy(Counted, "value")
        and Counted.value.__doc__ == "What is counted."
    )


@pytest.mark.parametrize("dtype", [candelabra.float16, candelabra.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("kind", "count"),
    [
        (D.Normal, 2),
        (D.Gamma, 2),
        (D.Beta, 2),
        (D.StudentT, 3),
        (D.Pareto, 2),
        (D.Weibull, 2),
        (D.FisherSnedecor, 2),
        (D.Laplace, 2),
        (D.Poisson, 1),
    ],
)
def test_half_precisions(kind, count, dtype):
    made = kind(*(candelabra.tensor([2.5, 5.0], dtype=dtype) for _ in range(count)))
    draws = made.sample((50,))
    assert draws.dtype == made.mean.dtype == made.variance.dtype == dtype
    density = made.log_prob(draws)
    assert density.dtype == dtype and not bool(density.isnan().any())


@pytest.mark.parametrize(
    "distribution",
    [D.Beta(candelabra.tensor([2.0, 0.5]), candelabra.tensor([3.0, 4.0])), D.Dirichlet(candelabra.tensor([1.0, 2.5, 3.0]))],
    ids=["Beta", "Dirichlet"],
)  # fmt: skip
def test_entropy_of_the_exponential_family_is_that_of_the_distribution(distribution):
    made = D.ExponentialFamily.entropy(distribution)
    candelabra.testing.assert_close(made.detach(), distribution.entropy())


@pytest.mark.parametrize("dtype", [candelabra.float32, candelabra.float64])
def test_draws_of_small_concentrations_are_inside_of_the_interval(dtype):
    concentration = candelabra.full((3,), 0.01, dtype=dtype)
    beta = D.Beta(concentration, concentration).sample((2000,))
    dirichlet = D.Dirichlet(concentration).sample((2000,))
    for draws in (beta, dirichlet):
        assert draws.min() > 0
        assert draws.max() < 1
    assert D.Beta(concentration, concentration).log_prob(beta).isfinite().all()


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: D.Gamma(candelabra.tensor([np.inf, -1.0, np.nan]), 1.0, False), [np.inf, np.nan, np.nan]),
        (lambda: D.Dirichlet(candelabra.tensor([-1.0, 1.0]), False), [np.nan, np.nan]),
        (lambda: D.Dirichlet(candelabra.tensor([np.inf, 1.0]), False), [np.nan, np.nan]),
        (lambda: D.Beta(-1.0, 1.0, False), np.nan),
        (lambda: D.NegativeBinomial(-1.0, 0.5, validate_args=False), np.nan),
        (
            lambda: D.VonMises(0.5, candelabra.tensor([np.inf, -1.0, np.nan, -np.inf]), False),
            [0.5, np.nan, np.nan, np.nan],
        ),
    ],
)
@pytest.mark.timeout(20)
def test_draws_without_validation_return(make, expected):
    np.testing.assert_allclose(make().sample().numpy(), expected)


def test_von_mises_without_concentration_is_uniform():
    candelabra.manual_seed(0)
    for concentration in (0.0, 1e-310, 1e-12):
        angles = D.VonMises(0.0, candelabra.tensor(concentration, dtype=candelabra.float64), False).sample((4000,))
        counts = np.histogram(angles.numpy(), bins=4, range=(-np.pi, np.pi))[0]
        assert counts.sum() == 4000 and (abs(counts - 1000) < 150).all()


def test_broadcast_all_of_other_classes():
    class Foreign:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return [func, args]

    x = Foreign()
    assert utils.broadcast_all(x, x) == (candelabra.broadcast_tensors, (x, x))
    with pytest.raises(ValueError, match="must all be instances"):
        utils.broadcast_all("a", 1)
