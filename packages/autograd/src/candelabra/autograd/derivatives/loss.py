"""Gradients of losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from candelabra import is_grad_enabled, ops
from candelabra.composite.transformed import is_differentiated_outside

from ..table import derivative
from .ctc import ctc_gradient

if TYPE_CHECKING:
    from candelabra import Tensor


def _nll(
    grad: Tensor, self: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int, result1: Tensor
) -> Tensor:
    return ops.nll_loss_backward(grad, self, target, weight, reduction, ignore_index, result1)


derivative("nll_loss_forward", title="NllLoss", self=_nll)


def _nll_backward(upper: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int) -> Tensor:
    # The backward pass is linear in `grad`, and its transpose is the forward pass.
    return ops.nll_loss_forward(upper, target, weight, reduction, ignore_index)[0]


derivative("nll_loss_backward", grad=_nll_backward)


def _cross_entropy(
    grad: Tensor,
    input: Tensor,
    target: Tensor,
    weight: Any,
    ignore_index: int,
    reduction: str,
    result1: Tensor,
    result2: Tensor,
) -> Tensor:
    # cross_entropy_backward has no row here: it is differentiated through its decomposition.
    return ops.cross_entropy_backward(grad, input, target, weight, ignore_index, reduction, result1, result2)


derivative("cross_entropy_forward", title="CrossEntropy", input=_cross_entropy)


def _ctc(
    grad: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    result: Tensor,
    result1: Tensor,
    blank: int,
    zero_infinity: bool,
) -> Tensor:
    if is_grad_enabled() or is_differentiated_outside(grad) or is_differentiated_outside(log_probs):
        return ctc_gradient(grad, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    return ops._ctc_loss_backward(
        grad, log_probs, targets, input_lengths, target_lengths, result, result1, blank, zero_infinity
    )


def _ctc_twice(grad: Tensor) -> Tensor:
    raise RuntimeError(
        "derivative for _ctc_loss_backward is not implemented: differentiate _ctc_loss with create_graph=True instead, whose "
        "gradient is then made of operators that can be differentiated"
    )


derivative("_ctc_loss", title="CtcLoss", log_probs=_ctc)
derivative("_ctc_loss_backward", grad=_ctc_twice, log_probs=_ctc_twice)


# ---- elementwise losses

derivative(
    "squared_error",
    broadcast=True,
    self=lambda grad, self, target: ops.squared_error_backward(grad, self, target),
    target=lambda grad, self, target: -ops.squared_error_backward(grad, self, target),
)
derivative(
    "huber_error",
    broadcast=True,
    self=lambda grad, self, target, delta, scale: ops.huber_error_backward(grad, self, target, delta, scale),
    target=lambda grad, self, target, delta, scale: -ops.huber_error_backward(grad, self, target, delta, scale),
)
derivative(
    "logits_cross_entropy",
    broadcast=True,
    self=lambda grad, self, target: ops.logits_cross_entropy_backward(grad, self, target),
    target=lambda grad, self: -grad * self,
)
derivative(
    "probability_cross_entropy",
    broadcast=True,
    self=lambda grad, self, target: ops.probability_cross_entropy_backward(grad, self, target),
    target=lambda grad, self: grad * ((-self).log1p().clamp(min=-100) - self.log().clamp(min=-100)),
)
