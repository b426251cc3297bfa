"""Test linear and convolution layers against NumPy and SciPy."""

import itertools

import numpy as np
import pytest
from nn_numerics import array, assert_close, tensor
from scipy import signal

import candelabra
from candelabra import nn
from candelabra.nn import functional as F


def convolved(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate (N, C, spatial...) with scipy.signal.correlate, one pair of channels at a
    time.
    """
    dims = x.ndim - 2
    stride, padding, dilation = (np.broadcast_to(v, dims) for v in (stride, padding, dilation))
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    spread = np.zeros((*w.shape[:2], *(d * (k - 1) + 1 for d, k in zip(dilation, w.shape[2:], strict=True))))
    spread[(slice(None), slice(None), *(slice(None, None, d) for d in dilation))] = w
    into, outof = x.shape[1] // groups, w.shape[0] // groups
    planes = [
        [
            sum(signal.correlate(x[n, (o // outof) * into + i], spread[o, i], "valid", "direct") for i in range(into))
            for o in range(w.shape[0])
        ]
        for n in range(x.shape[0])
    ]
    result = np.array(planes)[(slice(None), slice(None), *(slice(None, None, s) for s in stride))]
    return result if b is None else result + b.reshape(-1, *[1] * dims)


def transposed(x, w, b=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Compute a transposed convolution by definition: each input element adds a kernel to the
    output.
    """
    dims = x.ndim - 2
    stride, padding, output_padding, dilation = (
        np.broadcast_to(v, dims) for v in (stride, padding, output_padding, dilation)
    )
    full = [
        (x.shape[2 + i] - 1) * stride[i] + dilation[i] * (w.shape[2 + i] - 1) + 1 + output_padding[i]
        for i in range(dims)
    ]
    into, outof = x.shape[1] // groups, w.shape[1]
    result = np.zeros((x.shape[0], outof * groups, *full))
    for place in itertools.product(*(range(n) for n in x.shape[2:])):
        for tap in itertools.product(*(range(n) for n in w.shape[2:])):
            at = tuple(p * s + t * d for p, s, t, d in zip(place, stride, tap, dilation, strict=True))
            for g in range(groups):
                rows = slice(g * into, (g + 1) * into)
                result[(slice(None), slice(g * outof, (g + 1) * outof), *at)] += (
                    x[(slice(None), rows, *place)] @ w[(rows, slice(None), *tap)]
                )
    for i, p in enumerate(padding):
        result = np.take(result, range(p, result.shape[2 + i] - p), axis=2 + i)
    return result if b is None else result + b.reshape(-1, *[1] * dims)


@pytest.mark.parametrize("leading", [(), (5,), (2, 3)])
def test_linear(rng, leading):
    x, w, b = rng.standard_normal((*leading, 4)), rng.standard_normal((3, 4)), rng.standard_normal(3)
    assert_close(F.linear(tensor(x), tensor(w), tensor(b)), x @ w.T + b)
    assert_close(F.linear(tensor(x), tensor(w)), x @ w.T)
    layer = nn.Linear(4, 3).double()
    assert_close(layer(tensor(x)), x @ array(layer.weight).T + array(layer.bias))


def test_bilinear(rng):
    x, y, w, b = (rng.standard_normal(s) for s in ((2, 7, 3), (2, 7, 4), (5, 3, 4), (5,)))
    expected = np.einsum("abi,kij,abj->abk", x, w, y) + b
    assert_close(F.bilinear(tensor(x), tensor(y), tensor(w), tensor(b)), expected)
    layer = nn.Bilinear(3, 4, 5, bias=False).double()
    assert_close(layer(tensor(x), tensor(y)), np.einsum("abi,kij,abj->abk", x, array(layer.weight), y))
    assert nn.Identity(1, a=2)(3) == 3


OPTIONS = [
    {},
    {"stride": 2},
    {"padding": 1},
    {"padding": 2, "dilation": 2},
    {"stride": 2, "padding": 1, "groups": 2},
    {"groups": 4},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(
    ("function", "layer", "spatial", "kernel"),
    [(F.conv1d, nn.Conv1d, (9,), (4,)), (F.conv2d, nn.Conv2d, (9, 7), (3, 2))],
)
def test_convolution(rng, function, layer, spatial, kernel, options):
    groups = options.get("groups", 1)
    x, w, b = (
        rng.standard_normal((2, 4, *spatial)),
        rng.standard_normal((8, 4 // groups, *kernel)),
        rng.standard_normal(8),
    )
    expected = convolved(x, w, b, **options)
    assert_close(function(tensor(x), tensor(w), tensor(b), **options), expected)
    assert_close(function(tensor(x[0]), tensor(w), **options), convolved(x[:1], w, **options)[0])
    made = layer(4, 8, kernel, **options).double()
    made.load_state_dict({"weight": tensor(w), "bias": tensor(b)})
    assert_close(made(tensor(x)), expected)


def test_convolution_of_pairs(rng):
    x, w = rng.standard_normal((1, 2, 8, 9)), rng.standard_normal((3, 2, 3, 2))
    options = {"stride": (2, 1), "padding": (0, 1), "dilation": (1, 2)}
    assert_close(F.conv2d(tensor(x), tensor(w), **options), convolved(x, w, **options))


@pytest.mark.parametrize("kernel", [3, 4])
@pytest.mark.parametrize("dilation", [1, 2])
def test_same_padding(rng, kernel, dilation):
    x, w = rng.standard_normal((1, 1, 9)), rng.standard_normal((1, 1, kernel))
    total = dilation * (kernel - 1)
    padded = np.pad(x, [(0, 0), (0, 0), (total // 2, total - total // 2)])
    result = F.conv1d(tensor(x), tensor(w), padding="same", dilation=dilation)
    assert_close(result, convolved(padded, w, dilation=dilation))
    assert result.shape == (1, 1, 9)
    assert_close(F.conv1d(tensor(x), tensor(w), padding="valid", dilation=dilation), convolved(x, w, dilation=dilation))


@pytest.mark.parametrize(("mode", "numpy_mode"), [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
@pytest.mark.parametrize("padding", [1, (2, 1), "same"])
def test_padding_modes(rng, mode, numpy_mode, padding):
    layer = nn.Conv2d(2, 3, (3, 4), padding=padding, padding_mode=mode).double()
    x = rng.standard_normal((2, 2, 6, 7))
    sides = ((1, 1), (1, 2)) if padding == "same" else ((1, 1), (1, 1)) if padding == 1 else ((2, 2), (1, 1))
    padded = np.pad(x, [(0, 0), (0, 0), *sides], mode=numpy_mode)
    assert_close(layer(tensor(x)), convolved(padded, array(layer.weight), array(layer.bias)))
    line = nn.Conv1d(2, 3, 3, padding=1, padding_mode=mode).double()
    padded = np.pad(x[:, :, 0], [(0, 0), (0, 0), (1, 1)], mode=numpy_mode)
    assert_close(line(tensor(x[:, :, 0])), convolved(padded, array(line.weight), array(line.bias)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2},
        {"stride": 3, "output_padding": 2},
        {"padding": 1},
        {"dilation": 2},
        {"stride": 2, "groups": 2, "padding": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("function", "layer", "spatial", "kernel"),
    [(F.conv_transpose1d, nn.ConvTranspose1d, (5,), (3,)), (F.conv_transpose2d, nn.ConvTranspose2d, (5, 4), (3, 2))],
)
def test_transposed_convolution(rng, function, layer, spatial, kernel, options):
    groups = options.get("groups", 1)
    x, w, b = (
        rng.standard_normal((2, 4, *spatial)),
        rng.standard_normal((4, 6 // groups, *kernel)),
        rng.standard_normal(6),
    )
    expected = transposed(x, w, b, **options)
    assert_close(function(tensor(x), tensor(w), tensor(b), **options), expected)
    assert_close(function(tensor(x[0]), tensor(w), **options), transposed(x[:1], w, **options)[0])
    made = layer(4, 6, kernel, **options).double()
    made.load_state_dict({"weight": tensor(w), "bias": tensor(b)})
    assert_close(made(tensor(x)), expected)


def test_output_size_of_transposed():
    layer = nn.ConvTranspose2d(1, 1, 3, stride=2)
    x = candelabra.ones(1, 1, 4, 4)
    assert layer(x).shape == (1, 1, 9, 9)
    assert layer(x, output_size=(10, 9)).shape == (1, 1, 10, 9)
    assert layer(x, output_size=(1, 1, 10, 10)).shape == (1, 1, 10, 10)
    with pytest.raises(ValueError, match="requested an output size of"):
        layer(x, output_size=(12, 9))
    with pytest.raises(ValueError, match="output_size must have 2 or 4 elements"):
        layer(x, output_size=(9,))


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: F.linear(candelabra.ones(2, 3), candelabra.ones(5, 4)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
        (lambda: F.bilinear(candelabra.ones(2, 3), candelabra.ones(3, 4), candelabra.ones(5, 3, 4)), RuntimeError, "do not match"),
        (lambda: F.bilinear(candelabra.ones(2, 3), candelabra.ones(2, 5), candelabra.ones(5, 3, 4)), RuntimeError, "got 5 but expected 4"),
        (lambda: F.bilinear(candelabra.ones(2, 3), candelabra.ones(2, 5), candelabra.ones(5, 3)), RuntimeError, "3 dimensions"),
        (lambda: F.conv2d(candelabra.ones(3, 3), candelabra.ones(1, 1, 2, 2)), RuntimeError, "Expected 3D (unbatched) or 4D (batched) input to conv2d"),
        (lambda: F.conv2d(candelabra.ones(1, 3, 4, 4), candelabra.ones(1, 2, 2, 2)), RuntimeError, "to have 2 channels, but got 3 channels"),
        (lambda: F.conv1d(candelabra.ones(1, 1, 4), candelabra.ones(1, 1, 2), stride=(1, 1)), RuntimeError, "expected stride to be a single integer"),
        (lambda: F.conv1d(candelabra.ones(1, 1, 4), candelabra.ones(1, 1, 2), padding="x"), RuntimeError, "Invalid padding string"),
        (lambda: F.conv1d(candelabra.ones(1, 1, 4), candelabra.ones(1, 1, 2), stride=2, padding="same"), RuntimeError, "strided"),
        (lambda: F.conv1d(candelabra.ones(1, 1, 2), candelabra.ones(1, 1, 3)), RuntimeError, "Kernel size can't be greater than actual input size"),
        (lambda: F.conv_transpose2d(candelabra.ones(1, 3, 3, 3), candelabra.ones(4, 3, 3, 3)), RuntimeError, "to have 4 channels, but got 3"),
        (lambda: F.conv_transpose1d(candelabra.ones(1, 1, 3), candelabra.ones(1, 1, 3), output_padding=1), RuntimeError, "output padding must be smaller"),
        (lambda: F.conv_transpose1d(candelabra.ones(1, 1, 3), candelabra.ones(1, 1, 3), candelabra.ones(2)), RuntimeError, "expected bias to be 1-dimensional with 1"),
        (lambda: F.conv_transpose1d(candelabra.ones(1, 1, 3), candelabra.ones(1, 1)), RuntimeError, "expected a weight of 3 dimensions"),
        (lambda: F.conv_transpose1d(candelabra.ones(1, 1, 3), candelabra.ones(1, 1, 1), padding=5), RuntimeError, "Output size is too small"),
    ],
)  # fmt: skip
def test_errors(act, error, text):
    with pytest.raises(error) as caught:
        act()
    assert text in str(caught.value)
