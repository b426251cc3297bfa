"""Decompositions of batch, layer, root-mean-square and group normalization, and their gradients.

Gradients treat mean and rstd as constants. For second derivatives they are recomputed from the
input, on which they depend.
"""

from __future__ import annotations

import math

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..elementwise.elementwise import narrow_to, wide
from ..memory_formats import suggested
from ..movement.views import reshape
from ..registration import decomposes
from ..transformed import is_differentiated_outside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from candelabra._C import Tensor

_mean = OPERATORS["mean"]
_sum = OPERATORS["sum"]
_var = OPERATORS["var"]
_rsqrt = OPERATORS["rsqrt"]
_square = OPERATORS["square"]
_contiguous = OPERATORS["contiguous"]


def _attached(x: Tensor, dims: Any, mean: Tensor, rstd: Tensor) -> Any:
    """Return mean and rstd of `x`, with the given values, as differentiable functions of `x` if
    autograd records.
    """
    if not (x.requires_grad and _C.is_grad_enabled()) and not is_differentiated_outside(x):
        return mean, rstd
    mean, rstd = mean.detach(), rstd.detach()
    variance = _var(x, dims, correction=0, keepdim=True)
    # 1 / rstd² is the variance plus eps. This adds eps as in the forward pass.
    eps = 1 / _square(rstd) - variance.detach()
    return _mean(x, dims, True), _rsqrt(variance + eps)


def _normalized_gradient(g: Tensor, x: Tensor, dims: Any, mean: Tensor, rstd: Tensor, scaled: Tensor) -> Any:
    """Return the gradient of x in (x - mean) * rstd, and the normalized x. `scaled` is the gradient
    times the weight.
    """
    mean, rstd = _attached(x, dims, mean, rstd)
    normalized = (x - mean) * rstd
    correlation = _mean(scaled * normalized, dims, True)
    return rstd * (scaled - _mean(scaled, dims, True) - normalized * correlation), normalized


def _no_weight(x: Tensor) -> Any:
    return x.new_empty((0,)), x.new_empty((0,))


# ---- batch norm: statistics of each channel over everything else


def _channel_view(t: Tensor, ndim: int) -> Tensor:
    return reshape(t, (1, -1) + (1,) * (ndim - 2))


@decomposes("native_batch_norm")
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    if input.ndim < 2:
        raise RuntimeError(f"batch_norm: expected at least 2 dimensions (N, C, ...), but got {list(input.shape)}")
    x = _contiguous(wide(input), memory_format=suggested(input))
    dims = [d for d in range(x.ndim) if d != 1]
    if training:
        count = x.numel() // x.shape[1] if x.shape[1] else 0
        mean = _mean(x, dims)
        variance = _var(x, dims, correction=0)
        rstd = _rsqrt(variance + eps)
        _move_running(running_mean, mean.detach(), momentum)
        if running_var is not None:
            # Bessel's correction, which is undefined for a single value.
            correction = count / (count - 1) if count > 1 else math.nan
            _move_running(running_var, variance.detach() * correction, momentum)
    else:
        if running_mean is None or running_var is None:
            raise ValueError("Expected running_mean and running_var to be given when training=False")
        mean = OPERATORS["clone"](wide(running_mean))
        rstd = _rsqrt(wide(running_var) + eps)
    result = (x - _channel_view(mean, x.ndim)) * _channel_view(rstd, x.ndim)
    if weight is not None:
        result = result * _channel_view(wide(weight), x.ndim)
    if bias is not None:
        result = result + _channel_view(wide(bias), x.ndim)
    return narrow_to(result, input.dtype), mean, rstd


def _move_running(running: Tensor | None, value: Any, momentum: float) -> None:
    if running is None:
        return
    recording = _C.set_grad_enabled(False)
    try:
        running.mul_(1 - momentum).add_(value, alpha=momentum)
    finally:
        _C.set_grad_enabled(recording)


@decomposes("native_batch_norm_backward")
def native_batch_norm_backward(
    grad: Tensor, input: Tensor, weight: Tensor | None, mean: Tensor, rstd: Tensor, training: bool
) -> Any:
    g, x = _contiguous(wide(grad), memory_format=suggested(input)), wide(input)
    dims = [d for d in range(x.ndim) if d != 1]
    mean, rstd = _channel_view(mean, x.ndim), _channel_view(rstd, x.ndim)
    scaled = g if weight is None else g * _channel_view(wide(weight), x.ndim)
    if training:
        grad_input, normalized = _normalized_gradient(g, x, dims, mean, rstd, scaled)
    else:
        grad_input, normalized = scaled * rstd, (x - mean) * rstd
    grad_input = narrow_to(grad_input, input.dtype)
    if weight is None:
        return (grad_input, *_no_weight(x))
    return grad_input, narrow_to(_sum(g * normalized, dims), weight.dtype), narrow_to(_sum(g, dims), weight.dtype)


# ---- layer norm: statistics over the last dimensions


def _check_normalized_shape(input: Tensor, normalized_shape: Sequence[int]) -> list[int]:
    count = len(normalized_shape)
    if count == 0 or input.ndim < count or list(input.shape[-count:]) != list(normalized_shape):
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape [*, "
            f"{', '.join(map(str, normalized_shape))}], but got input of size{list(input.shape)}"
        )
    return list(range(input.ndim - count, input.ndim))


