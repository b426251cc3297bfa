"""Convolution and pooling over three spatial dimensions; a convolution is made of those over two, the depth walked over slice by slice."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Tensor, ops
from candelabra.composite.transformed import is_differentiated

from .convolution import _batched, _numbers
from .pooling import _steps


def _slices(input: Tensor) -> Tensor:
    """(N, C, D, H, W) as (N * D, C, H, W)."""
    return input.transpose(1, 2).flatten(0, 1)


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
    return _largest3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def _largest3d(
    input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, return_indices: bool
) -> Any:
    """Return the largest values and their positions, or None where neither positions nor a gradient are wanted."""
    function = "max_pool3d"
    input, batched = _batched(input, 3, function)
    kernel = _numbers(kernel_size, 3, "kernel_size")
    strides, paddings, dilations = (
        _steps(stride, kernel, 3, function),
        _numbers(padding, 3, "padding"),
        _numbers(dilation, 3, "dilation"),
    )
    _checked(function, input, kernel, strides, paddings)
    outputs = [_windows(input.shape[2 + i], kernel[i], strides[i], paddings[i], dilations[i], ceil_mode) for i in range(3)]
    _check_outputs(function, input, outputs)
    windows = kernel, strides, paddings, dilations, ceil_mode
    if not return_indices and not is_differentiated(input):  # nobody will ask where the largest elements are
        output, at = ops.max_pool_values(input, *windows), None
    else:
        output, at = ops.max_pool(input, *windows)
    return (output, at) if batched else (output.squeeze(0), at if at is None else at.squeeze(0))


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
    made = _largest3d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
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
    output = ops.avg_pool(input, kernel, strides, paddings, ceil_mode, count_include_pad, divisor_override)
    output = output if batched else output.squeeze(0)
    return output if out is None else candelabra._C.give_to_out(function, out, output)


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
    output = ops.adaptive_avg_pool(input, size)
    return output if batched else output.squeeze(0)


def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """The largest values of as many windows as the output has positions, and their positions in the volume."""
    if input.ndim < 4:
        raise ValueError(f"Input dimension should be at least 4, but got an input of {input.ndim} dimensions")
    input, batched = _batched(input, 3, "adaptive_max_pool3d")
    size = _sizes(output_size, input, "adaptive_max_pool3d")
    output, at = ops.adaptive_max_pool(input, size)
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
    "adaptive_avg_pool3d", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "avg_pool3d",
    "lp_pool3d", "max_pool3d", "max_pool3d_with_indices",
]  # fmt: skip
