"""Checks of the operators' arguments, and the tensors that their kernels write.

The errors are those of torchvision. What a kernel relies on is checked here, or by the kernel if it
depends on values.
"""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.library import get_ctx

#: Kernels count pixels in int32.
_MOST_PIXELS = 2**31 - 1


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise RuntimeError(message)


def _check_same_dtype(one: str, first: Tensor, other: str, second: Tensor) -> None:
    _check(
        first.dtype == second.dtype,
        f"Expected tensor for {one} to have the same type as tensor for {other}; but type {first.dtype} does not "
        f"equal {second.dtype}",
    )


# ---- boxes


def _check_nms(dets: Tensor, scores: Tensor) -> None:
    _check(dets.dim() == 2, f"boxes should be a 2d tensor, got {dets.dim()}D")
    _check(dets.size(1) == 4, f"boxes should have 4 elements in dimension 1, got {dets.size(1)}")
    _check(scores.dim() == 1, f"scores should be a 1d tensor, got {scores.dim()}D")
    _check(
        dets.size(0) == scores.size(0),
        f"boxes and scores should have same number of elements in dimension 0, got {dets.size(0)} and {scores.size(0)}",
    )
    _check(dets.dtype == scores.dtype, "dets should have the same type as scores")


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Any:
    """Check the arguments, and return the dtype of the result: the kernel allocates it."""
    _check_nms(dets, scores)
    return candelabra.int64


def nms_of_unknown_size(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Return what the result of ``nms`` is like."""
    _check_nms(dets, scores)
    size = get_ctx().new_dynamic_size()
    return dets.new_empty(size, dtype=candelabra.int64)


def box_iou_rotated(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Check the arguments, and return the memory of the result."""
    for name, boxes, letter in (("boxes1", boxes1, "N"), ("boxes2", boxes2, "M")):
        _check(
            boxes.dim() == 2 and boxes.size(1) == 5,
            f"{name} should have shape ({letter}, 5), got {list(boxes.shape)}",
        )
    _check(boxes1.dtype == boxes2.dtype, "boxes1 and boxes2 must have the same dtype")
    return boxes1.new_empty((boxes1.size(0), boxes2.size(0)), dtype=candelabra.float32)


# ---- regions of interest


def _check_rois(name: str, input: Tensor, rois: Tensor) -> None:
    # As in torchvision, a tensor with too few dimensions raises IndexError.
    _check(rois.size(1) == 5, "rois must have shape as Tensor[K, 5]")
    _check(rois.dim() == 2, "rois must have shape as Tensor[K, 5]")
    _check_same_dtype(name, input, "rois", rois)
    input.size(3)
    _check(input.dim() == 4, f"{name} must have shape as Tensor[N, C, H, W], but got {input.dim()} dimensions")


def _check_pooled(pooled_height: int, pooled_width: int) -> None:
    _check(
        pooled_height >= 0 and pooled_width >= 0,
        f"the pooled size must not be negative, but got {pooled_height} x {pooled_width}",
    )


def _pooled(input: Tensor, rois: Tensor, channels: int, pooled_height: int, pooled_width: int) -> Tensor:
    return input.new_empty((rois.size(0), channels, pooled_height, pooled_width))


def _positions(pooled: Tensor) -> Tensor:
    return pooled.new_empty(tuple(pooled.shape), dtype=candelabra.int32)


def _grad_input(grad: Tensor, rois: Tensor, pooled: tuple[int, ...], sizes: tuple[int, ...]) -> Tensor:
    _check_rois("grad", grad, rois)
    _check(min(sizes) >= 0, f"the sizes of the input must not be negative, but got {list(sizes)}")
    expected = (rois.size(0), *pooled)
    _check(
        tuple(grad.shape) == expected, f"expected grad to have the sizes {list(expected)}, but got {list(grad.shape)}"
    )
    return grad.new_empty(sizes)


def _check_positions(name: str, positions: Tensor, grad: Tensor) -> None:
    _check(
        positions.dtype == candelabra.int32 and positions.shape == grad.shape,
        f"expected {name} to be of dtype int32 and to have the sizes of grad, {list(grad.shape)}, but got "
        f"{positions.dtype} and {list(positions.shape)}",
    )


def roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int, aligned: bool
) -> Tensor:  # fmt: skip
    """Check the arguments, and return the memory of the result."""
    _check_rois("input", input, rois)
    _check_pooled(pooled_height, pooled_width)
    return _pooled(input, rois, input.size(1), pooled_height, pooled_width)


def roi_align_backward(
    grad: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, batch_size: int, channels: int,
    height: int, width: int, sampling_ratio: int, aligned: bool,
) -> Tensor:  # fmt: skip
    """Check the arguments, and return the memory of the result."""
    return _grad_input(grad, rois, (channels, pooled_height, pooled_width), (batch_size, channels, height, width))


