"""Implement normalization functions."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor, no_grad, ops
from candelabra.amp import is_autocast_enabled
from candelabra.composite.registration import fast_path
from candelabra.dispatch_hooks import computed

from .dtypes import floating_only
from .memory_order import in_format_of

_batch_norm = ops.native_batch_norm
_layer_norm = ops.native_layer_norm
_group_norm = ops.native_group_norm
_rms_norm = ops._fused_rms_norm
_vector_norm = ops.linalg_vector_norm
_avg_pool = ops.avg_pool


def _group_normalized(input: Tensor, weight: Tensor | None, bias: Tensor | None, num_groups: int, eps: float) -> Tensor:
    """Normalize groups; float32 parameters of a half-precision input are not rounded to its
    dtype.
    """
    parameter = weight if weight is not None else bias
    if (
        parameter is not None
        and parameter.dtype is candelabra.float32
        and input.dtype in (candelabra.float16, candelabra.bfloat16)
        # On accelerators, autocast computes in float32 itself and returns float32.
        and (input.device.type == "cpu" or not is_autocast_enabled(input.device.type))
    ):
        made: Tensor = _group_norm(input.float(), weight, bias, num_groups, eps)[0].to(input.dtype)
        return made
    result: Tensor = _group_norm(input, weight, bias, num_groups, eps)[0]
    return result


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Apply batch normalization. Shapes: (N, C, ...).

    Each channel is normalized with the statistics of the batch in training, and with the running
    statistics otherwise.

    In training, the running statistics are updated with weight `momentum` for the batch.

    Raises
    ------
    ValueError
        If there is only one value per channel in training.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.batch_norm(candelabra.tensor([[1.0], [3.0]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    if input.ndim == 1 and input.shape[0] == 0:
        return input.clone()  # PyTorch accepts an input without samples and channels
    if eps < 0.0 and not training:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    if training:
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
        if input.numel() == 0:
            # The batch is empty: the running statistics do not change.
            return _batch_norm(input, weight, bias, None, None, True, momentum, eps)[0]
        shape = input.shape
        if len(shape) < 2:
            raise ValueError(f"Expected an input of at least 2 dimensions (N, C, ...), got input size {shape}")
        if shape[1] and input.numel() == shape[1]:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {shape}")
    elif running_mean is None or running_var is None:
        missing = "running_mean" if running_mean is None else "running_var"
        raise RuntimeError(f"{missing} must be defined in evaluation mode")
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@computed("as given on accelerators")
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Apply instance normalization. Shapes: (N, C, ...).

    Each channel of each sample is normalized with its own statistics, or with the running
    statistics.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.instance_norm(candelabra.tensor([[[1.0, 3.0]], [[10.0, 30.0]]]))
    tensor([[[-1.0000,  1.0000]],
    <BLANKLINE>
            [[-1.0000,  1.0000]]])
    """
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if input.ndim < 3:
        raise ValueError(
            f"instance_norm: expected an input of at least 3 dimensions (N, C, ...), got input size {input.shape}"
        )
    positions = 1
    for length in input.shape[2:]:
        positions *= length
    if positions == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    for name, running in (("running_mean", running_mean), ("running_var", running_var)):
        if running is not None and tuple(running.shape) != (input.shape[1],):
            raise RuntimeError(
                f"instance_norm: {name} should contain {input.shape[1]} elements, one for each channel of the input {list(input.shape)}, "
                f"but its shape is {list(running.shape)}"
            )
    # Each channel is its own group.
    result = _group_normalized(input, weight, bias, input.shape[1], eps)
    if running_mean is not None or running_var is not None:
        with no_grad():
            flat = input.detach().flatten(2)
            if running_mean is not None:
                running_mean.mul_(1 - momentum).add_(flat.mean((0, 2)).to(running_mean.dtype), alpha=momentum)
            if running_var is not None:
                running_var.mul_(1 - momentum).add_(flat.var(2).mean(0).to(running_var.dtype), alpha=momentum)
    return result


@fast_path(ops.native_layer_norm)
def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Apply layer normalization over the last dimensions, `normalized_shape`.

    Raises
    ------
    RuntimeError
        If the shape of the input does not end with `normalized_shape`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.layer_norm(candelabra.tensor([1.0, 3.0]), (2,))
    tensor([-1.0000,  1.0000])
    """
    return _layer_norm(input, normalized_shape, weight, bias, eps)[0]


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Apply group normalization. Shapes: (N, C, ...), C divisible by `num_groups`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.group_norm(candelabra.tensor([[1.0, 3.0, 10.0, 30.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    positions = input.shape[0] * (input.shape[1] // num_groups if num_groups else 0)
    for length in input.shape[2:]:
        positions *= length
    if positions == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    return in_format_of(_group_normalized(input, weight, bias, num_groups, eps), input)


def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Divide by the root mean square over the last dimensions, `normalized_shape`.

    Half-precision inputs are computed in float32.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.rms_norm(candelabra.tensor([3.0, 4.0]), (2,))
    tensor([0.8485, 1.1314])
    """
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape or tuple(input.shape[-len(shape) :]) != shape:
        wanted = "".join(f", {size}" for size in shape)
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*{wanted}], but got input of size{list(input.shape)}"
        )
    if weight is not None and tuple(weight.shape) != shape:
        raise RuntimeError(
            f"Expected weight to be of same shape as normalized_shape, but got weight of shape {list(weight.shape)} and normalized_shape = "
            f"{list(shape)}"
        )
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        floating_only("rms_norm", input)
    half = input.dtype in (candelabra.float16, candelabra.bfloat16)
    if eps is None:
        eps = candelabra.finfo(candelabra.float32 if half else input.dtype).eps
    if input.dtype.is_floating_point and (weight is None or weight.dtype == input.dtype):
        return _rms_norm(input, shape, weight, eps)[0]
    wide = input.to(candelabra.float32) if half else input
    dims = tuple(range(-len(shape), 0))
    result = wide * (wide.square().mean(dims, keepdim=True) + eps).rsqrt()
    if weight is not None:
        result = result * weight
    return result if wide is input else result.to(input.dtype)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Apply local response normalization. Shapes: (N, C, ...).

    The result is ``x / (k + alpha * mean of squares over size neighbouring channels) ^ beta``.
    """
    if input.ndim < 3:
        raise ValueError(f"local_response_norm: expected a 3D or higher input (got {input.ndim} dimensions)")
    if input.numel() == 0:
        return input
    from .padding import pad

    # Reshape the channels to the rows of one plane, so that a pooling window of size x 1 slides
    # over them.
    squares = input.square().reshape(input.shape[0], 1, input.shape[1], -1)
    mean = _avg_pool(pad(squares, (0, 0, size // 2, (size - 1) // 2)), (size, 1), (1, 1), (0, 0), False, True, None)
    return input / (mean.reshape(input.shape) * alpha + k).pow(beta)


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Divide by the p-norm along `dim`. Norms are clamped to at least `eps`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.normalize(candelabra.tensor([3.0, 4.0]), dim=0)
    tensor([0.6000, 0.8000])
    """
    norm = _vector_norm(input, p, dim, True).clamp(min=eps)
    if out is None:
        return input / norm
    return candelabra.div(input, norm, out=out)


__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "normalize",
    "rms_norm",
]
