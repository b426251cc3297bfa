"""Test batch, layer and group normalization, forward and backward, against formulas in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from harness import BFloat16, call
from values import EPSILON, FLOATS, HALVES, assert_values, random_array, random_tensor, tensor, wide

import candelabra
from candelabra import ops

EPS = 1e-5


def close(result: Any, expected: np.ndarray, *, of: float = 1.0, units: float = 16.0) -> None:
    assert_values(result, expected, scale=of * (np.abs(expected) + np.abs(expected).mean() + 1), units=units)


def statistics_dtype(dtype: str) -> str:
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def normalized(array: np.ndarray, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mean = array.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(array.var(axes, keepdims=True) + EPS)
    return (array - mean) * rstd, mean, rstd


def input_gradient(h: np.ndarray, xhat: np.ndarray, rstd: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return the gradient of x, given that of (x - mean) * rstd."""
    return rstd * (h - h.mean(axes, keepdims=True) - xhat * (h * xhat).mean(axes, keepdims=True))


def channels_last(x: Any) -> Any:
    """Return the same values in channels-last memory format."""
    order = [0, *range(2, x.ndim), 1]
    back = [0, x.ndim - 1, *range(1, x.ndim - 1)]
    return x.permute(*order).contiguous().permute(*back)


BATCH_SHAPES = [(8, 3), (4, 3, 5), (2, 5, 7, 9), (3, 64, 8, 8), (2, 2, 3, 4, 5), (300, 1, 31, 11), (7, 1000)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_batch_norm_in_training(dtype: str, affine: bool, last: bool) -> None:
    for shape in BATCH_SHAPES:
        x, grad = random_tensor(shape, dtype), random_tensor(shape, dtype, seed=1)
        if last:
            x, grad = channels_last(x), channels_last(grad)
        channels = shape[1]
        axes = (0, *range(2, len(shape)))
        expand = (slice(None), *[None] * (len(shape) - 2))
        weight, bias = (
            (random_tensor((channels,), dtype, seed=2), random_tensor((channels,), dtype, seed=3))
            if affine
            else (None, None)
        )
        w, b = (wide(weight)[expand], wide(bias)[expand]) if affine else (1.0, 0.0)
        running_dtype = statistics_dtype(dtype)
        running_mean, running_var = (
            random_tensor((channels,), running_dtype),
            tensor(np.full(channels, 2.0), running_dtype),
        )
        before_mean = wide(running_mean)
        array = wide(x)
        xhat, mean, rstd = normalized(array, axes)

        out, save_mean, save_rstd = ops.native_batch_norm(x, weight, bias, running_mean, running_var, True, 0.1, EPS)
        close(out, xhat * w + b)
        close(save_mean, mean.ravel())
        close(save_rstd, rstd.ravel())
        close(running_mean, 0.9 * before_mean + 0.1 * mean.ravel())
        close(running_var, 1.8 + 0.1 * array.var(axes, ddof=1))
        if last and len(shape) == 4 and channels > 1:
            assert out.stride()[1] == 1

        g = wide(grad)
        grad_input, grad_weight, grad_bias = ops.native_batch_norm_backward(grad, x, weight, save_mean, save_rstd, True)
        close(grad_input, input_gradient(g * w, xhat, rstd, axes), units=32)
        if affine:
            count = math.prod(shape) / channels
            close(grad_weight, (g * xhat).sum(axes), of=math.sqrt(count))
            close(grad_bias, g.sum(axes), of=math.sqrt(count))
        else:
            assert grad_weight.numel() == grad_bias.numel() == 0


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("last", [False, True])
def test_batch_norm_in_evaluation(dtype: str, last: bool) -> None:
    for shape in BATCH_SHAPES[:5]:
        x, grad = random_tensor(shape, dtype), random_tensor(shape, dtype, seed=1)
        if last:
            x, grad = channels_last(x), channels_last(grad)
        channels = shape[1]
        axes = (0, *range(2, len(shape)))
        expand = (slice(None), *[None] * (len(shape) - 2))
        running_mean = random_tensor((channels,), statistics_dtype(dtype), seed=4)
        running_var = tensor(np.linspace(0.5, 3, channels), statistics_dtype(dtype))
        weight, bias = random_tensor((channels,), dtype, seed=2), random_tensor((channels,), dtype, seed=3)
        before = wide(running_mean), wide(running_var)
        rstd = 1 / np.sqrt(before[1] + EPS)
        xhat = (wide(x) - before[0][expand]) * rstd[expand]
        out, mean, save_rstd = ops.native_batch_norm(x, weight, bias, running_mean, running_var, False, 0.1, EPS)
        close(out, xhat * wide(weight)[expand] + wide(bias)[expand])
        np.testing.assert_array_equal(wide(running_mean), before[0])
        np.testing.assert_array_equal(wide(running_var), before[1])
        grad_input, grad_weight, grad_bias = ops.native_batch_norm_backward(grad, x, weight, mean, save_rstd, False)
        count = math.sqrt(math.prod(shape) / channels)
        close(grad_input, wide(grad) * (wide(weight) * rstd)[expand])
        close(grad_weight, (wide(grad) * xhat).sum(axes), of=count)
        close(grad_bias, wide(grad).sum(axes), of=count)


def test_batch_norm_far_from_zero() -> None:
    x = tensor((np.random.default_rng(0).standard_normal((16, 4, 20, 20)) + 1000).astype("f4"))
    out, _, _ = ops.native_batch_norm(x, None, None, None, None, True, 0.1, EPS)
    expected, _, _ = normalized(wide(x), (0, 2, 3))
    assert np.max(np.abs(wide(out) - expected)) < 1e-3


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("affine", [False, True])
def test_layer_norm(dtype: str, affine: bool) -> None:
    for shape, count in [
        ((5,), 1),
        ((4, 6), 1),
        ((4, 6), 2),
        ((3, 5, 130), 1),
        ((200, 3000), 1),
        ((3, 4, 5, 6), 2),
        ((1000, 8), 1),
    ]:
        x, grad = random_tensor(shape, dtype), random_tensor(shape, dtype, seed=1)
        inner = shape[len(shape) - count :]
        axes = tuple(range(len(shape) - count, len(shape)))
        outer = tuple(range(len(shape) - count))
        weight, bias = (
            (random_tensor(inner, dtype, seed=2), random_tensor(inner, dtype, seed=3)) if affine else (None, None)
        )
        w, b = (wide(weight), wide(bias)) if affine else (1.0, 0.0)
        xhat, mean, rstd = normalized(wide(x), axes)
        out, save_mean, save_rstd = ops.native_layer_norm(x, list(inner), weight, bias, EPS)
        close(out, xhat * w + b)
        close(save_mean, mean)
        close(save_rstd, rstd)
        grad_input, grad_weight, grad_bias = ops.native_layer_norm_backward(
            grad, x, list(inner), save_mean, save_rstd, weight
        )
        g = wide(grad)
        close(grad_input, input_gradient(g * w, xhat, rstd, axes), units=32)
        if affine:
            rows = math.sqrt(math.prod(shape) / math.prod(inner))
            close(grad_weight, (g * xhat).sum(outer), of=rows)
            close(grad_bias, g.sum(outer), of=rows)
        else:
            assert grad_weight.numel() == grad_bias.numel() == 0


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("affine", [False, True])
def test_rms_norm(dtype: str, affine: bool) -> None:
    for shape, count in [((5,), 1), ((4, 6), 2), ((3, 5, 130), 1), ((100, 3000), 1), ((1000, 8), 1), ((0, 4), 1)]:
        x, grad = random_tensor(shape, dtype), random_tensor(shape, dtype, seed=1)
        inner = shape[len(shape) - count :]
        axes, outer = tuple(range(len(shape) - count, len(shape))), tuple(range(len(shape) - count))
        weight = random_tensor(inner, dtype, seed=2) if affine else None
        w = wide(weight) if affine else 1.0
        root = 1 / np.sqrt((wide(x) ** 2).mean(axes, keepdims=True) + EPS)
        out, rstd = ops._fused_rms_norm(x, list(inner), weight, EPS)
        grad_input, grad_weight = ops._fused_rms_norm_backward(grad, x, list(inner), rstd, weight)
        hat, h = wide(x) * root, wide(grad) * w
        if math.prod(shape):
            close(out, hat * w)
            close(rstd, root)
            close(grad_input, root * (h - hat * (h * hat).mean(axes, keepdims=True)), units=32)
        if affine:
            rows = max(1.0, math.sqrt(math.prod(shape) / math.prod(inner)))
            close(grad_weight, (wide(grad) * hat).sum(outer), of=rows)
        else:
            assert grad_weight.numel() == 0


def test_norms_of_values_beyond_the_range_of_their_sum() -> None:
    huge = candelabra.tensor([[3e38, 3e38, -3e38, 3e38]])
    assert_values(ops._fused_rms_norm(huge, [4], None, EPS)[0], np.array([[1.0, 1, -1, 1]]))
    offset = candelabra.tensor([[1e6 + k for k in range(300)]])
    expected = np.arange(300) - 149.5
    assert_values(ops.native_layer_norm(offset, [300], None, None, 0.0)[0], (expected / expected.std())[None])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_group_norm(dtype: str, affine: bool, last: bool) -> None:
    shapes = [
        ((4, 6), 3),
        ((2, 6, 5), 2),
        ((3, 8, 9, 7), 4),
        ((2, 8, 40, 40), 1),
        ((2, 5, 6, 6), 5),
        ((2, 70, 3, 3, 4), 7),
    ]
    for shape, groups in shapes:
        x, grad = random_tensor(shape, dtype), random_tensor(shape, dtype, seed=1)
        if last:
            x = channels_last(x)
            grad = channels_last(grad) if groups != 4 else grad  # once with a layout that differs from the input's
        channels = shape[1]
        grouped = (shape[0], groups, -1)
        expand = (slice(None), *[None] * (len(shape) - 2))
        weight, bias = (
            (random_tensor((channels,), dtype, seed=2), random_tensor((channels,), dtype, seed=3))
            if affine
            else (None, None)
        )
        w, b = (wide(weight)[expand], wide(bias)[expand]) if affine else (1.0, 0.0)
        rows, mean, rstd = normalized(wide(x).reshape(grouped), (2,))
        xhat = rows.reshape(shape)
        out, save_mean, save_rstd = ops.native_group_norm(x, weight, bias, groups, EPS)
        close(out, xhat * w + b)
        close(save_mean, mean[..., 0])
        close(save_rstd, rstd[..., 0])
        g = wide(grad)
        grad_input, grad_weight, grad_bias = ops.native_group_norm_backward(
            grad, x, save_mean, save_rstd, weight, groups
        )
        if last and len(shape) > 3:
            assert out.stride() == grad_input.stride() == x.stride()
        close(grad_input, input_gradient((g * w).reshape(grouped), rows, rstd, (2,)).reshape(shape), units=32)
        if affine:
            axes = (0, *range(2, len(shape)))
            count = math.sqrt(math.prod(shape) / channels)
            close(grad_weight, (g * xhat).sum(axes), of=count)
            close(grad_bias, g.sum(axes), of=count)
        else:
            assert grad_weight.numel() == grad_bias.numel() == 0


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("affine", [False, True])
def test_group_norm_of_channels_last_memory(dtype: str, affine: bool) -> None:
    """Call the kernel directly, which keeps channels-last layout."""

    def last(values: np.ndarray) -> Any:
        held = np.ascontiguousarray(np.moveaxis(values, 1, -1))
        if dtype == "bfloat16":
            return BFloat16(np.moveaxis(BFloat16.of(held).bits, -1, 1))
        return np.moveaxis(held.astype(dtype), -1, 1)

    def values_of(held: Any) -> np.ndarray:
        return (held.values() if isinstance(held, BFloat16) else held).astype(np.float64)

    def vector(channels: int, seed: int) -> Any:
        values = random_array((channels,), dtype, seed)
        return BFloat16.of(values) if dtype == "bfloat16" else values.astype(dtype)

    shapes = [
        ((2, 6, 5, 7), 3),
        ((1, 64, 19, 17), 8),
        ((3, 8, 300), 4),
        ((2, 70, 3, 3), 7),
        ((2, 4, 2, 3, 5), 2),
        ((2, 3, 600, 1), 1),
    ]
    for shape, groups in shapes:
        array = random_array(shape, dtype) + (0 if dtype in HALVES else 1000)
        array[:, :, 0] += 8  # the first pixels must not serve as an estimate of the mean

        x, out = last(array), last(np.zeros(shape))
        saved = [np.zeros((shape[0], groups), statistics_dtype(dtype)) for _ in range(2)]
        weight, bias = (vector(shape[1], 2), vector(shape[1], 3)) if affine else (None, None)
        call("native_group_norm", [out, *saved], x, weight, bias, groups, EPS)
        rows, mean, rstd = normalized(values_of(x).reshape(shape[0], groups, -1), (2,))
        expand = (slice(None), *[None] * (len(shape) - 2))
        w, b = (values_of(weight)[expand], values_of(bias)[expand]) if affine else (1.0, 0.0)
        unit = EPSILON[dtype]
        expected = rows.reshape(shape) * w + b
        np.testing.assert_allclose(
            values_of(out), expected, rtol=16 * unit, atol=(16 if dtype in HALVES else 4000) * unit
        )
        unit = EPSILON[statistics_dtype(dtype)]
        np.testing.assert_allclose(saved[0], mean[..., 0], rtol=16 * unit, atol=16 * unit)
        np.testing.assert_allclose(saved[1], rstd[..., 0], rtol=64 * unit)


def test_parameters_of_another_dtype() -> None:
    x = random_tensor((4, 6, 5), "bfloat16")
    weight, bias = random_tensor((6,), "float32", seed=2), random_tensor((6,), "float32", seed=3)
    expected, _, _ = normalized(wide(x), (0, 2))
    out, mean, _ = ops.native_batch_norm(x, weight, bias, None, None, True, 0.1, EPS)
    assert mean.dtype == candelabra.float32
    close(out, expected * wide(weight)[:, None] + wide(bias)[:, None])
    assert EPSILON["bfloat16"] > EPSILON["float32"]


def test_nothing_to_normalize() -> None:
    out, mean, rstd = ops.native_layer_norm(candelabra.zeros(0, 4), [4], None, None, EPS)
    assert tuple(out.shape) == (0, 4)
    assert tuple(mean.shape) == tuple(rstd.shape) == (0, 1)
    empty = candelabra.zeros(0, 3, 2)
    running_mean, running_var = candelabra.zeros(3), candelabra.ones(3)
    out, _, _ = ops.native_batch_norm(empty, None, None, running_mean, running_var, False, 0.1, EPS)
    assert tuple(out.shape) == (0, 3, 2)
    results = ops.native_layer_norm_backward(
        candelabra.zeros(0, 4),
        candelabra.zeros(0, 4),
        [4],
        candelabra.zeros(0, 1),
        candelabra.zeros(0, 1),
        candelabra.ones(4),
    )
    assert results[1].tolist() == [0.0] * 4
