"""Losses of single elements and their gradients as decompositions, which second derivatives go through."""

from __future__ import annotations

from candelabra.catalogue import OPERATORS

from .activation import sigmoid
from .elementwise import clamp, narrow_to, wide
from .registration import decomposes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra._C import Tensor
    from candelabra.types import Number

_log_sigmoid = OPERATORS["log_sigmoid"]
_log = OPERATORS["log"]
_log1p = OPERATORS["log1p"]


@decomposes("squared_error")
def squared_error(self: Tensor, target: Tensor) -> Tensor:
    return OPERATORS["square"](self - target)


@decomposes("squared_error_backward")
def squared_error_backward(grad: Tensor, self: Tensor, target: Tensor) -> Tensor:
    return grad * (2 * (self - target))


@decomposes("huber_error")
def huber_error(self: Tensor, target: Tensor, delta: Number = 1, scale: Number = 1) -> Tensor:
    difference = wide(self) - wide(target)
    # c * (d - c / 2) with d clamped for c
    near = clamp(difference, -delta, delta)
    return narrow_to(near * (difference - 0.5 * near) * scale, self.dtype)


@decomposes("huber_error_backward")
def huber_error_backward(grad: Tensor, self: Tensor, target: Tensor, delta: Number = 1, scale: Number = 1) -> Tensor:
    slope = clamp(wide(self) - wide(target), -delta, delta) * scale
    return narrow_to(wide(grad) * slope, self.dtype)


@decomposes("logits_cross_entropy")
def logits_cross_entropy(self: Tensor, target: Tensor) -> Tensor:
    x = wide(self)
    return narrow_to((1 - wide(target)) * x - _log_sigmoid(x), self.dtype)


@decomposes("logits_cross_entropy_backward")
def logits_cross_entropy_backward(grad: Tensor, self: Tensor, target: Tensor) -> Tensor:
    return narrow_to(wide(grad) * (sigmoid(wide(self)) - wide(target)), self.dtype)


@decomposes("probability_cross_entropy")
def probability_cross_entropy(self: Tensor, target: Tensor) -> Tensor:
    p, t = wide(self), wide(target)
    return narrow_to((t - 1) * clamp(_log1p(-p), min=-100) - t * clamp(_log(p), min=-100), self.dtype)


@decomposes("probability_cross_entropy_backward")
def probability_cross_entropy_backward(grad: Tensor, self: Tensor, target: Tensor) -> Tensor:
    p = wide(self)
    return narrow_to(wide(grad) * (p - wide(target)) / clamp((1 - p) * p, min=1e-12), self.dtype)
