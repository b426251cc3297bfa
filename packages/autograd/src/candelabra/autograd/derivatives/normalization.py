"""Gradients of normalization.

Uses the fused backward operators, which decompose when they are differentiated themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from candelabra import ops

from ..table import joint_derivative

if TYPE_CHECKING:
    from candelabra import Tensor

_INPUTS = ("input", "weight", "bias")
Needs = tuple[bool, bool, bool]


def _chosen(gradients: tuple[Tensor, Tensor, Tensor], needs: Needs) -> tuple[Any, Any, Any]:
    """Keep only the needed gradients; without a weight, the last two are empty."""
    of_input, of_weight, of_bias = gradients
    return of_input if needs[0] else None, of_weight if needs[1] else None, of_bias if needs[2] else None


def _sum_of_channels(grad: Tensor) -> Tensor:
    return grad.sum([dim for dim in range(grad.ndim) if dim != 1])


def _batch_norm(
    grad: Tensor, input: Tensor, weight: Any, result1: Tensor, result2: Tensor, training: bool, needs: Needs
) -> Any:
    made = _chosen(ops.native_batch_norm_backward(grad, input, weight, result1, result2, training), needs)
    if weight is None and needs[2]:
        return made[0], made[1], _sum_of_channels(grad)
    return made


def _layer_norm(
    grad: Tensor, input: Tensor, normalized_shape: Any, weight: Any, result1: Tensor, result2: Tensor, needs: Needs
) -> Any:
    made = _chosen(ops.native_layer_norm_backward(grad, input, normalized_shape, result1, result2, weight), needs)
    if weight is None and needs[2]:
        outer = tuple(range(grad.ndim - len(normalized_shape)))
        return made[0], made[1], grad.sum(outer) if outer else grad
    return made


def _group_norm(
    grad: Tensor, input: Tensor, result1: Tensor, result2: Tensor, weight: Any, num_groups: int, needs: Needs
) -> Any:
    made = _chosen(ops.native_group_norm_backward(grad, input, result1, result2, weight, num_groups), needs)
    if weight is None and needs[2]:
        return made[0], made[1], _sum_of_channels(grad)
    return made


def _rms_norm(
    grad: Tensor, input: Tensor, normalized_shape: Any, weight: Any, result1: Tensor, needs: tuple[bool, bool]
) -> Any:
    of_input, of_weight = ops._fused_rms_norm_backward(grad, input, normalized_shape, result1, weight)
    return of_input if needs[0] else None, of_weight if needs[1] else None


joint_derivative("native_batch_norm", _INPUTS, _batch_norm)
joint_derivative("native_layer_norm", _INPUTS, _layer_norm)
joint_derivative("native_group_norm", _INPUTS, _group_norm)
joint_derivative("_fused_rms_norm", ("input", "weight"), _rms_norm)
