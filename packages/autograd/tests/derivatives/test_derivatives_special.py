"""Test gradients at kinks, ties, zeros and infinities against PyTorch's values."""

from __future__ import annotations

import math

import numpy
import pytest

import candelabra
from candelabra import autograd, ops

INF, NAN = math.inf, math.nan


def gradient(function, *values, weight=None):
    leaves = [candelabra.tensor(value, dtype=candelabra.float64, requires_grad=True) for value in values]
    made = function(*leaves)
    made = made[0] if isinstance(made, tuple) else made
    if weight is not None:
        made = made * candelabra.tensor(weight, dtype=candelabra.float64)
    grads = autograd.grad(made.sum(), leaves)
    return [grad.tolist() for grad in grads] if len(grads) > 1 else grads[0].tolist()


def close(ours, expected):
    numpy.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "at", "expected"),
    [
        ("abs", [-1.0, 0.0, 2.0], [-1.0, 0.0, 1.0]),
        ("relu", [-1.0, 0.0, 2.0], [0.0, 0.0, 1.0]),
        ("sign", [-1.0, 0.0, 2.0], [0.0, 0.0, 0.0]),
        ("sqrt", [0.0, 4.0], [INF, 0.25]),
        ("log", [0.0, -1.0, 2.0], [INF, -1.0, 0.5]),
        ("reciprocal", [0.0, 2.0], [-INF, -0.25]),
        ("nan_to_num", [NAN, INF, -INF, 1.0], [0.0, 0.0, 0.0, 1.0]),
        ("tanh", [-INF, 0.0, INF], [0.0, 1.0, 0.0]),
        ("sigmoid", [-INF, 0.0, INF], [0.0, 0.25, 0.0]),
        ("floor", [-1.5, 0.0, 2.5], [0.0, 0.0, 0.0]),
        ("logit", [-1.0, 0.0, 0.5, 1.0, 2.0, NAN], [NAN, INF, 4.0, INF, NAN, NAN]),
        ("frac", [-1.5, 0.0, 2.5], [1.0, 1.0, 1.0]),
    ],
)
def test_unary(name, at, expected):
    close(gradient(getattr(candelabra, name), at), expected)