@decomposes("native_layer_norm")
def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Any:
    x = _contiguous(wide(input))
    dims = _check_normalized_shape(x, normalized_shape)
    mean = _mean(x, dims, True)
    rstd = _rsqrt(_var(x, dims, correction=0, keepdim=True) + eps)
    result = (x - mean) * rstd
    if weight is not None:
        result = result * wide(weight)
    if bias is not None:
        result = result + wide(bias)
    return narrow_to(result, input.dtype), mean, rstd


@decomposes("native_layer_norm_backward")
def native_layer_norm_backward(
    grad: Tensor, input: Tensor, normalized_shape: Sequence[int], mean: Tensor, rstd: Tensor, weight: Tensor | None
) -> Any:
    g, x = _contiguous(wide(grad)), wide(input)
    dims = _check_normalized_shape(x, normalized_shape)
    outer = list(range(x.ndim - len(dims)))
    scaled = g if weight is None else g * wide(weight)
    grad_input, normalized = _normalized_gradient(g, x, dims, mean, rstd, scaled)
    grad_input = narrow_to(grad_input, input.dtype)
    if weight is None:
        return (grad_input, *_no_weight(x))
    grad_weight, grad_bias = g * normalized, g
    if outer:
        grad_weight, grad_bias = _sum(grad_weight, outer), _sum(grad_bias, outer)
    return grad_input, narrow_to(grad_weight, weight.dtype), narrow_to(grad_bias, weight.dtype)


# ---- root-mean-square norm: division by the root of the mean of squares over the last dimensions


@decomposes("_fused_rms_norm")
def _fused_rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float) -> Any:
    x = _contiguous(wide(input))
    dims = _check_normalized_shape(x, normalized_shape)
    rstd = _rsqrt(_mean(_square(x), dims, True) + eps)
    result = x * rstd
    if weight is not None:
        result = result * wide(weight)
    return narrow_to(result, input.dtype), rstd


@decomposes("_fused_rms_norm_backward")
def _fused_rms_norm_backward(
    grad: Tensor, input: Tensor, normalized_shape: Sequence[int], rstd: Tensor, weight: Tensor | None
) -> Any:
    g, x = _contiguous(wide(grad)), wide(input)
    dims = _check_normalized_shape(x, normalized_shape)
    if (x.requires_grad and _C.is_grad_enabled()) or is_differentiated_outside(x):
        rstd, squares = rstd.detach(), _mean(_square(x), dims, True)
        rstd = _rsqrt(squares + (1 / _square(rstd) - squares.detach()))
    normalized = x * rstd
    scaled = g if weight is None else g * wide(weight)
    grad_input = narrow_to(rstd * (scaled - normalized * _mean(scaled * normalized, dims, True)), input.dtype)
    if weight is None:
        return grad_input, x.new_empty((0,))
    grad_weight, outer = g * normalized, list(range(x.ndim - len(dims)))
    return grad_input, narrow_to(_sum(grad_weight, outer) if outer else grad_weight, weight.dtype)


# ---- group norm: statistics over groups of channels of each sample


def _grouped(x: Tensor, num_groups: int) -> Tensor:
    if x.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {x.ndim}")
    if num_groups < 1 or x.shape[1] % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(x.shape)} and "
            f"num_groups={num_groups}"
        )
    # The last size is explicit: -1 is ambiguous if the batch is empty.
    inner = 1
    for n in x.shape[1:]:
        inner *= n
    return reshape(x, (x.shape[0], num_groups, inner // num_groups))


@decomposes("native_group_norm")
def native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, num_groups: int, eps: float) -> Any:
    x = wide(input)
    groups = _grouped(x, num_groups)
    mean = _mean(groups, -1, True)
    rstd = _rsqrt(_var(groups, [-1], correction=0, keepdim=True) + eps)
    result = reshape((groups - mean) * rstd, x.shape)
    if weight is not None:
        result = result * _channel_view(wide(weight), x.ndim)
    if bias is not None:
        result = result + _channel_view(wide(bias), x.ndim)
    return narrow_to(result, input.dtype), OPERATORS["squeeze"](mean, -1), OPERATORS["squeeze"](rstd, -1)


@decomposes("native_group_norm_backward")
def native_group_norm_backward(
    grad: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, num_groups: int
) -> Any:
    g, x = wide(grad), wide(input)
    scaled = g if weight is None else g * _channel_view(wide(weight), x.ndim)
    mean, rstd = (OPERATORS["unsqueeze"](s, -1) for s in (mean, rstd))
    grad_groups, normalized = _normalized_gradient(
        g, _grouped(x, num_groups), [-1], mean, rstd, _grouped(scaled, num_groups)
    )
    grad_input = narrow_to(_contiguous(reshape(grad_groups, x.shape), memory_format=suggested(input)), input.dtype)
    if weight is None:
        return (grad_input, *_no_weight(x))
    dims = [d for d in range(x.ndim) if d != 1]
    grad_weight, grad_bias = _sum(g * reshape(normalized, x.shape), dims), _sum(g, dims)
    return grad_input, narrow_to(grad_weight, weight.dtype), narrow_to(grad_bias, weight.dtype)
