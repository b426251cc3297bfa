"""Implement max unpooling and fractional max pooling."""

from __future__ import annotations

import itertools
import math
from typing import Any

import candelabra
from candelabra import _C, Tensor

from .convolution import _numbers
from .memory_order import in_format_of


def _refuse_or_warn(kernel: str) -> None:
    """Raise, or warn, that a kernel has no deterministic implementation."""
    message = (
        f"{kernel} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True"
    )
    if candelabra.is_deterministic_algorithms_warn_only_enabled():
        _C.warn(f"{message}, warn_only=True)'.")
        return
    raise RuntimeError(
        f"{message})'. You can turn off determinism just for this operation, or you can use the 'warn_only=True' option, if that's "
        "acceptable for your application."
    )


def _unpooled(
    dims: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    name = f"max_unpool{dims}d"
    if indices.dtype is not candelabra.int64:
        raise RuntimeError(f"{name}(): elements in indices should be type int64 but got: {indices.dtype}")
    if input.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Input to {name} should be a {dims + 1}d or {dims + 2}d Tensor, but got a tensor with {input.ndim} dimensions"
        )
    if input.shape != indices.shape:
        raise RuntimeError(
            f"{name}(): Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got indices tensor with "
            f"shape: {list(indices.shape)}"
        )
    kernel = _numbers(kernel_size, dims, "kernel_size")
    strides = kernel if stride is None else _numbers(stride, dims, "stride")
    paddings = _numbers(padding, dims, "padding")
    spatial = tuple(input.shape[-dims:])
    default = [(spatial[i] - 1) * strides[i] + kernel[i] - 2 * paddings[i] for i in range(dims)]
    if output_size is None:
        size = default
    else:
        size = [output_size] * dims if isinstance(output_size, int) else list(output_size)
        if len(size) == dims + 2:
            size = size[2:]
        if len(size) != dims:
            raise ValueError(
                f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of '{len(size)}'"
            )
        for i in range(dims):
            low, high = default[i] - strides[i], default[i] + strides[i]
            if not low < size[i] < high:
                raise ValueError(f'invalid output_size "{size}" (dim {i} must be between {low} and {high})')
    if candelabra.are_deterministic_algorithms_enabled():
        _refuse_or_warn(f"max_unpooling{max(dims, 2)}d_forward_out")
    length = math.prod(size)
    if any(n <= 0 for n in size):
        raise RuntimeError(f"{name}(): the output size has to be positive, but it is {size}")
    outer = tuple(input.shape[:-dims])
    flat = indices.reshape((*outer, math.prod(spatial)))
    if flat.numel() and not flat.is_meta:
        low, high = (int(end) for end in candelabra.aminmax(flat))
        if low < 0 or high >= length:
            wrong = high if high >= length else low
            raise RuntimeError(
                f"Found an invalid max index: {wrong} (output volumes are of size {'x'.join(map(str, size))})"
            )
    # Expand a single zero, so that the result is written once instead of copied.
    zeros = input.new_zeros(()).expand((*outer, length))
    made = zeros.scatter(-1, flat, input.reshape((*outer, math.prod(spatial)))).reshape((*outer, *size))
    return in_format_of(made, input) if dims == 2 else made


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Write maxima back to their indices and fill the rest with zeros.

    Shapes: (N, C, L) or (C, L).

    Parameters
    ----------
    input, indices
        Results of :func:`max_pool1d` with ``return_indices=True``.
    kernel_size, stride, padding
        Arguments of that call.
    output_size
        Size of the input of that call, if the other arguments leave it ambiguous.

    Raises
    ------
    RuntimeError
        If an index is outside of the output, or shapes are incompatible.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.max_unpool1d(*F.max_pool1d(candelabra.tensor([[1.0, 3.0, 4.0, 2.0]]), 2, return_indices=True), 2)
    tensor([[0., 3., 4., 0.]])
    """
    return _unpooled(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Invert max pooling over two dimensions; see :func:`max_unpool1d`.

    Shapes: (N, C, H, W) or (C, H, W).
    """
    return _unpooled(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Invert max pooling over three dimensions; see :func:`max_unpool1d`.

    Shapes: (N, C, D, H, W) or (C, D, H, W).
    """
    return _unpooled(3, input, indices, kernel_size, stride, padding, output_size)


# ---- fractional pooling


def _starts(sample: Tensor, size: int, output: int, kernel: int) -> Tensor:
    """Return the start of each window.

    The starts are the pseudorandom sequences of Graham, "Fractional max-pooling", 2014. `sample` is
    in [0, 1).
    """
    index = candelabra.arange(output, dtype=sample.dtype, device=sample.device)
    if output == 1:
        return candelabra.full((*sample.shape, 1), size - kernel, dtype=candelabra.int64, device=sample.device)
    alpha = (size - kernel) / (output - 1)
    shift = sample.unsqueeze(-1)
    places = ((index + shift) * alpha).trunc() - (shift * alpha).trunc()
    last = index == output - 1
    starts = candelabra.where(last, float(size - kernel), places).to(candelabra.int64)
    return starts.clamp(0, size - kernel)  # samples outside of [0, 1) could give any start


def _fractional(
    dims: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Tensor | None
) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{dims}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if input.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got: {list(input.shape)}")
    kernel = _numbers(kernel_size, dims, "kernel_size")
    spatial = tuple(input.shape[-dims:])
    if output_size is None:
        ratios = (output_ratio,) * dims if isinstance(output_ratio, (int, float)) else tuple(output_ratio)
        if len(ratios) != dims:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        if any(not 0 < ratio < 1 for ratio in ratios):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")
        size = tuple(int(n * ratio) for n, ratio in zip(spatial, ratios, strict=True))
    else:
        size = _numbers(output_size, dims, "output_size")
    for i in range(dims):
        # PyTorch requires one more element in three dimensions.
        if size[i] + kernel[i] - 1 > spatial[i] - (dims == 3):
            raise RuntimeError(
                f"{name}(): pool size {kernel[i]} is too large for an input of size {spatial[i]} and an output of size {size[i]}"
            )
    if 0 in input.shape[-dims - 1 :]:
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got {list(input.shape)}"
        )
    x = input if input.ndim == dims + 2 else input.unsqueeze(0)
    batch, channels = x.shape[:2]
    if samples is None:
        samples = candelabra.rand(batch, channels, dims, dtype=x.dtype, device=x.device)
    elif samples.ndim != 3:
        raise RuntimeError(f"{name}(): Expect _random_samples to have 3 dimensions, got {samples.ndim}")
    elif samples.shape[0] < batch or samples.shape[1] < channels or samples.shape[2] < dims:
        raise RuntimeError(
            f"{name}(): Expect _random_samples.size(0) no less then input batch size, and {channels} channels of {dims} numbers, got {list(samples.shape)}"
        )
    samples = samples[:batch, :channels].to(candelabra.float64 if x.dtype is candelabra.float64 else candelabra.float32)
    first: Any = None
    for i in range(dims):
        # As in PyTorch, samples are ordered from the innermost dimension in 2-D, and from the
        # outermost in 3-D.
        begin = _starts(samples[..., 1 - i if dims == 2 else i], spatial[i], size[i], kernel[i])
        first = (
            begin
            if first is None
            else (first * spatial[i]).unsqueeze(-1) + begin.reshape((batch, channels, *[1] * i, size[i]))
        )
    first = first.flatten(2)
    values = x.reshape(batch, channels, math.prod(spatial))
    seen = values.detach()
    best: Any = None
    at: Any = None
    # Each iteration compares one element of all windows. NaN wins every comparison, and the last
    # NaN is kept.
    for steps in itertools.product(*map(range, kernel)):
        step = 0
        for i in range(dims):
            step = step * spatial[i] + steps[i]
        here = first + step if step else first
        value = seen.gather(2, here)
        if best is None:
            best, at = value, here
            continue
        better = (value > best) | (value != value)
        best, at = candelabra.where(better, value, best), candelabra.where(better, here, at)
    shape = [batch, channels, *size]
    output, at = values.gather(2, at).reshape(shape), at.reshape(shape)
    return (output, at) if input.ndim == dims + 2 else (output.squeeze(0), at.squeeze(0))


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the maxima of randomly placed windows (Graham, 2014), and their indices.

    Shapes: (N, C, H, W) or (C, H, W).
    """
    return _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the maxima of randomly placed windows and their indices.

    Shapes: (N, C, D, H, W) or (C, D, H, W).
    """
    return _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the maxima of randomly placed windows that are about evenly spaced.

    Shapes: (N, C, H, W) or (C, H, W).

    Parameters
    ----------
    kernel_size
        Window size: one number or two.
    output_size
        Number of windows. Give this or `output_ratio`.
    output_ratio
        Number of windows as a fraction of the input size, between 0 and 1.
    return_indices
        Whether to also return the indices.

    Notes
    -----
    Graham, "Fractional max-pooling", 2014.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.fractional_max_pool2d(candelabra.ones(1, 5, 5), 2, output_size=3).shape
    candelabra.Size([1, 3, 3])
    """
    made = _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return made if return_indices else made[0]


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the maxima of randomly placed windows; see :func:`fractional_max_pool2d`.

    Shapes: (N, C, D, H, W) or (C, D, H, W).
    """
    made = _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return made if return_indices else made[0]


__all__ = [
    "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d", "fractional_max_pool3d_with_indices",
    "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip
