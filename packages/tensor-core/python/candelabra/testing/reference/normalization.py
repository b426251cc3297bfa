"""References of normalization, forward and backward. Gradients follow from the chain rule with
x_hat = (x - mean) * rstd: dx = rstd * (g - mean(g) - x_hat * mean(g * x_hat)), the means over the
elements normalized together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from candelabra.testing.sampling import Input, Reference, Sample, numbers

Array = np.ndarray
_DTYPES = ("float32", "float64")
_EPS = 1e-5


def _broadcast(values: Array, like: Array, axis: int) -> Array:
    return values.reshape(*(1,) * axis, -1, *(1,) * (like.ndim - axis - 1))


def _affine(a: Array, weight: Array | None, bias: Array | None, axis: int) -> Array:
    scaled = a if weight is None else a * _broadcast(weight, a, axis)
    return scaled if bias is None else scaled + _broadcast(bias, a, axis)


def _slope(grad: Array, hat: Array, rstd: Array, axes: tuple[int, ...]) -> Array:
    return rstd * (grad - grad.mean(axes, keepdims=True) - hat * (grad * hat).mean(axes, keepdims=True))


def _statistics(a: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    return a.mean(axes, keepdims=True), 1 / np.sqrt(a.var(axes, keepdims=True) + _EPS)


# ---- batch norm


def _channel_axes(a: Array) -> tuple[int, ...]:
    return (0, *range(2, a.ndim))


def batch_norm(
    a: Array, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float
) -> tuple[Array, Any, Any]:
    if training:
        mean, rstd = _statistics(a, _channel_axes(a))
        return _affine((a - mean) * rstd, weight, bias, 1), mean.ravel(), rstd.ravel()
    hat = (a - _broadcast(running_mean, a, 1)) / np.sqrt(_broadcast(running_var, a, 1) + eps)
    return _affine(hat, weight, bias, 1), None, None


def batch_norm_backward(
    grad: Array, a: Array, weight: Any, mean: Array, rstd: Array, training: bool
) -> tuple[Array, Any, Any]:
    axes, scale = _channel_axes(a), _broadcast(rstd, a, 1)
    hat = (a - _broadcast(mean, a, 1)) * scale
    inner = grad if weight is None else grad * _broadcast(weight, a, 1)
    slope = _slope(inner, hat, scale, axes) if training else inner * scale
    return slope, None if weight is None else (grad * hat).sum(axes), None if weight is None else grad.sum(axes)


_SHAPES = ((4, 3), (4, 3, 5), (2, 3, 4, 5), (3, 8, 6, 6))


def _optional(
    rng: np.random.Generator, dtype: str, size: int | tuple[int, ...]
) -> Iterator[tuple[Input | None, Input | None]]:
    shape = size if isinstance(size, tuple) else (size,)
    yield None, None
    yield Input(numbers(rng, dtype, shape), dtype), Input(numbers(rng, dtype, shape), dtype)


def _batch_calls(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape in _SHAPES:
        for weight, bias in _optional(rng, dtype, shape[1]):
            a = Input(numbers(rng, dtype, shape), dtype)
            running = Input(numbers(rng, dtype, (shape[1],)), dtype), Input(rng.uniform(0.5, 2, shape[1]), dtype)
            yield Sample((a, weight, bias, None, None, True, 0.1, _EPS))
            yield Sample((a, weight, bias, *running, False, 0.1, _EPS))


def _batch_gradients(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape in _SHAPES:
        for weight, _ in _optional(rng, dtype, shape[1]):
            for training in (True, False):
                a = numbers(rng, dtype, shape)
                mean, rstd = _statistics(a, _channel_axes(a))
                yield Sample(
                    (
                        Input(numbers(rng, dtype, shape), dtype),
                        Input(a, dtype),
                        weight,
                        Input(mean.ravel(), dtype),
                        Input(rstd.ravel(), dtype),
                        training,
                    )
                )


# ---- layer norm


def _last(a: Array, count: int) -> tuple[int, ...]:
    return tuple(range(a.ndim - count, a.ndim))


def layer_norm(a: Array, shape: list[int], weight: Any, bias: Any, eps: float) -> tuple[Array, Array, Array]:
    mean, rstd = _statistics(a, _last(a, len(shape)))
    hat = (a - mean) * rstd
    scaled = hat if weight is None else hat * weight
    return scaled if bias is None else scaled + bias, mean, rstd


def layer_norm_backward(
    grad: Array, a: Array, shape: list[int], mean: Array, rstd: Array, weight: Any
) -> tuple[Array, Any, Any]:
    hat = (a - mean) * rstd
    slope = _slope(grad if weight is None else grad * weight, hat, rstd, _last(a, len(shape)))
    outer = tuple(range(a.ndim - len(shape)))
    return slope, None if weight is None else (grad * hat).sum(outer), None if weight is None else grad.sum(outer)


_LAYERS: tuple[tuple[tuple[int, ...], list[int]], ...] = (
    ((3, 5), [5]),
    ((2, 3, 4), [3, 4]),
    ((6, 300), [300]),
    ((7,), [7]),
)


def _layer_calls(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, normalized in _LAYERS:
        for weight, bias in _optional(rng, dtype, tuple(normalized)):
            yield Sample((Input(numbers(rng, dtype, shape), dtype), normalized, weight, bias, _EPS))


def _layer_gradients(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, normalized in _LAYERS:
        for weight, _ in _optional(rng, dtype, tuple(normalized)):
            a = numbers(rng, dtype, shape)
            mean, rstd = _statistics(a, _last(a, len(normalized)))
            yield Sample(
                (
                    Input(numbers(rng, dtype, shape), dtype),
                    Input(a, dtype),
                    normalized,
                    Input(mean, dtype),
                    Input(rstd, dtype),
                    weight,
                )
            )


# ---- root-mean-square norm


def _roots(a: Array, count: int) -> Array:
    return 1 / np.sqrt(np.square(a).mean(_last(a, count), keepdims=True) + _EPS)


def rms_norm(a: Array, shape: list[int], weight: Any, eps: float) -> tuple[Array, Array]:
    rstd = _roots(a, len(shape))
    return a * rstd if weight is None else a * rstd * weight, rstd


def rms_norm_backward(grad: Array, a: Array, shape: list[int], rstd: Array, weight: Any) -> tuple[Array, Any]:
    hat, inner = a * rstd, grad if weight is None else grad * weight
    slope = rstd * (inner - hat * (inner * hat).mean(_last(a, len(shape)), keepdims=True))
    return slope, None if weight is None else (grad * hat).sum(tuple(range(a.ndim - len(shape))))


def _root_calls(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, normalized in _LAYERS:
        for weight, _ in _optional(rng, dtype, tuple(normalized)):
            yield Sample((Input(numbers(rng, dtype, shape), dtype), normalized, weight, _EPS))


def _root_gradients(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, normalized in _LAYERS:
        for weight, _ in _optional(rng, dtype, tuple(normalized)):
            a = numbers(rng, dtype, shape)
            rstd = Input(_roots(a, len(normalized)), dtype)
            yield Sample((Input(numbers(rng, dtype, shape), dtype), Input(a, dtype), normalized, rstd, weight))


# ---- group norm


def _groups(a: Array, groups: int) -> Array:
    return a.reshape(a.shape[0], groups, -1)


def group_norm(a: Array, weight: Any, bias: Any, groups: int, eps: float) -> tuple[Array, Array, Array]:
    mean, rstd = _statistics(_groups(a, groups), (2,))
    hat = ((_groups(a, groups) - mean) * rstd).reshape(a.shape)
    return _affine(hat, weight, bias, 1), mean[..., 0], rstd[..., 0]


def group_norm_backward(
    grad: Array, a: Array, mean: Array, rstd: Array, weight: Any, groups: int
) -> tuple[Array, Any, Any]:
    scale = rstd[..., None]
    hat = (_groups(a, groups) - mean[..., None]) * scale
    inner = grad if weight is None else grad * _broadcast(weight, a, 1)
    slope = _slope(_groups(inner, groups), hat, scale, (2,)).reshape(a.shape)
    axes = _channel_axes(a)
    return (
        slope,
        None if weight is None else (grad * hat.reshape(a.shape)).sum(axes),
        None if weight is None else grad.sum(axes),
    )


_GROUPED = (((2, 4, 3), 2), ((2, 6, 3, 4), 3), ((3, 4, 5), 4), ((2, 4, 3, 3), 1))


def _group_calls(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, groups in _GROUPED:
        for weight, bias in _optional(rng, dtype, shape[1]):
            yield Sample((Input(numbers(rng, dtype, shape), dtype), weight, bias, groups, _EPS))


def _group_gradients(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, groups in _GROUPED:
        for weight, _ in _optional(rng, dtype, shape[1]):
            a = numbers(rng, dtype, shape)
            mean, rstd = _statistics(_groups(a, groups), (2,))
            yield Sample(
                (
                    Input(numbers(rng, dtype, shape), dtype),
                    Input(a, dtype),
                    Input(mean[..., 0], dtype),
                    Input(rstd[..., 0], dtype),
                    weight,
                    groups,
                )
            )


REFERENCES: dict[str, Reference] = {
    "native_batch_norm": Reference(batch_norm, _batch_calls, _DTYPES, 40),
    "native_batch_norm_backward": Reference(batch_norm_backward, _batch_gradients, _DTYPES, 80),
    "native_layer_norm": Reference(layer_norm, _layer_calls, _DTYPES, 40),
    "native_layer_norm_backward": Reference(layer_norm_backward, _layer_gradients, _DTYPES, 80),
    "_fused_rms_norm": Reference(rms_norm, _root_calls, _DTYPES, 40),
    "_fused_rms_norm_backward": Reference(rms_norm_backward, _root_gradients, _DTYPES, 80),
    "native_group_norm": Reference(group_norm, _group_calls, _DTYPES, 40),
    "native_group_norm_backward": Reference(group_norm_backward, _group_gradients, _DTYPES, 80),
}
