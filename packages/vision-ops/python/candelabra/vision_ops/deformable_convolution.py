"""Deformable convolution: sampled columns, multiplied by the weights.

Images are computed in parts, so that the columns take a limited amount of memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import candelabra
from candelabra import Tensor, ops

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The elements of the columns of one part.
_COLUMN_ELEMENTS = 1 << 24


class _Steps(NamedTuple):
    """The arguments of the kernels: sizes by dimension, and the number of offset groups."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise RuntimeError(message)


def _out_size(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return (size + 2 * padding - (dilation * (kernel - 1) + 1)) // stride + 1


def _checked(
    input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int, stride_w: int, pad_h: int,
    pad_w: int, dilation_h: int, dilation_w: int, groups: int, offset_groups: int, use_mask: bool,
) -> _Steps:  # fmt: skip
    """Check the arguments as torchvision does, with its messages."""
    for name, tensor in (
        ("input", input),
        ("offset", offset),
        ("weight", weight),
        *([("mask", mask)] if use_mask else []),
    ):
        _check(tensor.dim() == 4, f"expected {name} to have 4 dimensions, but got {tensor.dim()}")
        _check(
            tensor.dtype == input.dtype,
            f"expected {name} to have the dtype of input, {input.dtype}, but got {tensor.dtype}",
        )
    kernel = (weight.size(2), weight.size(3))
    _check(min(kernel) > 0, f"weight_h: {kernel[0]} weight_w: {kernel[1]}")
    _check(min(stride_h, stride_w) > 0, f"stride_h: {stride_h} stride_w: {stride_w}")
    _check(min(pad_h, pad_w) >= 0, f"pad_h: {pad_h} pad_w: {pad_w}")
    _check(min(dilation_h, dilation_w) > 0, f"dilation_h: {dilation_h} dilation_w: {dilation_w}")
    batch, channels, height, width = input.shape
    out = (
        _out_size(height, kernel[0], stride_h, pad_h, dilation_h),
        _out_size(width, kernel[1], stride_w, pad_w, dilation_w),
    )
    _check(
        groups > 0 and weight.size(1) * groups == channels and weight.size(0) % groups == 0,
        f"weight of the sizes {list(weight.shape)} in {groups} group(s) does not fit {channels} input channels",
    )
    taps = kernel[0] * kernel[1]
    _check(
        offset_groups > 0 and channels % offset_groups == 0,
        f"{channels} input channels are no multiple of {offset_groups} offset groups",
    )
    for name, tensor, count in (("offset", offset, 2), *([("mask", mask, 1)] if use_mask else [])):
        expected = count * offset_groups * taps
        _check(tensor.size(1) == expected, f"{name}.shape[1] is not valid: got: {tensor.size(1)} expected: {expected}")
        _check(tensor.size(0) == batch, f"invalid batch size of {name}")
        _check(
            tuple(tensor.shape[2:]) == out,
            f"{name} output dims: ({tensor.size(2)}, {tensor.size(3)}) - computed output dims: ({out[0]}, {out[1]})",
        )
    _check(mask.dim() > 0 and mask.size(0) == batch, "invalid batch size of mask")
    _check(min(out) > 0, f"Calculated output size too small - out_h: {out[0]} out_w: {out[1]}")
    _check(
        tuple(bias.shape) == (weight.size(0),),
        f"expected bias to have the sizes [{weight.size(0)}], but got {list(bias.shape)}",
    )
    return _Steps(kernel, (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w), offset_groups)


def describe(input: Tensor, weight: Tensor, offset: Tensor, *others: Any) -> Tensor:
    """Return what the result of ``deform_conv2d`` is like."""
    return input.new_empty((input.size(0), weight.size(0), *offset.shape[-2:]))


def _parts(input: Tensor, offset: Tensor, steps: _Steps) -> Iterator[slice]:
    batch, channels = input.shape[:2]
    elements = channels * steps.kernel[0] * steps.kernel[1] * offset.size(2) * offset.size(3)
    count = max(1, _COLUMN_ELEMENTS // max(elements, 1))
    return (slice(start, min(start + count, batch)) for start in range(0, batch, count))


def _grouped(weight: Tensor, groups: int) -> Tensor:
    """Return the weights as a matrix for each group."""
    return weight.reshape(groups, weight.size(0) // groups, -1)


def forward(input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, *numbers: Any) -> Tensor:
    """Compute ``torchvision::deform_conv2d``."""
    steps = _checked(input, weight, offset, mask, bias, *numbers)
    groups, use_mask = numbers[6], numbers[8]
    matrices = _grouped(weight, groups)
    out = describe(input, weight, offset)
    for part in _parts(input, offset, steps):
        columns = ops.vision_ops.deformable_im2col(input[part], offset[part], mask[part] if use_mask else None, *steps)
        products = matrices @ columns.reshape(columns.size(0), groups, -1, columns.size(2))
        shape = tuple(out[part].shape)
        candelabra.add(products.reshape(shape), bias.to(out.dtype).reshape(-1, 1, 1), out=out[part])
    return out


def backward(
    grad: Tensor, input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, *numbers: Any
) -> tuple[Tensor, ...]:
    """Compute ``torchvision::_deform_conv2d_backward``: the gradients of the five tensors."""
    steps = _checked(input, weight, offset, mask, bias, *numbers)
    expected = tuple(describe(input, weight, offset).shape)
    _check(
        tuple(grad.shape) == expected and grad.dtype == input.dtype,
        f"expected grad of {input.dtype} with the sizes {list(expected)}, but got {grad.dtype} and {list(grad.shape)}",
    )
    groups, use_mask = numbers[6], numbers[8]
    matrices = _grouped(weight, groups)
    grad_matrices = candelabra.zeros_like(matrices)
    grad_input, grad_offset = candelabra.empty_like(input), candelabra.empty_like(offset)
    grad_mask = candelabra.empty_like(mask) if use_mask else candelabra.zeros_like(mask)
    for part in _parts(input, offset, steps):
        masks = mask[part] if use_mask else None
        images, offsets = input[part], offset[part]
        grads = grad[part].reshape(images.size(0), groups, weight.size(0) // groups, -1)
        grad_columns = (matrices.mT @ grads).reshape(images.size(0), -1, grads.size(3))
        at = (images, offsets, masks, *steps)
        columns = ops.vision_ops.deformable_im2col(*at)
        grad_matrices += (grads @ columns.reshape(images.size(0), groups, -1, columns.size(2)).mT).sum(0)
        grad_input[part] = ops.vision_ops.deformable_col2im(grad_columns, *at)
        of_offsets, of_masks = ops.vision_ops.deformable_col2im_coord(grad_columns, *at)
        grad_offset[part] = of_offsets
        if use_mask:
            grad_mask[part] = of_masks
    grad_bias = grad.sum((0, 2, 3)).to(bias.dtype)
    return grad_input, grad_matrices.reshape(tuple(weight.shape)), grad_offset, grad_mask, grad_bias
