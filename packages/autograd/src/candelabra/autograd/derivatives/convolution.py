"""Gradients of convolution.

Each of the three convolution operators is bilinear, and its gradients use the other two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from candelabra import ops

from ..table import derivative
from .parts import conj

if TYPE_CHECKING:
    from candelabra import Tensor

    Ints = tuple[int, ...]


def _conv_input(
    grad: Tensor, weight: Tensor, stride: Any, padding: Any, dilation: Any, groups: int, input_shape: Ints
) -> Tensor:
    return ops.convolution_backward_input(grad, conj(weight), input_shape, stride, padding, dilation, groups)


def _conv_weight(
    grad: Tensor, input: Tensor, stride: Any, padding: Any, dilation: Any, groups: int, weight_shape: Ints
) -> Tensor:
    return ops.convolution_backward_weight(grad, conj(input), weight_shape, stride, padding, dilation, groups)


def _conv_bias(grad: Tensor) -> Tensor:
    return grad.sum([dim for dim in range(grad.ndim) if dim != 1])


derivative("convolution", input=_conv_input, weight=_conv_weight, bias=_conv_bias)


def _input_gradient_grad(
    upper: Tensor, weight: Tensor, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    return ops.convolution(upper, conj(weight), None, stride, padding, dilation, groups)


def _input_gradient_weight(
    upper: Tensor, grad: Tensor, stride: Any, padding: Any, dilation: Any, groups: int, weight_shape: Ints
) -> Tensor:
    return ops.convolution_backward_weight(conj(grad), upper, weight_shape, stride, padding, dilation, groups)


derivative("convolution_backward_input", grad=_input_gradient_grad, weight=_input_gradient_weight)


def _weight_gradient_grad(
    upper: Tensor, input: Tensor, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    return ops.convolution(conj(input), upper, None, stride, padding, dilation, groups)


def _weight_gradient_input(
    upper: Tensor, grad: Tensor, stride: Any, padding: Any, dilation: Any, groups: int, input_shape: Ints
) -> Tensor:
    return ops.convolution_backward_input(conj(grad), upper, input_shape, stride, padding, dilation, groups)


derivative("convolution_backward_weight", grad=_weight_gradient_grad, input=_weight_gradient_input)