def test_ties():
    close(gradient(candelabra.maximum, [1.0, 2.0, 3.0], [2.0, 2.0, 2.0]), [[0.0, 0.5, 1.0], [1.0, 0.5, 0.0]])
    close(gradient(candelabra.minimum, [1.0, 2.0, 3.0], [2.0, 2.0, 2.0]), [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]])
    close(gradient(candelabra.maximum, [NAN, 1.0], [1.0, NAN]), [[1.0, 1.0], [1.0, 1.0]])
    close(gradient(candelabra.fmax, [1.0, 2.0, NAN], [2.0, 2.0, 2.0]), [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    close(gradient(candelabra.fmin, [1.0, 2.0, NAN], [2.0, 2.0, 2.0]), [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    rows = [[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]
    close(gradient(lambda x: x.amax(1), rows), [[0.0, 0.5, 0.5], [1 / 3] * 3])
    close(gradient(lambda x: x.amin(), [1.0, 3.0, 1.0]), [0.5, 0.0, 0.5])
    close(gradient(lambda x: x.max(1), rows), [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    close(gradient(lambda x: x.max(), rows), [[0.0, 0.5, 0.5], [0.0, 0.0, 0.0]])


def test_clamp():
    close(gradient(lambda x: x.clamp(-1, 1), [-2.0, -1.0, 0.0, 1.0, 2.0, NAN]), [0.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    close(
        gradient(candelabra.clamp, [0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 3.0, 2.0], [0.0, 1.0, 1.0, 3.0])[0],
        [1.0, 1.0, 0.0, 1.0],
    )


def test_powers():
    close(gradient(lambda x: x**0, [0.0, 2.0]), [0.0, 0.0])
    close(gradient(lambda x: x**2, [0.0, 3.0]), [0.0, 6.0])
    close(gradient(lambda x: 0**x, [0.0, 2.0]), [0.0, 0.0])
    close(gradient(lambda x: 2**x, [0.0, 3.0]), [math.log(2), 8 * math.log(2)])
    close(
        gradient(candelabra.pow, [0.0, 0.0, 0.0, 2.0], [0.0, 2.0, -1.0, 0.0]),
        [[0.0, 0.0, -INF, 0.0], [0.0, 0.0, -INF, math.log(2)]],
    )


def test_products_with_zeros():
    rows = [[1.0, 0.0, 3.0], [0.0, 0.0, 2.0], [1.0, 2.0, 3.0]]
    close(gradient(lambda x: x.prod(1), rows), [[0.0, 3.0, 0.0], [0.0, 0.0, 0.0], [6.0, 3.0, 2.0]])
    close(gradient(lambda x: x.prod(), [[1.0, 0.0], [3.0, 4.0]]), [[0.0, 12.0], [0.0, 0.0]])
    close(gradient(lambda x: x.cumprod(1), [[1.0, 0.0, 3.0]], weight=[1.0, 2.0, 3.0]), [[1.0, 11.0, 0.0]])


def test_variance_and_deviation():
    close(gradient(lambda x: x.std(1), [[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]]), [[0.0, 0.0, 0.0], [-0.5, 0.0, 0.5]])
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        assert math.isnan(gradient(lambda x: x.var(0), [[1.0]])[0][0])


@pytest.mark.parametrize(
    ("ord", "expected"),
    [
        (0, [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]),
        (1, [[0.0, 0.0], [1.0, 0.0], [1.0, -1.0]]),
        (2, [[0.0, 0.0], [1.0, 0.0], [2**-0.5, -(2**-0.5)]]),
        (INF, [[0.0, 0.0], [1.0, 0.0], [0.5, -0.5]]),
        (-INF, [[0.0, 0.0], [0.0, 0.0], [0.5, -0.5]]),
        (3, [[0.0, 0.0], [1.0, 0.0], [2 ** (-2 / 3), -(2 ** (-2 / 3))]]),
    ],
)
def test_norms_at_zero(ord, expected):
    close(gradient(lambda x: ops.linalg_vector_norm(x, ord, 1), [[0.0, 0.0], [1.0, 0.0], [3.0, -3.0]]), expected)


def test_where_does_not_let_nan_through():
    close(gradient(lambda x: candelabra.where(x > 0, x.clamp(min=1e-3).log(), x), [-1.0, 2.0]), [1.0, 0.5])


def test_logsumexp_and_softmax_of_infinities():
    close(
        gradient(lambda x: x.logsumexp(1), [[1.0, 1.0], [-INF, 1.0], [-INF, -INF]]),
        [[0.5, 0.5], [0.0, 1.0], [0.0, 0.0]],
    )
    close(gradient(lambda x: x.softmax(1), [[-INF, 1.0]], weight=[1.0, 2.0]), [[0.0, 0.0]])


def test_logaddexp_of_infinities():
    close(gradient(candelabra.logaddexp, [INF, -INF, 0.0], [1.0, 1.0, 0.0]), [[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])


def test_xlogy_at_zero():
    close(gradient(candelabra.xlogy, [0.0, 2.0], [0.0, 3.0])[0], [0.0, math.log(3)])


def test_embedding_leaves_the_padding_row_alone():
    weight = candelabra.ones(3, 2, requires_grad=True)
    ops.embedding(weight, candelabra.tensor([[0, 1], [1, 2]]), 1).sum().backward()
    assert weight.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]


def test_dropout_passes_what_it_kept():
    x = candelabra.ones(1000, requires_grad=True)
    made, mask = ops.native_dropout(x, 0.25)
    made.sum().backward()
    assert x.grad.tolist() == pytest.approx((mask.to(candelabra.float32) / 0.75).tolist())
    x.grad = None
    ops.native_dropout(x, 1.0)[0].sum().backward()
    assert x.grad.abs().sum().item() == 0.0


def test_running_statistics_are_moved_and_not_differentiated():
    x = candelabra.rand(4, 3, requires_grad=True)
    mean, variance = candelabra.zeros(3), candelabra.ones(3)
    made = ops.native_batch_norm(x, None, None, mean, variance, True, 0.5, 1e-5)[0]
    (made * made).sum().backward()
    numpy.testing.assert_allclose(mean.numpy(), x.detach().numpy().mean(0) / 2, rtol=1e-6)
    assert not mean.requires_grad
    assert x.grad is not None


def test_empty_tensors():
    x = candelabra.zeros(0, 3, requires_grad=True)
    for function in (
        lambda t: t.sum(),
        lambda t: t.exp().mean(0),
        lambda t: t.prod(0),
        lambda t: t @ candelabra.ones(3, 2),
        lambda t: t.cumsum(0),
    ):
        (grad,) = autograd.grad(function(x).sum(), x)
        assert grad.shape == (0, 3)


@pytest.mark.parametrize("dtype", [candelabra.float16, candelabra.bfloat16, candelabra.float32])
def test_gradients_keep_the_dtype(dtype):
    x = candelabra.ones(2, 3, dtype=dtype, requires_grad=True)
    for function in (
        lambda t: t.sum(dtype=candelabra.float64), lambda t: t.softmax(1, dtype=candelabra.float64), lambda t: t.mean(1),
        lambda t: t.to(candelabra.float64).exp(), lambda t: t * candelabra.tensor(2.0, dtype=candelabra.float64), lambda t: t.cumsum(0, dtype=candelabra.float64),
        lambda t: t.prod(1, dtype=candelabra.float64), lambda t: candelabra.cat([t, candelabra.ones(1, 3, dtype=candelabra.float64)]),
    ):  # fmt: skip
        (grad,) = autograd.grad(function(x).sum(), x)
        assert grad.dtype is dtype
        assert grad.shape == (2, 3)


def test_real_part_for_real_inputs_of_complex_operations():
    x = candelabra.ones(2, dtype=candelabra.float64, requires_grad=True)
    y = x * candelabra.tensor([1 + 2j, 3 - 1j], dtype=candelabra.complex128)
    (y.real * 2 + y.imag * 3).sum().backward()
    assert x.grad.tolist() == [8.0, 3.0]


@pytest.mark.parametrize("base", [-2.0, 2.0])
def test_complex_powers_of_real_numbers(base):
    z = candelabra.tensor(1 + 2j, dtype=candelabra.complex128, requires_grad=True)
    x = candelabra.tensor(base, dtype=candelabra.float64)
    (made,) = autograd.grad(x**z, z, candelabra.ones((), dtype=z.dtype))
    expected = (complex(base) ** (1 + 2j) * numpy.log(complex(base))).conjugate()
    assert made.item() == pytest.approx(expected)


def test_powers_of_zero():
    for base in (0.0, candelabra.tensor(0.0)):
        z = candelabra.tensor([1 + 2j, 2 + 0j, 0j], requires_grad=True)
        (made,) = autograd.grad(candelabra.pow(base, z), z, candelabra.ones(3, dtype=z.dtype))
        # As in PyTorch: 0 for real exponents that are not negative, NaN for all others.
        assert made.isnan().tolist() == [True, False, False]
        assert made[1:].tolist() == [0, 0]
        y = candelabra.tensor([2.0, 0.0], requires_grad=True)
        (made,) = autograd.grad(candelabra.pow(base, y).sum(), y)
        assert made.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 2.0, 2.0, 2.0, 3.0], [0, 1 / 3, 1 / 3, 1 / 3, 0]),
        ([-math.inf, -math.inf, -math.inf, 1.0], [1 / 3, 1 / 3, 1 / 3, 0]),
        ([math.nan, math.nan], [0.5, 0.5]),
        ([-0.0, 0.0], [0.5, 0.5]),
    ],
)
def test_ties_share_the_gradient_of_a_median_of_all(name, values, expected):
    x = candelabra.tensor(values, dtype=candelabra.float64, requires_grad=True)
    made = getattr(candelabra, name)(x)
    assert str(made.item()) == str(getattr(candelabra, name)(x.detach()).item())
    made.backward()
    assert x.grad.tolist() == pytest.approx(expected)
    x.grad = None
    # With a dimension, one element has the whole gradient.
    getattr(candelabra, name)(x, 0).values.backward()
    assert sorted(x.grad.tolist()) == [0.0] * (len(values) - 1) + [1.0]
