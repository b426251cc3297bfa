"""Implement convolution and transposed convolution in one to three dimensions."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor, conv_tbc, ops
from candelabra.composite.registration import fast_path

_convolution = ops.convolution
_input_gradient = ops.convolution_backward_input


def _numbers(value: Any, dims: int, name: str) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,) * dims
    numbers = tuple(value)
    if len(numbers) == 1:
        return numbers * dims
    if len(numbers) != dims:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {dims} values to match the convolution dimensions, but got "
            f"{name}={list(numbers)}"
        )
    return numbers


def _batched(input: Tensor, dims: int, name: str) -> tuple[Tensor, bool]:
    """Return the input with a batch dimension, and whether it already had one."""
    if input.ndim == dims + 2:
        return input, True
    if input.ndim == dims + 1:
        return input.unsqueeze(0), False
    raise RuntimeError(
        f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {name}, but got input of size: {list(input.shape)}"
    )


def _convolve(
    dims: int,
    name: str,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    # The form in which the modules pass these arguments.
    plain = (
        type(stride) is type(padding) is type(dilation) is tuple
        and len(stride) == len(padding) == len(dilation) == dims
    )
    if plain and input.ndim == weight.ndim == dims + 2:
        return _convolution(input, weight, bias, stride, padding, dilation, groups)
    input, batched = _batched(input, dims, name)
    if weight.ndim != dims + 2:
        raise RuntimeError(
            f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight{list(weight.shape)}, but got "
            f"{input.ndim}-dimensional input of size {list(input.shape)} instead"
        )
    stride = _numbers(stride, dims, "stride")
    dilation = _numbers(dilation, dims, "dilation")
    if isinstance(padding, str):
        if padding == "valid":
            padding = (0,) * dims
        elif padding == "same":
            if any(step != 1 for step in stride):
                raise RuntimeError("padding='same' is not supported for strided convolutions")
            totals = [dilation[i] * (weight.shape[2 + i] - 1) for i in range(dims)]
            # If the total is odd, the extra element is appended at the end. The operator itself
            # only pads symmetrically.
            if any(total % 2 for total in totals):
                from .padding import pad

                behind = [side for total in reversed(totals) for side in (0, total % 2)]
                input = pad(input, behind)
            padding = tuple(total // 2 for total in totals)
        else:
            raise RuntimeError(f"Invalid padding string: '{padding}'")
    else:
        padding = _numbers(padding, dims, "padding")
    output = _convolution(input, weight, bias, stride, padding, dilation, groups)
    return output if batched else output.squeeze(0)


@fast_path(_convolution, dimensions=(3, 3))
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Compute the cross-correlation over one spatial dimension.

    Shapes: input (N, C_in, L) or (C_in, L), weight (C_out, C_in / groups, K), bias (C_out).
    `padding` may be ``"same"`` or ``"valid"``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.conv1d(candelabra.arange(5.0).reshape(1, 1, 5), candelabra.ones(1, 1, 3))
    tensor([[[3., 6., 9.]]])
    """
    return _convolve(1, "conv1d", input, weight, bias, stride, padding, dilation, groups)


@fast_path(_convolution, dimensions=(4, 4))
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Compute the cross-correlation over two spatial dimensions.

    Shapes: input (N, C_in, H, W) or (C_in, H, W), weight (C_out, C_in / groups, KH, KW), bias
    (C_out), result (N, C_out, H_out, W_out). `padding` may be ``"same"`` or ``"valid"``.

    Raises
    ------
    RuntimeError
        If the shapes are incompatible.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.conv2d(candelabra.ones(1, 1, 3, 3), candelabra.ones(1, 1, 2, 2), padding=1)[0, 0]
    tensor([[1., 2., 2., 1.],
            [2., 4., 4., 2.],
            [2., 4., 4., 2.],
            [1., 2., 2., 1.]])
    """
    return _convolve(2, "conv2d", input, weight, bias, stride, padding, dilation, groups)


@fast_path(_convolution, dimensions=(5, 5))
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Compute the cross-correlation over three spatial dimensions.

    Shapes: input (N, C_in, D, H, W) or (C_in, D, H, W), weight (C_out, C_in / groups, KD, KH, KW),
    bias (C_out). `padding` may be ``"same"`` or ``"valid"``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.conv3d(candelabra.ones(1, 1, 3, 3, 3), candelabra.ones(1, 1, 2, 2, 2)).flatten()
    tensor([8., 8., 8., 8., 8., 8., 8., 8.])
    """
    return _convolve(3, "conv3d", input, weight, bias, stride, padding, dilation, groups)


