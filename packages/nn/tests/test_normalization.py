"""Test normalization against NumPy."""

import numpy as np
import pytest
from nn_numerics import array, assert_close, tensor

import candelabra
from candelabra import nn
from candelabra.nn import functional as F


def normalized(x, axes, weight=None, bias=None, eps=1e-5, shape=None):
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    if weight is not None:
        y = y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


SHAPES = [(6, 4), (6, 4, 5), (6, 4, 5, 3)]


@pytest.mark.parametrize("shape", SHAPES)
def test_batch_norm(rng, shape):
    x, weight, bias, mean = rng.standard_normal(shape), *(rng.standard_normal(4) for _ in range(3))
    var = rng.random(4)
    axes = (0, *range(2, x.ndim))
    channel = (1, 4, *[1] * (x.ndim - 2))
    expected = normalized(x, axes, weight, bias, shape=channel)
    assert_close(F.batch_norm(tensor(x), None, None, tensor(weight), tensor(bias), training=True), expected)
    running_mean, running_var = tensor(mean), tensor(var)
    assert_close(F.batch_norm(tensor(x), running_mean, running_var, training=True, momentum=0.3), normalized(x, axes))
    assert_close(running_mean, 0.7 * mean + 0.3 * x.mean(axes))
    assert_close(running_var, 0.7 * var + 0.3 * x.var(axes, ddof=1))
    fixed = (x - mean.reshape(channel)) / np.sqrt(var.reshape(channel) + 1e-5)
    assert_close(F.batch_norm(tensor(x), tensor(mean), tensor(var)), fixed)


@pytest.mark.parametrize(
    ("layer", "shape"), [(nn.BatchNorm1d, (6, 4)), (nn.BatchNorm1d, (6, 4, 5)), (nn.BatchNorm2d, (6, 4, 5, 3))]
)
def test_batch_norm_layer(rng, layer, shape):
    made = layer(4).double()
    batches = [rng.standard_normal(shape) * 3 + 1 for _ in range(3)]
    axes = (0, *range(2, len(shape)))
    mean, var = np.zeros(4), np.ones(4)
    for x in batches:
        assert_close(made(tensor(x)), normalized(x, axes))
        mean, var = 0.9 * mean + 0.1 * x.mean(axes), 0.9 * var + 0.1 * x.var(axes, ddof=1)
    assert int(made.num_batches_tracked) == 3
    channel = (1, 4, *[1] * (len(shape) - 2))
    assert_close(made.eval()(tensor(x)), (x - mean.reshape(channel)) / np.sqrt(var.reshape(channel) + 1e-5))
    assert int(made.num_batches_tracked) == 3

    average = layer(4, momentum=None).double()
    for x in batches:
        average(tensor(x))
    assert_close(average.running_mean, np.mean([x.mean(axes) for x in batches], 0))
    average.reset_running_stats()
    assert_close(average.running_var, np.ones(4))

    free = layer(4, track_running_stats=False, affine=False).double().eval()
    assert_close(free(tensor(x)), normalized(x, axes))
    assert free.running_mean is None and free.weight is None and not free.state_dict()
    assert layer(4, bias=False).bias is None


@pytest.mark.parametrize("shape", SHAPES)
def test_layer_and_group_norm(rng, shape):
    x = rng.standard_normal(shape)
    weight, bias = rng.standard_normal(shape[1:]), rng.standard_normal(shape[1:])
    axes = tuple(range(1, x.ndim))
    assert_close(
        F.layer_norm(tensor(x), shape[1:], tensor(weight), tensor(bias)), normalized(x, axes, weight, bias, shape=shape[1:])
    )  # fmt: skip
    assert_close(nn.LayerNorm(shape[-1]).double()(tensor(x)), normalized(x, (-1,)))
    assert_close(F.layer_norm(tensor(x), shape[-1:], eps=0.1), normalized(x, (-1,), eps=0.1))
    w, b = rng.standard_normal(4), rng.standard_normal(4)
    groups = x.reshape(6, 2, -1)
    expected = normalized(groups, (2,)).reshape(shape)
    channel = (1, 4, *[1] * (x.ndim - 2))
    assert_close(F.group_norm(tensor(x), 2, tensor(w), tensor(b)), expected * w.reshape(channel) + b.reshape(channel))
    assert_close(nn.GroupNorm(2, 4).double()(tensor(x)), expected)


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_instance_norm(rng, shape):
    x, w, b, mean = rng.standard_normal(shape), *(rng.standard_normal(4) for _ in range(3))
    var = rng.random(4)
    axes = tuple(range(2, x.ndim))
    channel = (1, 4, *[1] * (x.ndim - 2))
    assert_close(F.instance_norm(tensor(x), weight=tensor(w), bias=tensor(b)), normalized(x, axes, w, b, shape=channel))
    running_mean, running_var = tensor(mean), tensor(var)
    F.instance_norm(tensor(x), running_mean, running_var, momentum=0.3)
    assert_close(running_mean, 0.7 * mean + 0.3 * x.mean(axes).mean(0))
    assert_close(running_var, 0.7 * var + 0.3 * x.var(axes, ddof=1).mean(0))
    fixed = (x - mean.reshape(channel)) / np.sqrt(var.reshape(channel) + 1e-5)
    assert_close(F.instance_norm(tensor(x), tensor(mean), tensor(var), use_input_stats=False), fixed)
    layer = {1: nn.InstanceNorm1d, 2: nn.InstanceNorm2d}[x.ndim - 2]
    assert_close(layer(4)(tensor(x)), normalized(x, axes))
    assert_close(layer(4)(tensor(x[0])), normalized(x[:1], axes)[0])
    assert_close(layer(4).eval()(tensor(x)), normalized(x, axes))
    tracked = layer(4, affine=True, track_running_stats=True).double().eval()
    assert_close(tracked(tensor(x)), x / np.sqrt(1 + 1e-5))
    with pytest.warns(UserWarning, match="does not match num_features"):
        layer(3)(tensor(x))
    with pytest.raises(ValueError, match=r"match num_features \(3\), but got: 4"):
        layer(3, affine=True)(tensor(x))


