"""Implement pooling in one, two and three dimensions; `spatial` holds the 3-D functions."""

from __future__ import annotations

from typing import Any

from candelabra import _C, Tensor, ops
from candelabra.composite.transformed import is_differentiated

_max_pool = ops.max_pool
_max_pool_values = ops.max_pool_values
_avg_pool = ops.avg_pool
_adaptive_max_pool = ops.adaptive_max_pool
_adaptive_avg_pool = ops.adaptive_avg_pool


def _numbers(value: Any, dims: int, name: str, function: str) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,) * dims
    numbers = tuple(value)
    if len(numbers) == 1:
        return numbers * dims
    if len(numbers) != dims:
        raise RuntimeError(
            f"{function}: {name} must either be a single int, or a tuple of {dims} ints, but got {list(numbers)}"
        )
    return numbers


def _batched(input: Tensor, dims: int, function: str) -> tuple[Tensor, bool]:
    if input.ndim == dims + 2:
        return input, True
    if input.ndim == dims + 1:
        return input.unsqueeze(0), False
    raise RuntimeError(
        f"{function}(): non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor expected for input, but got {list(input.shape)}"
    )


def _steps(stride: Any, kernel: tuple[int, ...], dims: int, function: str) -> tuple[int, ...]:
    if stride is None or (not isinstance(stride, int) and len(stride) == 0):
        return kernel
    return _numbers(stride, dims, "stride", function)


