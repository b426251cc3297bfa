"""Convolution and pooling over three spatial dimensions, made of those over two: the depth is walked over slice by slice."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Tensor, ops

from .convolution import _batched, _numbers, conv2d
from .pooling import (
    _steps,
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    max_pool2d_with_indices,
)

_HALVES = (candelabra.float16, candelabra.bfloat16)


def _slices(input: Tensor) -> Tensor:
    """(N, C, D, H, W) as (N * D, C, H, W)."""
    return input.transpose(1, 2).flatten(0, 1)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation over three spatial dimensions.

    Shapes: input (N, C_in, D, H, W) or (C_in, D, H, W), weight (C_out, C_in / groups, KD, KH, KW), bias (C_out). `padding` may be
    ``"same"`` or ``"valid"``. It is the sum of KD convolutions over two dimensions.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.conv3d(candelabra.ones(1, 1, 3, 3, 3), candelabra.ones(1, 1, 2, 2, 2)).flatten()
    tensor([8., 8., 8., 8., 8., 8., 8., 8.])
    """
    if input.dtype in _HALVES and weight.dtype is input.dtype:
        # The slices are added in single precision.
        wide = bias if bias is None else bias.float()
        return conv3d(input.float(), weight.float(), wide, stride, padding, dilation, groups).to(input.dtype)
    input, batched = _batched(input, 3, "conv3d")
    if weight.ndim != 5:
        raise RuntimeError(f"Expected 5-dimensional input for 5-dimensional weight, but got a weight of size {list(weight.shape)}")
    stride, dilation = _numbers(stride, 3, "stride"), _numbers(dilation, 3, "dilation")
    if any(step <= 0 for step in stride):
        raise RuntimeError(f"non-positive stride is not supported, but got stride={list(stride)}")
    kernel = tuple(weight.shape[2:])
    if isinstance(padding, str):
        from .padding import pad

        if padding == "same":
            if any(step != 1 for step in stride):
                raise RuntimeError("padding='same' is not supported for strided convolutions")
            totals = [dilation[i] * (kernel[i] - 1) for i in range(3)]
            input = pad(input, [side for total in reversed(totals) for side in (total // 2, total - total // 2)])
        elif padding != "valid":
            raise RuntimeError(f"Invalid padding string: '{padding}'")
        amounts: tuple[int, ...] = (0, 0, 0)
    else:
        amounts = _numbers(padding, 3, "padding")
    if any(amount < 0 for amount in amounts):
        raise RuntimeError("negative padding is not supported")
    depth, reach = input.shape[2], dilation[0] * (kernel[0] - 1) + 1
    outputs = (depth + 2 * amounts[0] - reach) // stride[0] + 1
    if outputs <= 0:
        raise RuntimeError(
            f"Calculated padded input size per channel: {[n + 2 * p for n, p in zip(input.shape[2:], amounts, strict=True)]}. Kernel size: "
            f"{list(kernel)}. Kernel size can't be greater than actual input size"
        )
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        raise RuntimeError(
            f"Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional with {weight.shape[0]} elements, but got bias "
            f"of size {list(bias.shape)} instead"
        )
    if amounts[0]:
        zeros = input.new_zeros((*input.shape[:2], amounts[0], *input.shape[3:]))
        input = candelabra.cat([zeros, input, zeros], 2)
    total: Any = None
    for k in range(kernel[0]):
        start = k * dilation[0]
        part = input[:, :, start : start + (outputs - 1) * stride[0] + 1 : stride[0]]
        made = conv2d(_slices(part), weight[:, :, k], bias if k == 0 else None, stride[1:], amounts[1:], dilation[1:], groups)
        total = made if total is None else total + made
    output = total.unflatten(0, (input.shape[0], outputs)).transpose(1, 2)
    return output if batched else output.squeeze(0)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Transposed convolution over three spatial dimensions.

    Shapes: input (N, C_in, D, H, W) or (C_in, D, H, W), weight (C_in, C_out / groups, KD, KH, KW), bias (C_out).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.conv_transpose3d(candelabra.ones(1, 1, 2, 2, 2), candelabra.ones(1, 3, 2, 2, 2), stride=2).shape
    candelabra.Size([1, 3, 4, 4, 4])
    """
    from .convolution import conv_transpose2d

    if input.dtype in _HALVES and weight.dtype is input.dtype:
        wide = bias if bias is None else bias.float()
        return conv_transpose3d(input.float(), weight.float(), wide, stride, padding, output_padding, groups, dilation).to(
            input.dtype
        )
    input, batched = _batched(input, 3, "conv_transpose3d")
    if weight.ndim != 5:
        raise RuntimeError(f"conv_transpose3d: expected a weight of 5 dimensions, but got a weight of size {list(weight.shape)}")
    stride, dilation = _numbers(stride, 3, "stride"), _numbers(dilation, 3, "dilation")
    padding, extra = _numbers(padding, 3, "padding"), _numbers(output_padding, 3, "output_padding")
    if extra[0] >= stride[0] and extra[0] >= dilation[0]:
        raise RuntimeError(
            f"output padding must be smaller than either stride or dilation, but got output_padding: {list(extra)} stride: "
            f"{list(stride)} dilation: {list(dilation)}"
        )
    batch, depth, kernel = input.shape[0], input.shape[2], weight.shape[2]
    size = (depth - 1) * stride[0] - 2 * padding[0] + dilation[0] * (kernel - 1) + extra[0] + 1
    if size <= 0:
        raise RuntimeError(
            f"Given input size per channel: {list(input.shape[2:])}. Calculated output depth: {size}. Output size is too small"
        )
    flat = _slices(input)
    places = candelabra.arange(depth, device=input.device) * stride[0]
    whole: Any = None
    for k in range(kernel):
        made = conv_transpose2d(flat, weight[:, :, k], None, stride[1:], padding[1:], extra[1:], groups, dilation[1:])
        made = made.unflatten(0, (batch, depth)).transpose(1, 2)
        if whole is None:
            whole = made.new_zeros((*made.shape[:2], size + 2 * padding[0], *made.shape[3:]))
        whole = whole.index_add(2, places + k * dilation[0], made)
    output = whole.narrow(2, padding[0], size)
    if bias is not None:
        if tuple(bias.shape) != (output.shape[1],):
            raise RuntimeError(
                f"Given transposed=1, weight of size {list(weight.shape)}, expected bias to be 1-dimensional with {output.shape[1]} "
                f"elements, but got bias of size {list(bias.shape)} instead"
            )
        output = output + bias.reshape(1, -1, 1, 1, 1)
    return output if batched else output.squeeze(0)


# ---- pooling


def _checked(function: str, input: Tensor, kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...]) -> None:
    if any(k <= 0 for k in kernel):
        raise RuntimeError(f"{function}: kernel size should be greater than zero, but got {list(kernel)}")
    if any(s <= 0 for s in stride):
        raise RuntimeError(f"{function}: stride should not be zero, but got {list(stride)}")
    if any(2 * p > k for p, k in zip(padding, kernel, strict=True)):
        raise RuntimeError(
            f"{function}: pad should be at most half of effective kernel size, but got pad={list(padding)}, kernel_size={list(kernel)}"
        )
    if any(p < 0 for p in padding):
        raise RuntimeError(f"{function}: pad must be non-negative, but got {list(padding)}")
    if any(n == 0 for n in input.shape[1:]):
        raise RuntimeError(
            f"{function}: Expected input's non-batch dimensions to have positive length, but input has a shape of {list(input.shape)}"
        )


def _windows(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """How many windows there are along a dimension."""
    free = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (free + stride - 1 if ceil_mode else free) // stride + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


def _check_outputs(function: str, input: Tensor, outputs: Any) -> None:
    if any(n < 1 for n in outputs):
        raise RuntimeError(
            f"{function}: Given input size {list(input.shape[1:])}. Calculated output size: {list(outputs)}. Output size is too small"
        )


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """The largest values of windows, and their positions in the volume. Shapes: (N, C, D, H, W) or (C, D, H, W).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.max_pool3d_with_indices(candelabra.arange(8.0).reshape(1, 2, 2, 2), 2)[1].item()
    7
    """
    function = "max_pool3d"
    input, batched = _batched(input, 3, function)
    kernel = _numbers(kernel_size, 3, "kernel_size")
    strides, paddings, dilations = (
        _steps(stride, kernel, 3, function),
        _numbers(padding, 3, "padding"),
        _numbers(dilation, 3, "dilation"),
    )
    _checked(function, input, kernel, strides, paddings)
    depth, height, width = input.shape[2:]
    outputs = [_windows(input.shape[2 + i], kernel[i], strides[i], paddings[i], dilations[i], ceil_mode) for i in range(3)]
    _check_outputs(function, input, outputs)
    values, places = max_pool2d_with_indices(_slices(input), kernel[1:], strides[1:], paddings[1:], dilations[1:], ceil_mode)
    values = values.unflatten(0, (input.shape[0], depth)).transpose(1, 2)
    places = places.unflatten(0, (input.shape[0], depth)).transpose(1, 2)
    # Of each window the slices that lie inside; those that do not are the first inside once more, which wins by being first.
    starts = candelabra.arange(outputs[0], device=input.device).unsqueeze(1) * strides[0] - paddings[0]
    members = starts + candelabra.arange(kernel[0], device=input.device) * dilations[0]
    first = members + ((-members).clamp(min=0) + dilations[0] - 1).div(dilations[0], rounding_mode="floor") * dilations[0]
    first = first[:, :1].expand(members.shape)
    members = candelabra.where((members < 0) | (members >= depth), first, members)
    windows = values.detach().index_select(2, members.reshape(-1)).unflatten(2, tuple(members.shape))
    chosen = ops.max_with_indices(windows, 3)[1]
    slices = members.reshape(1, 1, outputs[0], kernel[0], 1, 1).expand(*windows.shape).gather(3, chosen.unsqueeze(3)).squeeze(3)
    output, at = values.gather(2, slices), places.gather(2, slices) + slices * (height * width)
    return (output, at) if batched else (output.squeeze(0), at.squeeze(0))


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest values of windows over three dimensions. Shapes: (N, C, D, H, W) or (C, D, H, W).

    Parameters
    ----------
    kernel_size, stride, padding, dilation
        One number or three; the stride is the kernel's size by default.
    ceil_mode
        Whether windows may lie partly outside at the end.
    return_indices
        Whether positions in the volume are returned, too.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.max_pool3d(candelabra.arange(8.0).reshape(1, 2, 2, 2), 2).flatten()
    tensor([7.])
    """
    made = max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return made if return_indices else made[0]


def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The means of windows over three dimensions. Shapes: (N, C, D, H, W) or (C, D, H, W).

    Parameters
    ----------
    kernel_size, stride, padding
        One number or three; the stride is the kernel's size by default.
    ceil_mode
        Whether windows may lie partly outside at the end.
    count_include_pad
        Whether the padding counts in what is divided by.
    divisor_override
        What is divided by instead.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.avg_pool3d(candelabra.arange(8.0).reshape(1, 2, 2, 2), 2).flatten()
    tensor([3.5000])
    """
    function = "avg_pool3d"
    input, batched = _batched(input, 3, function)
    kernel = _numbers(kernel_size, 3, "kernel_size")
    strides, paddings = _steps(stride, kernel, 3, function), _numbers(padding, 3, "padding")
    _checked(function, input, kernel, strides, paddings)
    if divisor_override == 0:
        raise RuntimeError(f"{function}: divisor must be not zero")
    if not (input.is_floating_point() or input.is_complex()):
        input = input * 1
    outputs = [_windows(input.shape[2 + i], kernel[i], strides[i], paddings[i], 1, ceil_mode) for i in range(3)]
    _check_outputs(function, input, outputs)
    sums = input.float() if input.dtype in (candelabra.float16, candelabra.bfloat16) else input
    divisor = candelabra.ones((1,) * 5, dtype=candelabra.int64, device=input.device)
    for i in range(3):
        sums, counts = _window_sums(sums, 2 + i, outputs[i], kernel[i], strides[i], paddings[i], count_include_pad)
        shape = [1] * 5
        shape[2 + i] = outputs[i]
        divisor = divisor * counts.reshape(shape)
    if divisor_override is not None:
        output = sums / divisor_override if sums.is_floating_point() else sums.div(divisor_override, rounding_mode="trunc")
    else:
        output = sums / divisor.to(sums.dtype) if sums.is_floating_point() else sums.div(divisor, rounding_mode="trunc")
    output = output.to(input.dtype)
    output = output if batched else output.squeeze(0)
    return output if out is None else candelabra._C.give_to_out(function, out, output)


def _window_sums(
    input: Tensor, dim: int, outputs: int, kernel: int, stride: int, padding: int, count_padding: bool
) -> tuple[Tensor, Tensor]:
    """The sums of windows along a dimension, and how many elements each counts."""
    size = input.shape[dim]
    needed = (outputs - 1) * stride + kernel
    before, after = padding, max(0, needed - size - padding)
    parts = [input]
    for amount, front in ((before, True), (after, False)):
        if amount:
            shape = list(input.shape)
            shape[dim] = amount
            parts.insert(0 if front else len(parts), input.new_zeros(shape))
    padded = candelabra.cat(parts, dim) if len(parts) > 1 else input
    sums = padded.unfold(dim, kernel, stride).narrow(dim, 0, outputs).sum(-1)
    starts = candelabra.arange(outputs, device=input.device) * stride - padding
    ends = (starts + kernel).clamp(max=size + padding)
    counts = ends - starts if count_padding else ends.clamp(max=size) - starts.clamp(min=0)
    return sums, counts


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The norms of windows over three dimensions: ``(sum x^p)^(1/p)``. Shapes: (N, C, D, H, W) or (C, D, H, W)."""
    kernel = _numbers(kernel_size, 3, "kernel_size")
    means = avg_pool3d(input.pow(norm_type), kernel, stride, 0, ceil_mode)
    return (means.sign() * means.abs().relu()).mul(math.prod(kernel)).pow(1.0 / norm_type)


def _sizes(output_size: Any, input: Tensor, function: str) -> tuple[int, ...]:
    sizes = (output_size,) * 3 if output_size is None or isinstance(output_size, int) else tuple(output_size)
    if len(sizes) == 1:
        sizes = sizes * 3
    if len(sizes) != 3:
        raise RuntimeError(f"{function}: output_size must be 3")
    chosen = tuple(input.shape[2 + i] if size is None else size for i, size in enumerate(sizes))
    if any(size < 0 for size in chosen):
        raise RuntimeError(f"{function}: elements of output_size must be greater than or equal to 0, but got {list(chosen)}")
    if any(n == 0 for n in input.shape[1:]):
        raise RuntimeError(
            f"{function}: Expected input to have non-zero size for non-batch dimensions, but input has sizes {list(input.shape)}"
        )
    return chosen


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The means of as many windows as the output has positions. Shapes: (N, C, D, H, W) or (C, D, H, W); None keeps a size.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.adaptive_avg_pool3d(candelabra.arange(8.0).reshape(1, 2, 2, 2), 1).flatten()
    tensor([3.5000])
    """
    if input.ndim < 4:
        raise ValueError(f"Input dimension should be at least 4, but got an input of {input.ndim} dimensions")
    input, batched = _batched(input, 3, "adaptive_avg_pool3d")
    size = _sizes(output_size, input, "adaptive_avg_pool3d")
    wide = input.float() if input.dtype in (candelabra.float16, candelabra.bfloat16) else input
    flat = adaptive_avg_pool2d(_slices(wide), size[1:]).unflatten(0, (input.shape[0], input.shape[2]))
    lines = flat.permute(0, 2, 3, 4, 1).reshape(input.shape[0], input.shape[1] * size[1] * size[2], input.shape[2])
    output = adaptive_avg_pool1d(lines, size[0]).reshape(input.shape[0], input.shape[1], size[1], size[2], size[0])
    output = output.permute(0, 1, 4, 2, 3).contiguous().to(input.dtype)
    return output if batched else output.squeeze(0)


def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """The largest values of as many windows as the output has positions, and their positions in the volume."""
    if input.ndim < 4:
        raise ValueError(f"Input dimension should be at least 4, but got an input of {input.ndim} dimensions")
    input, batched = _batched(input, 3, "adaptive_max_pool3d")
    size = _sizes(output_size, input, "adaptive_max_pool3d")
    batch, channels, depth, height, width = input.shape
    values, places = adaptive_max_pool2d(_slices(input), size[1:], True)
    values, places = (
        part.unflatten(0, (batch, depth)).permute(0, 2, 3, 4, 1).reshape(batch, channels * size[1] * size[2], depth)
        for part in (values, places)
    )
    _, slices = adaptive_max_pool1d(values.detach(), size[0], True)
    output, at = values.gather(2, slices), places.gather(2, slices) + slices * (height * width)
    output, at = (
        part.reshape(batch, channels, size[1], size[2], size[0]).permute(0, 1, 4, 2, 3).contiguous() for part in (output, at)
    )
    return (output, at) if batched else (output.squeeze(0), at.squeeze(0))


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The largest values of as many windows as the output has positions. Shapes: (N, C, D, H, W) or (C, D, H, W).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.adaptive_max_pool3d(candelabra.arange(8.0).reshape(1, 2, 2, 2), 1).flatten()
    tensor([7.])
    """
    made = adaptive_max_pool3d_with_indices(input, output_size)
    return made if return_indices else made[0]


__all__ = [
    "adaptive_avg_pool3d", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "avg_pool3d", "conv3d", "conv_transpose3d",
    "lp_pool3d", "max_pool3d", "max_pool3d_with_indices",
]  # fmt: skip
