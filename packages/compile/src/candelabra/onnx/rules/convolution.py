"""Rules of convolutions."""

from __future__ import annotations

from collections.abc import Sequence

import candelabra

from ..builder import Builder, Value
from .table import rule

Ints = int | Sequence[int]


def _each(value: Ints, count: int) -> list[int]:
    """Return an argument as a number for each spatial dimension."""
    numbers = [value] if isinstance(value, int) else list(value)
    return numbers * count if len(numbers) == 1 else numbers


@rule("convolution")
def _convolution(
    b: Builder, input: Value, weight: Value, bias: Value | None = None, stride: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
    groups: int = 1,
) -> str:  # fmt: skip
    count = weight.rank - 2
    kernel = [b.static(size, "a size of the kernel") for size in weight.shape[2:]]
    return b.op(
        "Conv", input, weight, bias, kernel_shape=kernel, strides=_each(stride, count), pads=_each(padding, count) * 2,
        dilations=_each(dilation, count), group=groups,
    )  # fmt: skip


@rule("convolution_backward_input", sizes="input_size")
def _convolution_backward_input(
    b: Builder, grad: Value, weight: Value, input_size: Sequence[int], stride: Ints, padding: Ints, dilation: Ints,
    groups: int,
) -> str:  # fmt: skip
    """Transposed convolution."""
    count = weight.rank - 2
    kernel = [b.static(size, "a size of the kernel") for size in weight.shape[2:]]
    strides, pads, dilations = _each(stride, count), _each(padding, count), _each(dilation, count)
    # The difference of the sizes is that of the recorded call at all sizes.
    given = grad.example[2:]
    least = [(size - 1) * strides[k] - 2 * pads[k] + dilations[k] * (kernel[k] - 1) + 1 for k, size in enumerate(given)]
    extra = [size - one for size, one in zip(b.result.example[2:], least, strict=True)]
    return b.op(
        "ConvTranspose", grad, weight, kernel_shape=kernel, strides=strides, pads=pads * 2, dilations=dilations, group=groups,
        output_padding=extra if any(extra) else None,
    )  # fmt: skip


@rule("im2col")
def _im2col(b: Builder, self: Value, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> str:
    """Windows as columns."""
    kernel, dilations, pads, strides = (_each(one, 2) for one in (kernel_size, dilation, padding, stride))
    sizes = [b.static(size, "a size of the input") for size in self.shape[2:]]
    padded = b.op("Pad", self, b.constant([0, 0, *pads, 0, 0, *pads]), b.constant(0, self.dtype))
    width = sizes[1] + 2 * pads[1]
    first, second = (
        candelabra.arange(0, sizes[k] + 2 * pads[k] - dilations[k] * (kernel[k] - 1), strides[k])
        + dilations[k] * candelabra.arange(kernel[k]).unsqueeze(1)
        for k in (0, 1)
    )
    # Of shape (kernel, windows), both rows before columns.
    places = first[:, None, :, None] * width + second[None, :, None, :]
    planes = b.reshape(padded, [self.shape[0], self.shape[1], (sizes[0] + 2 * pads[0]) * width])
    taken = b.op("Gather", planes, b.tensor(places.reshape(kernel[0] * kernel[1], -1)), axis=2)
    channels = b.static(self.shape[1], "the number of channels")
    return b.reshape(taken, [self.shape[0], channels * kernel[0] * kernel[1], places[0, 0].numel()])


@rule("col2im")
def _col2im(
    b: Builder, grad: Value, output_size: Ints, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> str:
    return b.op(
        "Col2Im", grad, b.constant(_each(output_size, 2)), b.constant(_each(kernel_size, 2)), dilations=_each(dilation, 2),
        pads=_each(padding, 2) * 2, strides=_each(stride, 2),
    )  # fmt: skip