def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """Check the arguments, and return the memory of the results."""
    _check_rois("input", input, rois)
    _check_pooled(pooled_height, pooled_width)
    made = _pooled(input, rois, input.size(1), pooled_height, pooled_width)
    return made, _positions(made)


def roi_pool_backward(
    grad: Tensor, rois: Tensor, argmax: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, batch_size: int,
    channels: int, height: int, width: int,
) -> Tensor:  # fmt: skip
    """Check the arguments, and return the memory of the result."""
    made = _grad_input(grad, rois, (channels, pooled_height, pooled_width), (batch_size, channels, height, width))
    _check_positions("argmax", argmax, grad)
    return made


def _channels_per_bin(channels: int, pooled_height: int, pooled_width: int) -> int:
    bins = pooled_height * pooled_width
    _check_pooled(pooled_height, pooled_width)
    _check(bins > 0 and channels % bins == 0, "input channels must be a multiple of pooling height * pooling width")
    return channels // bins


def ps_roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int = 0
) -> tuple[Tensor, Tensor]:
    """Check the arguments, and return the memory of the results."""
    _check_rois("input", input, rois)
    channels = _channels_per_bin(input.size(1), pooled_height, pooled_width)
    made = _pooled(input, rois, channels, pooled_height, pooled_width)
    return made, _positions(made)


ps_roi_pool = ps_roi_align


def ps_roi_pool_backward(
    grad: Tensor, rois: Tensor, channel_mapping: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
    batch_size: int, channels: int, height: int, width: int,
) -> Tensor:  # fmt: skip
    """Check the arguments, and return the memory of the result."""
    pooled = (_channels_per_bin(channels, pooled_height, pooled_width), pooled_height, pooled_width)
    made = _grad_input(grad, rois, pooled, (batch_size, channels, height, width))
    _check_positions("channel_mapping", channel_mapping, grad)
    return made


def ps_roi_align_backward(
    grad: Tensor, rois: Tensor, channel_mapping: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
    sampling_ratio: int, *sizes: int,
) -> Tensor:  # fmt: skip
    """Check the arguments, and return the memory of the result."""
    return ps_roi_pool_backward(grad, rois, channel_mapping, spatial_scale, pooled_height, pooled_width, *sizes)


# ---- deformable convolution, whose arguments `deform_conv2d` checks


def _check_columns(
    input: Tensor, offset: Tensor, mask: Tensor | None, kernel: tuple[int, ...], steps: tuple[tuple[int, ...], ...], groups: int
) -> tuple[int, int, int]:  # fmt: skip
    """Check what the kernels read, and return the sizes of the columns."""
    _check(all(len(one) == 2 for one in (kernel, *steps)), "expected two numbers for each of the steps")
    _check(input.dim() == 4 and offset.dim() == 4, "expected input and offset to have 4 dimensions")
    batch, channels, height, width = input.shape
    taps = kernel[0] * kernel[1]
    _check(min(*kernel, *steps[2]) > 0, "expected a positive kernel size and a positive dilation")
    _check(groups > 0 and channels % groups == 0, "expected the channels to be a multiple of the groups")
    _check(height * width <= _MOST_PIXELS, "an image has more pixels than int32 counts")
    positions = tuple(offset.shape[2:])
    for tensor, count in ((offset, 2), (mask, 1)):
        if tensor is not None:
            expected = (batch, count * groups * taps, *positions)
            _check(
                tuple(tensor.shape) == expected and tensor.dtype == input.dtype,
                f"expected offset and mask of {input.dtype} with the sizes {list(expected)}, but got {tensor.dtype} "
                f"and {list(tensor.shape)}",
            )
    return batch, channels * taps, positions[0] * positions[1]


def deformable_im2col(
    input: Tensor, offset: Tensor, mask: Tensor | None, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:  # fmt: skip
    """Check the arguments, and return the memory of the result."""
    return input.new_empty(_check_columns(input, offset, mask, kernel, (stride, padding, dilation), groups))


def deformable_col2im(
    columns: Tensor, input: Tensor, offset: Tensor, mask: Tensor | None, kernel: Any, stride: Any, padding: Any,
    dilation: Any, groups: int,
) -> Tensor:  # fmt: skip
    """Check the arguments, and return the memory of the result."""
    expected = _check_columns(input, offset, mask, kernel, (stride, padding, dilation), groups)
    _check(
        tuple(columns.shape) == expected and columns.dtype == input.dtype,
        f"expected columns of {input.dtype} with the sizes {list(expected)}, but got {columns.dtype} and {list(columns.shape)}",
    )
    return input.new_empty(tuple(input.shape))


def deformable_col2im_coord(
    columns: Tensor, input: Tensor, offset: Tensor, mask: Tensor | None, *steps: Any
) -> tuple[Tensor, Tensor]:
    """Check the arguments, and return the memory of the results."""
    deformable_col2im(columns, input, offset, mask, *steps)
    return offset.new_empty(tuple(offset.shape)), offset.new_empty((0,) if mask is None else tuple(mask.shape))
