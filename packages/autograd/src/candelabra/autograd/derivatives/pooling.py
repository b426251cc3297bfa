"""Gradients of pooling.

Average pooling is linear, so the gradient of its backward pass is a forward pass. The gradient of
the backward pass of max pooling gathers from the selected positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from candelabra import ops

from ..table import derivative

if TYPE_CHECKING:
    from candelabra import Tensor

for _name in ("max_pool", "adaptive_max_pool"):
    derivative(_name, self=lambda grad, result1, self_shape: ops.max_pool_backward(grad, result1, self_shape))


def _read_planes(upper: Tensor, indices: Tensor) -> Tensor:
    """Gather from each flattened plane at `indices`."""
    leading = upper.shape[:2]
    return upper.reshape((*leading, -1)).gather(2, indices.reshape((*leading, -1))).reshape(indices.shape)


derivative("max_pool_backward", grad=lambda upper, indices: _read_planes(upper, indices))
derivative(
    "avg_pool",
    self=lambda grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, self_shape: (
        ops.avg_pool_backward(
            grad, self_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )
    ),
)
derivative(
    "avg_pool_backward",
    grad=lambda upper, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: ops.avg_pool(
        upper, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    ),
)
derivative("adaptive_avg_pool", self=lambda grad, self_shape: ops.adaptive_avg_pool_backward(grad, self_shape))
derivative("adaptive_avg_pool_backward", grad=lambda upper, grad_shape: ops.adaptive_avg_pool(upper, grad_shape[2:]))
