"""Test transforms: inverses, log-determinants, shapes, domains, biject_to and transform_to."""

import copy
import pickle

import numpy as np
import pytest

import candelabra
from candelabra import distributions as D
from candelabra.autograd.functional import jacobian
from candelabra.distributions import constraints, transforms

TRANSFORMS = [
    (D.AbsTransform(), (3,)),
    (D.AffineTransform(1.0, -2.0), (3,)),
    (D.AffineTransform(candelabra.tensor([1.0, 2.0, 3.0]), candelabra.tensor([0.5, -1.0, 2.0]), event_dim=1), (3,)),
    (D.CatTransform([D.ExpTransform(), D.identity_transform], lengths=[1, 2]), (3,)),
    (D.CatTransform([D.ExpTransform(), D.TanhTransform()], dim=-1, lengths=[1, 2]), (2, 3)),
    (D.ComposeTransform([D.AffineTransform(1.0, 2.0), D.SigmoidTransform()]), (3,)),
    (D.ComposeTransform([D.TanhTransform(), D.StickBreakingTransform()]), (3,)),
    (D.CorrCholeskyTransform(), (3,)),
    (D.CumulativeDistributionTransform(D.Normal(0.0, 1.0)), (3,)),
    (D.ExpTransform(), (3,)),
    (D.IndependentTransform(D.ExpTransform(), 1), (3,)),
    (D.LowerCholeskyTransform(), (3, 3)),
    (D.PositiveDefiniteTransform(), (3, 3)),
    (D.ComposeTransform([D.ExpTransform(), D.PowerTransform(candelabra.tensor(2.0))]), (3,)),
    (D.ReshapeTransform((4,), (2, 2)), (4,)),
    (D.SigmoidTransform(), (3,)),
    (D.SoftmaxTransform(), (3,)),
    (D.SoftplusTransform(), (3,)),
    (D.StackTransform([D.ExpTransform(), D.SigmoidTransform(), D.identity_transform]), (3,)),
    (D.StickBreakingTransform(), (3,)),
    (D.TanhTransform(), (3,)),
]
IDS = [type(transform).__name__ for transform, _ in TRANSFORMS]


@pytest.mark.parametrize(("transform", "shape"), TRANSFORMS, ids=IDS)
def test_round_trip(rng, transform, shape):
    x = candelabra.tensor(
        rng.standard_normal((2, *shape))
        if "Cat" not in repr(transform) and "Stack" not in repr(transform)
        else rng.standard_normal(shape)
    )
    y = transform(x)
    assert bool(transform.codomain.check(y).all()) and bool(transform.domain.check(x).all())
    if transform.bijective:
        np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-6, atol=1e-8)
    else:  # the inverse is one preimage of y
        np.testing.assert_allclose(transform(transform.inv(y)).numpy(), y.numpy(), rtol=1e-6, atol=1e-8)
    assert tuple(transform.forward_shape(tuple(x.shape))) == tuple(y.shape)
    assert tuple(transform.inverse_shape(tuple(y.shape))) == tuple(x.shape)
    assert transform.inv.inv is transform and transform.inv.bijective == transform.bijective


@pytest.mark.parametrize(
    ("transform", "shape"), [entry for entry in TRANSFORMS if entry[0].bijective], ids=lambda e: type(e).__name__
)
def test_change_of_volume(rng, transform, shape):
    x = candelabra.tensor(rng.standard_normal(shape))
    y = transform(x)
    found = transform.log_abs_det_jacobian(x, y)
    matrix = jacobian(transform, x).numpy().reshape(y.numel(), x.numel())
    if isinstance(transform, D.CorrCholeskyTransform):  # only the elements below the diagonal
        matrix = matrix[[3, 6, 7]]
    elif "StickBreaking" in repr(transform):
        matrix = matrix[:-1]
    np.testing.assert_allclose(found.sum().item(), np.log(abs(np.linalg.det(matrix))), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(transform.inv.log_abs_det_jacobian(y, x).numpy(), -found.numpy())


def test_cache():
    transform = D.ExpTransform(cache_size=1)
    x = candelabra.zeros(3)
    y = transform(x)
    assert transform(x) is y and transform.inv(y) is x
    assert transform.with_cache(1) is transform and transform.with_cache(0)(x) is not y
    composed = D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)], cache_size=1)
    assert composed.inv(composed(x)) is x
    for one in (
        D.AffineTransform(1.0, 2.0),
        D.PowerTransform(2.0),
        D.IndependentTransform(D.ExpTransform(), 1),
        D.ReshapeTransform((4,), (2, 2)),
        D.CatTransform([D.ExpTransform()]),
        D.StackTransform([D.ExpTransform()]),
        D.CumulativeDistributionTransform(D.Normal(0.0, 1.0)),
        D.ExpTransform().inv,
    ):
        assert one.with_cache(1)._cache_size == 1
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        D.ExpTransform(cache_size=2)


