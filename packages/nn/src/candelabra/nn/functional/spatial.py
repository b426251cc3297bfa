"""Implement pooling in three dimensions."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Tensor, ops

from .convolution import _batched, _numbers
from .pooling import _maximum, _mean


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the maximum of each window and its flat index in the volume.

    Shapes: (N, C, D, H, W) or (C, D, H, W).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.max_pool3d_with_indices(candelabra.arange(8.0).reshape(1, 2, 2, 2), 2)[1].item()
    7
    """
    made: tuple[Tensor, Tensor] = _maximum(3, input, kernel_size, stride, padding, dilation, ceil_mode, True)
    return made


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maximum of each window. Shapes: (N, C, D, H, W) or (C, D, H, W).

    Parameters
    ----------
    kernel_size, stride, padding, dilation
        One number or three. The stride defaults to the kernel size.
    ceil_mode
        Whether windows at the end may extend past the input.
    return_indices
        Whether to also return the flat indices in the volume.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.max_pool3d(candelabra.arange(8.0).reshape(1, 2, 2, 2), 2).flatten()
    tensor([7.])
    """
    return _maximum(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


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
    """Return the mean of each window. Shapes: (N, C, D, H, W) or (C, D, H, W).

    Parameters
    ----------
    kernel_size, stride, padding
        One number or three. The stride defaults to the kernel size.
    ceil_mode
        Whether windows at the end may extend past the input.
    count_include_pad
        Whether the divisor counts the padding.
    divisor_override
        Divisor that replaces the number of elements.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.avg_pool3d(candelabra.arange(8.0).reshape(1, 2, 2, 2), 2).flatten()
    tensor([3.5000])
    """
    made = _mean(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return made if out is None else candelabra._C.give_to_out("avg_pool3d", out, made)


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Return ``(sum x^p)^(1/p)`` of each window.

    Shapes: (N, C, D, H, W) or (C, D, H, W).
    """
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
        raise RuntimeError(
            f"{function}: elements of output_size must be greater than or equal to 0, but got {list(chosen)}"
        )
    if any(n == 0 for n in input.shape[1:]):
        raise RuntimeError(
            f"{function}: Expected input to have non-zero size for non-batch dimensions, but input has sizes {list(input.shape)}"
        )
    return chosen


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Return the means of windows that cover the input, one per output element.

    Shapes: (N, C, D, H, W) or (C, D, H, W). None keeps the input size.

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


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the maxima of windows that cover the input, and their flat indices in the volume."""
    if input.ndim < 4:
        raise ValueError(f"Input dimension should be at least 4, but got an input of {input.ndim} dimensions")
    input, batched = _batched(input, 3, "adaptive_max_pool3d")
    size = _sizes(output_size, input, "adaptive_max_pool3d")
    output, at = ops.adaptive_max_pool(input, size)
    return (output, at) if batched else (output.squeeze(0), at.squeeze(0))


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the maxima of windows that cover the input, one per output element.

    Shapes: (N, C, D, H, W) or (C, D, H, W).

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
