"""Gradients of losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from candelabra import ops

from ..table import derivative

if TYPE_CHECKING:
    from candelabra import Tensor


def _nll(grad: Tensor, self: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int, result1: Tensor) -> Tensor:
    return ops.nll_loss_backward(grad, self, target, weight, reduction, ignore_index, result1)


derivative("nll_loss_forward", title="NllLoss", self=_nll)


def _nll_backward(upper: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int) -> Tensor:
    # The backward pass is linear in its gradient, with the forward pass as its transpose.
    return ops.nll_loss_forward(upper, target, weight, reduction, ignore_index)[0]


derivative("nll_loss_backward", grad=_nll_backward)