def _maximum(
    dims: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    function = f"max_pool{dims}d"
    input, batched = _batched(input, dims, function)
    kernel = _numbers(kernel_size, dims, "kernel_size", function)
    windows = (
        kernel,
        _steps(stride, kernel, dims, function),
        _numbers(padding, dims, "padding", function),
        _numbers(dilation, dims, "dilation", function),
        ceil_mode,
    )
    if not return_indices and not is_differentiated(input):  # no backward pass will need the indices of the maxima
        output = _max_pool_values(input, *windows)
        return output if batched else output.squeeze(0)
    output, indices = _max_pool(input, *windows)
    if not batched:
        output = output.squeeze(0)
        indices = indices.squeeze(0) if return_indices else indices
    return (output, indices) if return_indices else output


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maximum of each window. Shapes: (N, C, L) or (C, L).

    With `return_indices`, also return the index of each maximum.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.max_pool1d(candelabra.tensor([[1.0, 4.0, 2.0, 3.0]]), 2)
    tensor([[4., 3.]])
    """
    return _maximum(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maximum of each window. Shapes: (N, C, H, W) or (C, H, W).

    With `return_indices`, also return the flat index of each maximum in its plane.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.max_pool2d(candelabra.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    return _maximum(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool1d_with_indices(*args: Any, **kwargs: Any) -> Any:
    """Call `max_pool1d` with ``return_indices=True``."""
    return max_pool1d(*args, **{**kwargs, "return_indices": True})


def max_pool2d_with_indices(*args: Any, **kwargs: Any) -> Any:
    """Call `max_pool2d` with ``return_indices=True``."""
    return max_pool2d(*args, **{**kwargs, "return_indices": True})


def _mean(
    dims: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    function = f"avg_pool{dims}d"
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    input, batched = _batched(input, dims, function)
    kernel = _numbers(kernel_size, dims, "kernel_size", function)
    output = _avg_pool(
        input,
        kernel,
        _steps(stride, kernel, dims, function),
        _numbers(padding, dims, "padding", function),
        ceil_mode,
        count_include_pad,
        divisor_override,
    )
    return output if batched else output.squeeze(0)


def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window. Shapes: (N, C, L) or (C, L).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.avg_pool1d(candelabra.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
    tensor([[2., 3.]])
    """
    return _mean(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
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
    """Return the mean of each window. Shapes: (N, C, H, W) or (C, H, W).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.avg_pool2d(candelabra.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """
    made = _mean(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return made if out is None else _C.give_to_out("avg_pool2d", out, made)


def _power_mean(dims: int, input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Tensor:
    kernel = _numbers(kernel_size, dims, "kernel_size", f"lp_pool{dims}d")
    count = 1
    for length in kernel:
        count *= length
    mean = _mean(dims, input.pow(norm_type), kernel, stride, 0, ceil_mode, True, None)
    return (mean.sign() * mean.abs().relu() * count).pow(1.0 / norm_type)


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Return ``(sum x^p)^(1/p)`` of each window, p = `norm_type`. Shapes: (N, C, L) or (C, L)."""
    return _power_mean(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Return ``(sum x^p)^(1/p)`` of each window, p = `norm_type`.

    Shapes: (N, C, H, W) or (C, H, W).
    """
    return _power_mean(2, input, norm_type, kernel_size, stride, ceil_mode)


def _target(output_size: Any, input: Tensor, dims: int, function: str) -> tuple[int, ...]:
    sizes = (output_size,) * dims if output_size is None or isinstance(output_size, int) else tuple(output_size)
    if len(sizes) == 1:
        sizes = sizes * dims
    if len(sizes) != dims:
        raise RuntimeError(f"{function}: output_size must be {dims}")
    return tuple(input.shape[2 + i] if size is None else size for i, size in enumerate(sizes))


def _check_dimensions(input: Tensor, dims: int, output_size: Any) -> None:
    # As in PyTorch: a list of sizes is checked here; for an integer the operator checks the input.
    count = 0 if dims == 1 or output_size is None or isinstance(output_size, int) else len(output_size)
    if count and input.ndim <= count:
        raise ValueError(f"Input dimension should be at least {count + 1}, but got an input of {input.ndim} dimensions")


def _adaptive_mean(dims: int, input: Tensor, output_size: Any) -> Tensor:
    function = f"adaptive_avg_pool{dims}d"
    _check_dimensions(input, dims, output_size)
    input, batched = _batched(input, dims, function)
    output = _adaptive_avg_pool(input, _target(output_size, input, dims, function))
    return output if batched else output.squeeze(0)


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Return the means of `output_size` windows that cover the input.

    Shapes: (N, C, L) or (C, L).
    """
    return _adaptive_mean(1, input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Return the means of windows that cover the input, one per output element.

    Shapes: (N, C, H, W) or (C, H, W). None keeps the input size.

    Window i covers the elements from ``floor(i * L / n)`` to ``ceil((i + 1) * L / n)``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.adaptive_avg_pool2d(candelabra.arange(9.0).reshape(1, 3, 3), 2)
    tensor([[[2., 3.],
             [5., 6.]]])
    """
    return _adaptive_mean(2, input, output_size)


def _adaptive_maximum(dims: int, input: Tensor, output_size: Any, return_indices: bool) -> Any:
    function = f"adaptive_max_pool{dims}d"
    _check_dimensions(input, dims, output_size)
    input, batched = _batched(input, dims, function)
    output, indices = _adaptive_max_pool(input, _target(output_size, input, dims, function))
    if not batched:
        output = output.squeeze(0)
        indices = indices.squeeze(0) if return_indices else indices
    return (output, indices) if return_indices else output


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the maxima of `output_size` windows that cover the input.

    Shapes: (N, C, L) or (C, L).
    """
    return _adaptive_maximum(1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the maxima of windows that cover the input, one per output element.

    Shapes: (N, C, H, W) or (C, H, W). None keeps the input size.
    """
    return _adaptive_maximum(2, input, output_size, return_indices)


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Call `adaptive_max_pool1d` and also return the indices of the maxima."""
    return adaptive_max_pool1d(input, output_size, return_indices=True)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Call `adaptive_max_pool2d` and also return the indices of the maxima."""
    return adaptive_max_pool2d(input, output_size, return_indices=True)


__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "avg_pool1d",
    "avg_pool2d",
    "lp_pool1d",
    "lp_pool2d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
]
