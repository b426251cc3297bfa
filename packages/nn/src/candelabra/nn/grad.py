"""Compute the gradients of convolutions directly, without autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra import Tensor, ops

from .modules.convolution import to_tuple


def _options(dims: int, stride: Any, padding: Any, dilation: Any) -> tuple[Any, Any, Any]:
    return to_tuple(stride, dims), to_tuple(padding, dims), to_tuple(dilation, dims)


def _input_gradient(dims: int) -> Callable[..., Tensor]:
    def gradient(
        input_size: Any,
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        sizes = [int(size) for size in input_size]
        options = _options(dims, stride, padding, dilation)
        return ops.convolution_backward_input(grad_output, weight, sizes, *options, groups)

    gradient.__name__ = gradient.__qualname__ = f"conv{dims}d_input"
    gradient.__doc__ = f"""Return the gradient of ``conv{dims}d`` with respect to its input.

    The gradient is a transposed convolution of shape `input_size`.

    Parameters
    ----------
    input_size
        The shape of the input, including batch and channels.
    weight
        The weight of the convolution.
    grad_output
        The gradient of the output.
    stride, padding, dilation, groups
        Arguments of the convolution.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import grad
    >>> grad.conv{dims}d_input([1, 2{", 5" * dims}], candelabra.ones(3, 2{", 3" * dims}), candelabra.ones(1, 3{", 3" * dims})).shape
    candelabra.Size([1, 2{", 5" * dims}])
    """
    return gradient


def _weight_gradient(dims: int) -> Callable[..., Tensor]:
    def gradient(
        input: Tensor,
        weight_size: Any,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        sizes = [int(size) for size in weight_size]
        options = _options(dims, stride, padding, dilation)
        return ops.convolution_backward_weight(grad_output, input, sizes, *options, groups)

    gradient.__name__ = gradient.__qualname__ = f"conv{dims}d_weight"
    gradient.__doc__ = f"""Return the gradient of ``conv{dims}d`` with respect to its weight.

    The gradient has shape `weight_size`.

    Parameters
    ----------
    input
        The input of the convolution.
    weight_size
        The shape of the weight.
    grad_output
        The gradient of the output.
    stride, padding, dilation, groups
        Arguments of the convolution.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import grad
    >>> grad.conv{dims}d_weight(candelabra.ones(1, 2{", 5" * dims}), [3, 2{", 3" * dims}], candelabra.ones(1, 3{", 3" * dims})).shape
    candelabra.Size([3, 2{", 3" * dims}])
    """
    return gradient


conv1d_input, conv2d_input, conv3d_input = (_input_gradient(dims) for dims in (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = (_weight_gradient(dims) for dims in (1, 2, 3))

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]
