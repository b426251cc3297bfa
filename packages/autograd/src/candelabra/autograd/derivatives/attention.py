"""The gradient of attention.

Uses the fused backward operator, which decomposes when it is differentiated itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from candelabra import ops

from ..table import joint_derivative

if TYPE_CHECKING:
    from candelabra import Tensor


def _attention(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Any,
    result: Tensor,
    result1: Tensor,
    is_causal: bool,
    scale: float,
    needs: tuple[bool, bool, bool],
) -> tuple[Any, ...]:
    # scaled_dot_product_attention does not use this operator if the mask requires grad.
    gradients = ops._scaled_dot_product_attention_backward(
        grad, query, key, value, mask, result, result1, is_causal, scale
    )
    return tuple(gradient if needed else None for gradient, needed in zip(gradients, needs, strict=True))


joint_derivative("_scaled_dot_product_attention", ("query", "key", "value"), _attention)
