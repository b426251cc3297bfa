"""Gradients of resampling, grid sampling and padding.

Resampling and padding are linear, so each backward pass has a forward pass as its gradient. Grid
sampling is not linear in the grid; its backward operator decomposes when it is differentiated
itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from candelabra import ops

from ..table import derivative, joint_derivative

if TYPE_CHECKING:
    from candelabra import Tensor

derivative(
    "_upsample",
    self=lambda grad, self_shape, scales, mode, align_corners, antialias: ops._upsample_backward(
        grad, self_shape, scales, mode, align_corners, antialias
    ),
)
derivative(
    "_upsample_backward",
    grad=lambda upper, grad_shape, scales, mode, align_corners, antialias: ops._upsample(
        upper, grad_shape[2:], scales, mode, align_corners, antialias
    ),
)
derivative(
    "im2col",
    self=lambda grad, self_shape, kernel_size, dilation, padding, stride: ops.col2im(
        grad, self_shape[2:], kernel_size, dilation, padding, stride
    ),
)
derivative(
    "col2im",
    grad=lambda upper, kernel_size, dilation, padding, stride: ops.im2col(
        upper, kernel_size, dilation, padding, stride
    ),
)
derivative(
    "_constant_pad_nd", self=lambda grad, padding: ops._constant_pad_nd(grad, [-amount for amount in padding], 0)
)
derivative(
    "_reflection_replication_pad",
    self=lambda grad, self_shape, padding, mode: ops._reflection_replication_pad_backward(
        grad, self_shape, padding, mode
    ),
)
derivative(
    "_reflection_replication_pad_backward",
    grad=lambda upper, padding, mode: ops._reflection_replication_pad(upper, padding, mode),
)


def _grid_sampler(
    grad: Tensor,
    self: Tensor,
    grid: Tensor,
    mode: str,
    padding_mode: str,
    align_corners: bool,
    needs: tuple[bool, bool],
) -> tuple[Any, ...]:
    gradients = ops.grid_sampler_backward(grad, self, grid, mode, padding_mode, align_corners, needs)
    return tuple(gradient if needed else None for gradient, needed in zip(gradients, needs, strict=True))


joint_derivative("grid_sampler", ("self", "grid"), _grid_sampler)
