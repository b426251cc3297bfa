"""Gradients of softmax and log_softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from candelabra import ops

from ..table import derivative
from .parts import to_dtype

if TYPE_CHECKING:
    from candelabra import Tensor


def _softmax(grad: Tensor, result: Tensor, dim: int, self_dtype: Any) -> Tensor:
    return to_dtype(ops.softmax_backward(grad, result, dim), self_dtype)


def _log_softmax(grad: Tensor, result: Tensor, dim: int, self_dtype: Any) -> Tensor:
    return to_dtype(ops.log_softmax_backward(grad, result, dim), self_dtype)


derivative("softmax", self=_softmax)
derivative("log_softmax", self=_log_softmax)


def _softmax_backward_output(upper: Tensor, grad: Tensor, output: Tensor, dim: int) -> Tensor:
    # The forward result is y (g - sum(g y)).
    return upper * (grad - (grad * output).sum(dim, True)) - grad * (upper * output).sum(dim, True)


derivative(
    "softmax_backward",
    grad=lambda upper, output, dim: ops.softmax_backward(upper, output, dim),
    output=_softmax_backward_output,
)
# The forward result is g - exp(y) sum(g).
derivative(
    "log_softmax_backward",
    grad=lambda upper, output, dim: upper - (upper * output.exp()).sum(dim, True),
    output=lambda upper, grad, output, dim: -(upper * output.exp()) * grad.sum(dim, True),
)