def test_equality_signs_and_copies():
    assert D.ExpTransform() == D.ExpTransform() != D.TanhTransform()
    assert D.AffineTransform(1.0, 2.0) == D.AffineTransform(1.0, 2.0) != D.AffineTransform(1.0, 3.0)
    assert D.AffineTransform(candelabra.ones(2), 2.0) == D.AffineTransform(1.0, 2.0)
    assert D.PowerTransform(2.0) == D.PowerTransform(2.0) != D.PowerTransform(3.0)
    assert D.ExpTransform().inv == D.ExpTransform().inv != D.ExpTransform()
    assert D.ComposeTransform([D.ExpTransform()]) == D.ComposeTransform([D.ExpTransform()])
    assert (
        D.AffineTransform(0.0, -1.0).sign == -1
        and D.ComposeTransform([D.AffineTransform(0.0, -1.0), D.ExpTransform()]).sign == -1
    )
    with pytest.raises(NotImplementedError):
        D.SoftmaxTransform().sign
    for one in (D.ExpTransform(), D.AffineTransform(1.0, 2.0), D.ExpTransform().inv):
        assert copy.deepcopy(one) == one == pickle.loads(pickle.dumps(one))
    assert repr(D.ExpTransform().inv) == "_InverseTransform(ExpTransform())"


def test_errors():
    with pytest.raises(ValueError, match="in_shape, out_shape have different numbers of elements"):
        D.ReshapeTransform((4,), (3,))
    with pytest.raises(ValueError, match="Too few dimensions on input"):
        D.CorrCholeskyTransform().inverse_shape((3,))
    with pytest.raises(ValueError, match="Input is not square"):
        D.CorrCholeskyTransform().inverse_shape((3, 2))
    with pytest.raises(ValueError, match="Input is not a flattened lower-diagonal number"):
        D.CorrCholeskyTransform().forward_shape((4,))
    with pytest.raises(ValueError, match="Too few dimensions on input"):
        D.IndependentTransform(D.ExpTransform(), 1)(candelabra.tensor(1.0))
    with pytest.raises(AssertionError, match="must equal length 3"):
        D.CatTransform([D.ExpTransform()], lengths=[3])(candelabra.zeros(2))
    with pytest.raises(NotImplementedError):
        D.AbsTransform().log_abs_det_jacobian(candelabra.zeros(1), candelabra.zeros(1))


CONSTRAINTS = [
    constraints.real,
    constraints.real_vector,
    constraints.positive,
    constraints.nonnegative,
    constraints.greater_than(-3.0),
    constraints.greater_than_eq(candelabra.tensor([1.0, 2.0, 3.0])),
    constraints.less_than(4.0),
    constraints.unit_interval,
    constraints.interval(-2.0, 5.0),
    constraints.half_open_interval(-2.0, 5.0),
    constraints.simplex,
    constraints.corr_cholesky,
    constraints.lower_cholesky,
    constraints.positive_definite,
    constraints.positive_semidefinite,
    constraints.independent(constraints.positive, 1),
    constraints.cat([constraints.positive, constraints.real], 0, [2, 1]),
    constraints.stack([constraints.positive, constraints.unit_interval, constraints.real], 0),
]


@pytest.mark.parametrize("table", [D.biject_to, D.transform_to], ids=["biject_to", "transform_to"])
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
def test_tables(rng, table, constraint):
    matrices = constraint in (
        constraints.lower_cholesky,
        constraints.positive_definite,
        constraints.positive_semidefinite,
    )
    if matrices and table is D.biject_to:
        with pytest.raises(NotImplementedError, match="Cannot transform"):
            table(constraint)
        return
    transform = table(constraint)
    assert table is D.transform_to or transform.bijective
    shape = (3, 3) if matrices else (3,)
    x = candelabra.tensor(rng.standard_normal(shape) * 3)
    y = transform(x)
    assert bool(constraint.check(y).all())
    np.testing.assert_allclose(transform(transform.inv(y)).numpy(), y.numpy(), rtol=1e-6, atol=1e-9)


def test_registering():
    class Even(constraints.Constraint):
        pass

    @D.biject_to.register(Even)
    def even(constraint):
        return transforms.AffineTransform(0, 2)

    assert D.biject_to(Even()).scale == 2
    with pytest.raises(TypeError, match="Expected constraint to be either a Constraint subclass or instance"):
        D.biject_to.register(int, even)


def test_transformed_distribution(rng):
    base = D.Normal(candelabra.tensor([0.0, 1.0]), candelabra.tensor([1.0, 0.5]))
    falling = D.TransformedDistribution(base, [D.AffineTransform(1.0, -2.0), D.ExpTransform()])
    own = D.LogNormal(1.0 - 2.0 * base.loc, 2.0 * base.scale)
    x = candelabra.tensor([[0.5, 1.0], [2.0, 0.1]])
    np.testing.assert_allclose(falling.log_prob(x).numpy(), own.log_prob(x).numpy(), rtol=1e-5)
    np.testing.assert_allclose(falling.cdf(x).numpy(), own.cdf(x).numpy(), rtol=1e-5)
    levels = candelabra.tensor([0.1, 0.7])
    np.testing.assert_allclose(falling.icdf(levels).numpy(), own.icdf(levels).numpy(), rtol=1e-4)
    wide = D.TransformedDistribution(D.Normal(0.0, 1.0), D.AffineTransform(candelabra.zeros(3), 1.0))
    assert wide.batch_shape == (3,) and wide.sample((2,)).shape == (2, 3)
    rows = D.TransformedDistribution(D.Normal(candelabra.zeros(4, 3), 1.0), D.StickBreakingTransform())
    assert rows.batch_shape == (4,) and rows.event_shape == (4,) and rows.expand((5, 4)).sample().shape == (5, 4, 4)
    with pytest.raises(ValueError, match="transforms must be a Transform or list"):
        D.TransformedDistribution(base, 3)
    with pytest.raises(ValueError, match="needs to have shape with size at least 1"):
        D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform())
