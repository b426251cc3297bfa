"""Decompositions of elementwise losses and their gradients, which second derivatives use."""

from __future__ import annotations

from candelabra.catalogue import OPERATORS

from ..elementwise.activation import sigmoid
from ..elementwise.elementwise import clamp, narrow_to, wide
from ..registration import decomposes

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
    # c * (d - c / 2), where c is d clamped
    near = clamp(difference, -delta, delta)
    return narrow_to(near * (difference - 0.5 * near) * scale, self.dtype)


@decomposes("huber_error_backward")
def huber_error_backward(grad: Tensor, self: Tensor, target: Tensor, delta: Number = 1, scale: Number = 1) -> Tensor:
    slope = clamp(wide(self) - wide(target), -delta, delta) * scale
    return narrow_to(wide(grad) * slope, self.dtype)


#: The integers that stand for reductions in operators.
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def reduction_number(reduction: str) -> int:
    """Return the integer of a reduction, or raise ValueError."""
    found = _REDUCTIONS.get(reduction)
    if found is None:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return found


@decomposes("cross_entropy_forward")
def cross_entropy_forward(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int = -100, reduction: str = "mean"
) -> tuple[Tensor, Tensor, Tensor]:
    number = reduction_number(reduction)
    log_p = OPERATORS["log_softmax"](input, 1)
    output, total = OPERATORS["nll_loss_forward"](log_p, target, weight, number, ignore_index)
    scores, log_p = wide(input.detach()), wide(log_p.detach())
    if scores.numel() == 0:
        return output, total, scores.new_zeros((2, scores.shape[0]))
    # The log-softmax of the largest score is minus the logarithm of the sum.
    largest, sums = OPERATORS["amax"](scores, 1), -OPERATORS["amax"](log_p, 1)
    return output, total, OPERATORS["stack"]((largest, sums))


@decomposes("cross_entropy_backward")
def cross_entropy_backward(
    grad: Tensor,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    total_weight: Tensor,
    statistics: Tensor,
) -> Tensor:
    log_p = OPERATORS["log_softmax"](input, 1)
    through = OPERATORS["nll_loss_backward"](
        grad, log_p, target, weight, reduction_number(reduction), ignore_index, total_weight
    )
    return OPERATORS["log_softmax_backward"](through, log_p, 1)


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