def test_rms_norm(rng):
    x, w = rng.standard_normal((5, 3, 4)), rng.standard_normal((3, 4))
    eps = np.finfo(np.float64).eps
    expected = x / np.sqrt((x**2).mean((1, 2), keepdims=True) + eps) * w
    assert_close(F.rms_norm(tensor(x), (3, 4), tensor(w)), expected)
    assert_close(nn.RMSNorm(4, eps=0.1).double()(tensor(x)), x / np.sqrt((x**2).mean(-1, keepdims=True) + 0.1))
    half = F.rms_norm(tensor(x).half(), (4,))
    assert half.dtype == candelabra.float16
    np.testing.assert_allclose(array(half.float()), x / np.sqrt((x**2).mean(-1, keepdims=True)), atol=2e-3)


def test_local_response_norm(rng):
    x = rng.standard_normal((2, 5, 3))
    squares = np.pad(x**2, [(0, 0), (1, 1), (0, 0)])
    mean = (squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]) / 3
    assert_close(nn.LocalResponseNorm(3, alpha=0.5, k=2.0)(tensor(x)), x / (2 + 0.5 * mean) ** 0.75)


def test_normalize(rng):
    x = rng.standard_normal((3, 4))
    assert_close(F.normalize(tensor(x)), x / np.linalg.norm(x, axis=1, keepdims=True))
    assert_close(F.normalize(tensor(x), p=1.0, dim=0), x / np.abs(x).sum(0))
    assert_close(F.normalize(tensor(np.zeros(3)), dim=0), np.zeros(3))
    out = candelabra.empty(3, 4, dtype=candelabra.float64)
    assert F.normalize(tensor(x), out=out) is out and abs(out[0].square().sum().item() - 1) < 1e-12


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: nn.BatchNorm2d(3)(candelabra.ones(2, 3)), ValueError, "expected 4D input (got 2D input)"),
        (lambda: nn.BatchNorm1d(3)(candelabra.ones(2, 3, 4, 4)), ValueError, "expected 2D or 3D input (got 4D input)"),
        (
            lambda: nn.BatchNorm1d(3)(candelabra.ones(1, 3)),
            ValueError,
            "Expected more than 1 value per channel when training",
        ),
        (lambda: nn.InstanceNorm2d(3)(candelabra.ones(4, 4)), ValueError, "expected 3D or 4D input (got 2D input)"),
        (
            lambda: nn.InstanceNorm1d(3)(candelabra.ones(3, 3, 1)),
            ValueError,
            "Expected more than 1 spatial element when training",
        ),
        (
            lambda: F.batch_norm(candelabra.ones(2, 3), None, None),
            RuntimeError,
            "running_mean must be defined in evaluation mode",
        ),
        (lambda: F.batch_norm(candelabra.ones(3), None, None, training=True), ValueError, "at least 2 dimensions"),
        (
            lambda: F.layer_norm(candelabra.ones(4), (3,)),
            RuntimeError,
            "Given normalized_shape=[3], expected input with shape [*, 3]",
        ),
        (
            lambda: F.rms_norm(candelabra.ones(4), (3,)),
            RuntimeError,
            "Given normalized_shape=[3], expected input with shape [*, 3]",
        ),
        (lambda: F.group_norm(candelabra.ones(2, 6, 2), 4), RuntimeError, "divisible by num_groups"),
        (
            lambda: F.group_norm(candelabra.ones(2), 1),
            RuntimeError,
            "Expected at least 2 dimensions for input tensor but received 1",
        ),
        (lambda: F.local_response_norm(candelabra.ones(2, 3), 2), ValueError, "expected a 3D or higher input"),
    ],
)
def test_errors(act, error, text):
    with pytest.raises(error) as caught:
        act()
    assert text in str(caught.value)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_dimensions_without_a_batch(dims):
    layer = getattr(nn, f"InstanceNorm{dims}d")(4)
    assert layer._get_no_batch_dim() == dims + 1
    assert layer(candelabra.ones([4] * (dims + 1))).ndim == dims + 1
