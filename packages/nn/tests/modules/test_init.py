"""Test initializers: distributions by the Kolmogorov-Smirnov test, others by their definition."""

import math

import numpy as np
import pytest
from nn_numerics import array, assert_close, tensor
from scipy import stats

import candelabra
from candelabra import nn
from candelabra.nn import init


def follows(values, distribution):
    return stats.kstest(np.asarray(values).ravel(), distribution.cdf).pvalue > 1e-4


def uniform(bound):
    return stats.uniform(-bound, 2 * bound)


WEIGHT = (64, 16, 3, 3)
FAN_IN, FAN_OUT = 16 * 9, 64 * 9


@pytest.mark.parametrize(
    ("fill", "distribution"),
    [
        (lambda t: init.uniform_(t, -2, 3), stats.uniform(-2, 5)),
        (lambda t: init.normal_(t, 1, 2), stats.norm(1, 2)),
        (lambda t: init.trunc_normal_(t, 0.5, 2, -1, 1.5), stats.truncnorm(-0.75, 0.5, 0.5, 2)),
        (init.xavier_uniform_, uniform(math.sqrt(6 / (FAN_IN + FAN_OUT)))),
        (lambda t: init.xavier_normal_(t, 2.0), stats.norm(0, 2 * math.sqrt(2 / (FAN_IN + FAN_OUT)))),
        (init.kaiming_uniform_, uniform(math.sqrt(6 / FAN_IN))),
        (lambda t: init.kaiming_uniform_(t, math.sqrt(5)), uniform(1 / math.sqrt(FAN_IN))),
        (lambda t: init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"), stats.norm(0, math.sqrt(2 / FAN_OUT))),
        (lambda t: init.kaiming_normal_(t, nonlinearity="linear"), stats.norm(0, math.sqrt(1 / FAN_IN))),
    ],
)
def test_distributions(fill, distribution):
    weight = candelabra.empty(WEIGHT)
    assert fill(weight) is weight
    assert follows(array(weight), distribution)


@pytest.mark.parametrize(
    ("make", "bound"),
    [
        (lambda: nn.Linear(100, 200), 1 / 10),
        (lambda: nn.Conv2d(16, 64, 3), 1 / 12),
        (lambda: nn.Conv2d(16, 64, 3, groups=4), 1 / 6),
        (lambda: nn.Conv1d(16, 256, 4), 1 / 8),
        (lambda: nn.ConvTranspose2d(64, 16, 3), 1 / 12),
        (lambda: nn.Bilinear(25, 30, 20), 1 / 5),
    ],
)
def test_defaults_of_layers(make, bound):
    layer = make()
    assert follows(array(layer.weight), uniform(bound))
    assert np.abs(array(layer.bias)).max() <= bound and follows(array(layer.bias), uniform(bound))


def test_other_defaults():
    assert follows(array(nn.Embedding(100, 50).weight), stats.norm)
    for layer in (nn.BatchNorm2d(3), nn.LayerNorm(3), nn.GroupNorm(1, 3)):
        assert (array(layer.weight) == 1).all() and (array(layer.bias) == 0).all()
    assert array(nn.PReLU().weight).tolist() == [0.25]


def test_gains():
    gains = {"linear": 1, "conv2d": 1, "sigmoid": 1, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}
    for name, gain in gains.items():
        assert init.calculate_gain(name) == gain
    assert init.calculate_gain("leaky_relu", 0.5) == math.sqrt(2 / 1.25)
    assert init.calculate_gain("leaky_relu") == math.sqrt(2 / (1 + 0.01**2))


def test_constants():
    assert (array(init.constant_(candelabra.empty(3), 2.5)) == 2.5).all()
    assert (array(init.ones_(candelabra.empty(3))) == 1).all() and (array(init.zeros_(candelabra.empty(3))) == 0).all()
    np.testing.assert_array_equal(array(init.eye_(candelabra.empty(3, 2))), np.eye(3, 2))


@pytest.mark.parametrize("groups", [1, 2])
def test_dirac(rng, groups):
    layer = nn.Conv2d(4, 4, 3, padding=1, groups=groups, bias=False).double()
    init.dirac_(layer.weight, groups)
    x = rng.standard_normal((1, 4, 5, 5))
    assert_close(layer(tensor(x)), x)
    weight = init.dirac_(candelabra.empty(2, 5, 3))
    assert weight.sum().item() == 2 and weight[1, 1, 1].item() == 1


@pytest.mark.parametrize("shape", [(5, 5), (3, 8), (8, 3), (1, 4), (4, 2, 3)])
def test_orthogonal(shape):
    weight = init.orthogonal_(candelabra.empty(shape, dtype=candelabra.float64), gain=2)
    matrix = array(weight).reshape(shape[0], -1) / 2
    if matrix.shape[0] > matrix.shape[1]:
        matrix = matrix.T
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(len(matrix)), atol=1e-12)
    assert init.orthogonal_(candelabra.empty(0, 3)).numel() == 0


def test_orthogonal_is_uniform():
    corners = [array(init.orthogonal_(candelabra.empty(2, 2)))[0] for _ in range(500)]
    angles = np.arctan2(*np.array(corners).T)
    assert follows(angles, stats.uniform(-math.pi, 2 * math.pi))


def test_sparse():
    weight = array(init.sparse_(candelabra.empty(50, 40), 0.3, std=2.0))
    assert ((weight == 0).sum(0) == 15).all() and follows(weight[weight != 0], stats.norm(0, 2))


def test_generator():
    first = init.normal_(candelabra.empty(5), generator=candelabra.Generator().manual_seed(3))
    second = init.normal_(candelabra.empty(5), generator=candelabra.Generator().manual_seed(3))
    np.testing.assert_array_equal(array(first), array(second))


def test_parameters_can_be_filled():
    weight = nn.Parameter(candelabra.zeros(4, 4))
    assert (
        init.xavier_uniform_(weight) is weight
        and weight.is_leaf
        and weight.requires_grad
        and weight.abs().sum().item() > 0
    )


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda: init.calculate_gain("x"), "Unsupported nonlinearity x"),
        (lambda: init.calculate_gain("leaky_relu", "x"), "negative_slope x not a valid number"),
        (lambda: init.xavier_uniform_(candelabra.ones(3)), "Fan in and fan out can not be computed"),
        (lambda: init.kaiming_normal_(candelabra.ones(3, 3), mode="x"), "Mode x not supported"),
        (lambda: init.eye_(candelabra.ones(3)), "Only tensors with 2 dimensions are supported"),
        (lambda: init.sparse_(candelabra.ones(3), 0.5), "Only tensors with 2 dimensions are supported"),
        (lambda: init.dirac_(candelabra.ones(3, 3)), "Only tensors with 3, 4, or 5 dimensions are supported"),
        (lambda: init.dirac_(candelabra.ones(3, 3, 3), 2), "dim 0 must be divisible by groups"),
        (lambda: init.orthogonal_(candelabra.ones(3)), "Only tensors with 2 or more dimensions are supported"),
    ],
)
def test_errors(act, text):
    with pytest.raises(ValueError) as caught:
        act()
    assert text in str(caught.value)


def test_warnings():
    with pytest.warns(UserWarning, match="zero-element tensors is a no-op"):
        init.kaiming_uniform_(candelabra.empty(0, 3))
    with pytest.warns(UserWarning, match="mean is more than 2 std from"):
        init.trunc_normal_(candelabra.empty(3), mean=10)
    with pytest.warns(FutureWarning, match="deprecated in favor of `nn.init.uniform_`"):
        init.uniform(candelabra.empty(3))
