"""Gradients of resampling, of values at places and of padded edges.

Resampling and padding are linear: the gradient of a backward pass is a forward pass. Taking values at places is not linear in the
places; its backward operator decomposes where it is differentiated itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from candelabra import ops

from ..table import derivative, joint_derivative

if TYPE_CHECKING:
    from candelabra import Tensor

derivative(
    "resample",
    self=lambda grad, self_shape, scales, mode, align_corners, antialias: ops.resample_backward(
        grad, self_shape, scales, mode, align_corners, antialias
    ),
)
derivative(
    "resample_backward",
    grad=lambda upper, grad_shape, scales, mode, align_corners, antialias: ops.resample(
        upper, grad_shape[2:], scales, mode, align_corners, antialias
    ),
)
derivative(
    "patches",
    self=lambda grad, self_shape, kernel_size, dilation, padding, stride: ops.patches_backward(
        grad, self_shape[2:], kernel_size, dilation, padding, stride
    ),
)
derivative(
    "patches_backward",
    grad=lambda upper, kernel_size, dilation, padding, stride: ops.patches(upper, kernel_size, dilation, padding, stride),
)
derivative("pad_constant", self=lambda grad, padding: ops.pad_constant(grad, [-amount for amount in padding], 0))
derivative("pad_edges", self=lambda grad, self_shape, padding, mode: ops.pad_edges_backward(grad, self_shape, padding, mode))
derivative("pad_edges_backward", grad=lambda upper, padding, mode: ops.pad_edges(upper, padding, mode))


def _grid_sampler(
    grad: Tensor, self: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool, needs: tuple[bool, bool]
) -> tuple[Any, ...]:
    gradients = ops.grid_sampler_backward(grad, self, grid, mode, padding_mode, align_corners, needs)
    return tuple(gradient if needed else None for gradient, needed in zip(gradients, needs, strict=True))


joint_derivative("grid_sampler", ("self", "grid"), _grid_sampler)
