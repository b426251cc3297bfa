"""Test activations against NumPy and SciPy."""

import warnings

import numpy as np
import pytest
from nn_numerics import array, assert_close, tensor
from scipy import special

import candelabra
from candelabra import nn
from candelabra.nn import functional as F

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def softplus(x, beta=1.0):
    return np.logaddexp(0, beta * x) / beta


REFERENCES = {
    nn.ReLU: lambda x: np.maximum(x, 0),
    nn.ReLU6: lambda x: np.clip(x, 0, 6),
    nn.Hardtanh: lambda x: np.clip(x, -1, 1),
    nn.Sigmoid: special.expit,
    nn.Hardsigmoid: lambda x: np.clip(x + 3, 0, 6) / 6,
    nn.Tanh: np.tanh,
    nn.SiLU: lambda x: x * special.expit(x),
    nn.Mish: lambda x: x * np.tanh(softplus(x)),
    nn.Hardswish: lambda x: x * np.clip(x + 3, 0, 6) / 6,
    nn.ELU: lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    nn.CELU: lambda x: np.maximum(x, 0) + np.minimum(np.expm1(np.minimum(x, 0)), 0),
    nn.SELU: lambda x: SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(np.minimum(x, 0))),
    nn.GELU: lambda x: x * special.ndtr(x),
    nn.Hardshrink: lambda x: np.where(np.abs(x) <= 0.5, 0, x),
    nn.LeakyReLU: lambda x: np.where(x > 0, x, 0.01 * x),
    nn.LogSigmoid: special.log_expit,
    nn.Softplus: lambda x: np.where(x > 20, x, softplus(x)),
    nn.Softshrink: lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    nn.Softsign: lambda x: x / (1 + np.abs(x)),
    nn.Tanhshrink: lambda x: x - np.tanh(x),
}
POINTS = np.concatenate([np.linspace(-8, 8, 97), [0.0, -0.5, 0.5, 3, -3, 6, 1, -1, 25, -25, 700, -700]])


@pytest.mark.parametrize("layer", REFERENCES, ids=lambda layer: layer.__name__)
def test_values(layer):
    assert_close(layer()(tensor(POINTS)), REFERENCES[layer](POINTS), atol=1e-11)
    assert np.isnan(array(layer()(tensor([np.nan])))).all()


@pytest.mark.parametrize(
    "layer",
    [
        nn.ReLU,
        nn.ReLU6,
        nn.Hardtanh,
        nn.SiLU,
        nn.Mish,
        nn.Hardswish,
        nn.Hardsigmoid,
        nn.ELU,
        nn.CELU,
        nn.SELU,
        nn.LeakyReLU,
    ],
    ids=lambda layer: layer.__name__,
)
def test_in_place(layer):
    x = tensor(POINTS)
    assert layer(inplace=True)(x) is x
    assert_close(x, REFERENCES[layer](POINTS), atol=1e-11)


def test_options():
    x = np.linspace(-3, 3, 13)
    assert_close(F.elu(tensor(x), 0.3), np.where(x > 0, x, 0.3 * np.expm1(x)))
    assert_close(F.celu(tensor(x), 0.3), np.where(x > 0, x, 0.3 * np.expm1(x / 0.3)))
    assert_close(F.leaky_relu(tensor(x), 0.2), np.where(x > 0, x, 0.2 * x))
    assert_close(F.softplus(tensor(x), 2.0, 3.0), np.where(2 * x > 3, x, softplus(x, 2.0)))
    assert_close(F.threshold(tensor(x), 0.5, 9.0), np.where(x > 0.5, x, 9))
    assert_close(F.hardtanh(tensor(x), -0.5, 2.0), np.clip(x, -0.5, 2))
    assert_close(F.hardshrink(tensor(x), 1.0), np.where(np.abs(x) <= 1, 0, x))
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    assert_close(F.gelu(tensor(x), approximate="tanh"), 0.5 * x * (1 + np.tanh(inner)))
    assert_close(F.rrelu(tensor(x), 0.2, 0.4), np.where(x >= 0, x, 0.3 * x))
    y = x.copy()
    assert_close(F.threshold_(tensor(y), 0.5, 9.0), np.where(x > 0.5, x, 9))
    assert F.relu_(t := tensor(x)) is t and F.selu_.__name__ == "selu_"


def test_rrelu_draws_slopes():
    x = -candelabra.ones(20000)
    slopes = -array(F.rrelu(x, 0.1, 0.5, training=True))
    assert slopes.min() >= 0.1 and slopes.max() <= 0.5 and abs(slopes.mean() - 0.3) < 0.01
    assert_close(F.rrelu(candelabra.ones(3), training=True), np.ones(3))