def _transposed(
    dims: int,
    name: str,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Tensor:
    input, batched = _batched(input, dims, name)
    if weight.ndim != dims + 2:
        raise RuntimeError(
            f"{name}: expected a weight of {dims + 2} dimensions, but got a weight of size {list(weight.shape)}"
        )
    stride = _numbers(stride, dims, "stride")
    padding = _numbers(padding, dims, "padding")
    output_padding = _numbers(output_padding, dims, "output_padding")
    dilation = _numbers(dilation, dims, "dilation")
    if input.shape[1] != weight.shape[0]:
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(weight.shape)}, expected input{list(input.shape)} to have {weight.shape[0]} "
            f"channels, but got {input.shape[1]} channels instead"
        )
    for extra, step, spread in zip(output_padding, stride, dilation, strict=True):
        if extra < 0:
            raise RuntimeError("negative output_padding is not supported")
        if extra >= step and extra >= spread:
            raise RuntimeError(
                f"output padding must be smaller than either stride or dilation, but got output_padding: {list(output_padding)} stride: "
                f"{list(stride)} dilation: {list(dilation)}"
            )
    channels = weight.shape[1] * groups
    if bias is not None and tuple(bias.shape) != (channels,):
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(weight.shape)}, expected bias to be 1-dimensional with {channels} elements, but got "
            f"bias of size {list(bias.shape)} instead"
        )
    size = [
        (input.shape[2 + i] - 1) * stride[i]
        - 2 * padding[i]
        + dilation[i] * (weight.shape[2 + i] - 1)
        + output_padding[i]
        + 1
        for i in range(dims)
    ]
    if any(length <= 0 for length in size):
        raise RuntimeError(
            f"Given input size per channel: {list(input.shape[2:])}. Calculated output size per channel: {size}. Output size is too small"
        )
    if any(extra >= step for extra, step in zip(output_padding, stride, strict=True)):
        output = _cut(input, weight, channels, size, stride, padding, dilation, groups)
    else:
        output = _input_gradient(input, weight, (input.shape[0], channels, *size), stride, padding, dilation, groups)
    if bias is not None:
        output = output + bias.reshape(1, channels, *(1,) * dims)
    return output if batched else output.squeeze(0)


def _cut(
    input: Tensor,
    weight: Tensor,
    channels: int,
    size: list[int],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Tensor:
    """Compute a transposed convolution whose output padding is not smaller than the stride.

    Compute the full output without padding, then crop it and pad it with zeros to `size`.
    """
    from .padding import pad

    dims = len(size)
    whole = [(input.shape[2 + i] - 1) * stride[i] + dilation[i] * (weight.shape[2 + i] - 1) + 1 for i in range(dims)]
    output = _input_gradient(input, weight, (input.shape[0], channels, *whole), stride, (0,) * dims, dilation, groups)
    amounts = []
    for i in reversed(range(dims)):
        amounts += [-padding[i], padding[i] + size[i] - whole[i]]
    return pad(output, amounts)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Compute the transposed convolution over one spatial dimension.

    Shapes: input (N, C_in, L) or (C_in, L), weight (C_in, C_out / groups, K), bias (C_out).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.conv_transpose1d(candelabra.ones(1, 1, 3), candelabra.ones(1, 1, 2))
    tensor([[[1., 2., 2., 1.]]])
    """
    return _transposed(1, "conv_transpose1d", input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Compute the transposed convolution over two spatial dimensions.

    Shapes: input (N, C_in, H, W) or (C_in, H, W), weight (C_in, C_out / groups, KH, KW), bias
    (C_out).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.conv_transpose2d(candelabra.ones(1, 1, 4, 4), candelabra.ones(1, 2, 2, 2), stride=2).shape
    candelabra.Size([1, 2, 8, 8])
    """
    return _transposed(2, "conv_transpose2d", input, weight, bias, stride, padding, output_padding, groups, dilation)


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
    """Compute the transposed convolution over three spatial dimensions.

    Shapes: input (N, C_in, D, H, W) or (C_in, D, H, W), weight (C_in, C_out / groups, KD, KH, KW),
    bias (C_out).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.conv_transpose3d(candelabra.ones(1, 1, 2, 2, 2), candelabra.ones(1, 3, 2, 2, 2), stride=2).shape
    candelabra.Size([1, 3, 4, 4, 4])
    """
    return _transposed(3, "conv_transpose3d", input, weight, bias, stride, padding, output_padding, groups, dilation)


__all__ = ["conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]
