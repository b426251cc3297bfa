"""Test pooling against NumPy, window by window."""

import itertools
import math

import numpy as np
import pytest
from nn_numerics import array, assert_close, tensor

import candelabra
from candelabra import nn
from candelabra.nn import functional as F


def windows(size, kernel, stride, padding, dilation=1, ceil_mode=False):
    """Return the positions of each window along one dimension, including those in the padding."""
    span = dilation * (kernel - 1) + 1
    count = (size + 2 * padding - span) / stride
    count = (math.ceil(count) if ceil_mode else math.floor(count)) + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1  # a window must start in the input or in the leading padding
    return [[i * stride - padding + j * dilation for j in range(kernel)] for i in range(count)]


def pooled(x, kernel, stride, padding, reduce, dilation=1, ceil_mode=False):
    """Apply `reduce` to (positions in the plane, padded sizes) of all windows over the last
    dimensions.
    """
    dims = len(kernel)
    axes = [windows(x.shape[i - dims], kernel[i], stride[i], padding[i], dilation, ceil_mode) for i in range(dims)]
    planes = x.reshape(-1, *x.shape[x.ndim - dims :])
    out = [[reduce(plane, list(itertools.product(*places))) for places in itertools.product(*axes)] for plane in planes]
    return np.array(out).reshape(*x.shape[: x.ndim - dims], *(len(axis) for axis in axes))


def inside(plane, places):
    return [p for p in places if all(0 <= i < n for i, n in zip(p, plane.shape, strict=True))]


OPTIONS = [{}, {"stride": 1}, {"padding": 1}, {"ceil_mode": True}, {"stride": 2, "padding": 1, "ceil_mode": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("dims", "shape"), [(1, (2, 3, 9)), (1, (3, 8)), (2, (2, 3, 9, 8)), (2, (3, 7, 8))])
def test_maximum(rng, dims, shape, options):
    x = rng.standard_normal(shape)
    stride, padding, ceil = options.get("stride", 3), options.get("padding", 0), options.get("ceil_mode", False)
    arguments = ((3,) * dims, (stride,) * dims, (padding,) * dims)
    function = getattr(F, f"max_pool{dims}d")
    expected = pooled(x, *arguments, lambda plane, places: max(plane[p] for p in inside(plane, places)), 1, ceil)
    assert_close(function(tensor(x), 3, **options), expected)
    assert_close(getattr(nn, f"MaxPool{dims}d")(3, **options)(tensor(x)), expected)
    where = pooled(
        x, *arguments,
        lambda plane, places: np.ravel_multi_index(max(inside(plane, places), key=lambda p: plane[p]), plane.shape), 1, ceil,
    )  # fmt: skip
    values, indices = function(tensor(x), 3, return_indices=True, **options)
    assert_close(values, expected)
    np.testing.assert_array_equal(array(indices), where)
    assert indices.dtype == candelabra.int64
    spread = pooled(x, (2,) * dims, (2,) * dims, (0,) * dims, lambda plane, places: max(plane[p] for p in places), 3)
    assert_close(function(tensor(x), 2, dilation=3), spread)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("dims", "shape"), [(1, (2, 3, 9)), (1, (3, 8)), (2, (2, 3, 9, 8)), (2, (3, 7, 8))])
def test_mean(rng, dims, shape, options):
    x = rng.standard_normal(shape)
    stride, padding, ceil = options.get("stride", 3), options.get("padding", 0), options.get("ceil_mode", False)

    def mean(include_pad):
        def reduce(plane, places):
            # Only ceil_mode reaches beyond the padding. Those elements are not counted.
            counted = [p for p in places if all(i < n + padding for i, n in zip(p, plane.shape, strict=True))]
            real = inside(plane, places)
            return sum(plane[p] for p in real) / (len(counted) if include_pad else len(real))

        return pooled(x, (3,) * dims, (stride,) * dims, (padding,) * dims, reduce, 1, ceil)

    function = getattr(F, f"avg_pool{dims}d")
    assert_close(function(tensor(x), 3, **options), mean(True))
    assert_close(function(tensor(x), 3, count_include_pad=False, **options), mean(False))
    assert_close(getattr(nn, f"AvgPool{dims}d")(3, **options)(tensor(x)), mean(True))


def test_divisor_and_pairs(rng):
    x = rng.standard_normal((2, 6, 6))
    blocks = x.reshape(2, 3, 2, 2, 3).sum((2, 4))
    assert_close(F.avg_pool2d(tensor(x), (2, 3), divisor_override=5), blocks / 5)
    assert_close(nn.AvgPool2d((2, 3))(tensor(x)), blocks / 6)
    powers = (np.abs(x) ** 3).reshape(2, 3, 2, 2, 3).sum((2, 4)) ** (1 / 3)
    assert_close(F.lp_pool2d(tensor(np.abs(x)), 3.0, (2, 3)), powers)
    assert_close(nn.LPPool1d(2, 3)(tensor(x[0])), np.sqrt((x[0] ** 2).reshape(6, 2, 3).sum(-1)))


@pytest.mark.parametrize("size", [1, 3, 4, 9])
@pytest.mark.parametrize(("dims", "shape"), [(1, (2, 3, 9)), (1, (3, 8)), (2, (2, 3, 9, 8)), (2, (3, 7, 8))])
def test_adaptive(rng, dims, shape, size):
    x = rng.standard_normal(shape)

    def adaptive(reduce):
        result = x
        for axis in range(x.ndim - dims, x.ndim):
            n = x.shape[axis]
            parts = [slice(i * n // size, -(-(i + 1) * n // size)) for i in range(size)]
            result = np.stack([reduce(np.take(result, range(p.start, p.stop), axis), axis) for p in parts], axis)
        return result

    assert_close(getattr(F, f"adaptive_avg_pool{dims}d")(tensor(x), size), adaptive(np.mean))
    assert_close(getattr(nn, f"AdaptiveAvgPool{dims}d")(size)(tensor(x)), adaptive(np.mean))
    values, indices = getattr(F, f"adaptive_max_pool{dims}d")(tensor(x), size, return_indices=True)
    assert_close(values, adaptive(np.max))
    flat = x.reshape(*x.shape[: x.ndim - dims], -1)
    np.testing.assert_array_equal(
        np.take_along_axis(flat, array(indices).reshape(*flat.shape[:-1], -1), -1).reshape(values.shape), array(values)
    )
    assert_close(getattr(nn, f"AdaptiveMaxPool{dims}d")(size)(tensor(x)), adaptive(np.max))


def test_adaptive_none_keeps_a_size(rng):
    x = rng.standard_normal((1, 2, 4, 6))
    assert_close(F.adaptive_avg_pool2d(tensor(x), (2, None)), x.reshape(1, 2, 2, 2, 6).mean(3))


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (
            lambda: F.max_pool2d(candelabra.ones(2, 3), 2),
            "non-empty 3D or 4D (batch mode) tensor expected for input, but got [2, 3]",
        ),
        (
            lambda: F.max_pool2d(candelabra.ones(1, 6, 6), 2, padding=2),
            "pad should be at most half of effective kernel size",
        ),
        (lambda: F.max_pool2d(candelabra.ones(1, 1, 1), 3), "Output size is too small"),
        (
            lambda: F.max_pool2d(candelabra.ones(1, 9, 9), (3, 3, 3)),
            "kernel_size must either be a single int, or a tuple of 2 ints",
        ),
        (lambda: F.avg_pool2d(candelabra.ones(1, 6, 6), 2, divisor_override=0), "divisor must be not zero"),
        (lambda: F.adaptive_avg_pool2d(candelabra.ones(1, 1, 6, 6), (1, 2, 3)), "output_size must be 2"),
        (lambda: F.adaptive_max_pool1d(candelabra.ones(6), 1), "non-empty 2D or 3D (batch mode) tensor expected"),
    ],
)
def test_errors(act, text):
    with pytest.raises(RuntimeError) as caught:
        act()
    assert text in str(caught.value)


def test_adaptive_pooling_of_too_few_dimensions():
    with pytest.raises(ValueError, match="Input dimension should be at least 4"):
        F.adaptive_avg_pool2d(candelabra.ones(1, 6, 6), (1, 2, 3))
    with pytest.raises(RuntimeError, match="adaptive_max_pool2d"):
        F.adaptive_max_pool2d(candelabra.ones(6), 2)


def test_max_unpool_has_no_deterministic_implementation():
    made, indices = F.max_pool2d(candelabra.randn(1, 1, 4, 4), 2, return_indices=True)
    candelabra.use_deterministic_algorithms(True)
    try:
        with pytest.raises(
            RuntimeError, match="^max_unpooling2d_forward_out does not have a deterministic implementation"
        ):
            F.max_unpool2d(made, indices, 2)
        candelabra.use_deterministic_algorithms(True, warn_only=True)
        with pytest.warns(UserWarning, match="^max_unpooling2d_forward_out does not have"):
            assert F.max_unpool2d(made, indices, 2).shape == (1, 1, 4, 4)
    finally:
        candelabra.use_deterministic_algorithms(False)


def test_ratios_of_another_number():
    with pytest.raises(ValueError, match="requires output_ratio to either be a single Int or tuple of Ints"):
        F.fractional_max_pool2d(candelabra.ones(1, 1, 8, 8), 2, output_ratio=(0.5, 0.5, 0.5))