def test_glu(rng):
    x = rng.standard_normal((4, 6))
    assert_close(nn.GLU()(tensor(x)), x[:, :3] * special.expit(x[:, 3:]))
    assert_close(F.glu(tensor(x), 0), x[:2] * special.expit(x[2:]))
    with pytest.raises(RuntimeError, match="Halving dimension must be even, but dimension 0 is size 3"):
        F.glu(candelabra.ones(3))
    with pytest.raises(IndexError, match="Dimension out of range"):
        F.glu(candelabra.ones(4), 2)


def test_prelu(rng):
    x, w = rng.standard_normal((4, 3, 2)), rng.standard_normal(3)
    assert_close(F.prelu(tensor(x), tensor(w)), np.where(x > 0, x, w[:, None] * x))
    assert_close(F.prelu(tensor(x), tensor([0.5])), np.where(x > 0, x, 0.5 * x))
    assert_close(F.prelu(tensor(-2.0), tensor([0.5])), np.float32(-1.0))
    assert_close(nn.PReLU(init=0.5)(tensor(x, candelabra.float32)), np.where(x > 0, x, 0.5 * x), rtol=1e-6)
    with pytest.raises(RuntimeError, match="Found parameter numbers = 2 and channel size = 3"):
        F.prelu(tensor(x), tensor(w[:2]))


def test_softmax_family(rng):
    x = rng.standard_normal((3, 4, 5))
    for dim in (0, 1, -1):
        assert_close(F.softmax(tensor(x), dim), special.softmax(x, dim))
        assert_close(F.log_softmax(tensor(x), dim), special.log_softmax(x, dim))
        assert_close(F.softmin(tensor(x), dim), special.softmax(-x, dim))
        assert_close(nn.Softmax(dim)(tensor(x)), special.softmax(x, dim))
        assert_close(nn.LogSoftmax(dim)(tensor(x)), special.log_softmax(x, dim))
        assert_close(nn.Softmin(dim)(tensor(x)), special.softmax(-x, dim))
    assert_close(nn.Softmax2d()(tensor(x)), special.softmax(x, 0))
    assert F.softmax(candelabra.zeros(2), 0, dtype=candelabra.float64).dtype == candelabra.float64
    with pytest.raises(ValueError, match="expected input to be 3D or 4D, got 2D"):
        nn.Softmax2d()(candelabra.ones(2, 2))


@pytest.mark.parametrize(("shape", "dim"), [((3,), 0), ((3, 4), 1), ((3, 4, 5), 0), ((2, 3, 4, 5), 1)])
def test_implicit_dim_warns(rng, shape, dim):
    x = rng.standard_normal(shape)
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax has been deprecated"):
        assert_close(nn.Softmax()(tensor(x)), special.softmax(x, dim))
    with pytest.warns(UserWarning, match="Implicit dimension choice for log_softmax"):
        F.log_softmax(tensor(x))
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmin"):
        F.softmin(tensor(x))


def test_gumbel_softmax():
    logits = tensor(np.log([0.1, 0.2, 0.7])).expand(20000, 3)
    hard = F.gumbel_softmax(logits, tau=0.5, hard=True)
    assert set(np.unique(np.round(array(hard), 6))) == {0.0, 1.0}
    np.testing.assert_allclose(array(hard).mean(0), [0.1, 0.2, 0.7], atol=0.02)
    np.testing.assert_allclose(array(F.gumbel_softmax(logits)).sum(-1), 1)


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: F.celu(candelabra.ones(1), 0.0), RuntimeError, "alpha cannot be 0 for CELU"),
        (
            lambda: F.rrelu(candelabra.ones(1), 2.0, 1.0),
            RuntimeError,
            "Lower bound should be less than or equal to the upper bound",
        ),
        (lambda: F.softshrink(candelabra.ones(1), -1.0), RuntimeError, "lambda must be greater or equal to 0"),
        (lambda: F.hardtanh(candelabra.ones(1), 1.0, -1.0), ValueError, "min_val cannot be greater than max_val"),
        (lambda: nn.Hardtanh(1.0, -1.0), AssertionError, "max_val must be larger than min_val"),
    ],
)
def test_errors(act, error, text):
    with pytest.raises(error) as caught:
        act()
    assert text in str(caught.value)


def test_half_precision():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype in (candelabra.float16, candelabra.bfloat16):
            x = tensor([-2.0, 0.5, 3.0]).to(dtype)
            for layer in (nn.ReLU(), nn.GELU(), nn.SiLU(), nn.Sigmoid(), nn.Hardswish(), nn.Softmax(0)):
                result = layer(x)
                assert result.dtype == dtype
                expected = layer(x.float())
                np.testing.assert_allclose(array(result.float()), array(expected), rtol=2e-2, atol=1e-2)
