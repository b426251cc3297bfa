"""Convolution and its gradients by im2col: windows of the padded input as columns of a matrix."""

from __future__ import annotations

import math
from itertools import product

import candelabra

from .registration import decomposes, wide, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra import Tensor

    Ints = tuple[int, ...]


def _padded(x: Tensor, padding: Ints) -> Tensor:
    if not any(padding):
        return x.contiguous()
    result = x.new_zeros((*x.shape[:2], *(n + 2 * p for n, p in zip(x.shape[2:], padding, strict=True))))
    write(_inside(result, padding, x.shape[2:]), x)
    return result


def _inside(padded: Tensor, padding: Ints, sizes: Ints) -> Tensor:
    for d, (p, n) in enumerate(zip(padding, sizes, strict=True)):
        padded = padded.narrow(2 + d, p, n)
    return padded


def _columns(
    x: Tensor, window: Ints, outputs: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Tensor:
    """Return what each output reads: (N * groups, C / groups * window, outputs)."""
    padded = _padded(x, padding)
    n, channels, *steps = padded.stride()
    windows = padded.as_strided(
        (*padded.shape[:2], *window, *outputs),
        (n, channels, *(s * d for s, d in zip(steps, dilation, strict=True)),
         *(s * t for s, t in zip(steps, stride, strict=True))),
        padded.storage_offset(),
    )  # fmt: skip
    rows = x.shape[1] // groups * math.prod(window)
    return windows.reshape(x.shape[0] * groups, rows, math.prod(outputs))


def _kernels(weight: Tensor, batch: int, groups: int) -> Tensor:
    """Return the kernels as matrices, for each sample and group."""
    matrices = weight.reshape(groups, weight.shape[0] // groups, math.prod(weight.shape[1:]))
    return matrices.unsqueeze(0).expand(batch, *matrices.shape).reshape(batch * groups, *matrices.shape[1:])


def _by_groups(grad: Tensor, groups: int) -> Tensor:
    return grad.reshape(grad.shape[0] * groups, grad.shape[1] // groups, math.prod(grad.shape[2:]))


@decomposes("convolution")
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Tensor:
    x, w, window = wide(input), wide(weight), weight.shape[2:]
    outputs = tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(x.shape[2:], window, stride, padding, dilation, strict=True)
    )
    columns = _columns(x, window, outputs, stride, padding, dilation, groups)
    result = candelabra.bmm(_kernels(w, x.shape[0], groups), columns).reshape(x.shape[0], w.shape[0], *outputs)
    return result if bias is None else result + wide(bias).reshape(-1, *(1,) * len(outputs))


@decomposes("convolution_backward_input")
def convolution_backward_input(
    grad: Tensor, weight: Tensor, input_size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Tensor:
    g, w, window, outputs = wide(grad), wide(weight), weight.shape[2:], grad.shape[2:]
    columns = candelabra.bmm(_kernels(w, g.shape[0], groups).transpose(1, 2), _by_groups(g, groups))
    columns = columns.reshape(*input_size[:2], *window, *outputs)
    padded = g.new_zeros((*input_size[:2], *(n + 2 * p for n, p in zip(input_size[2:], padding, strict=True))))
    strides = padded.stride()
    steps = (*strides[:2], *(s * t for s, t in zip(strides[2:], stride, strict=True)))
    for place in product(*map(range, window)):
        offset = sum(p * d * s for p, d, s in zip(place, dilation, strides[2:], strict=True))
        read = padded.as_strided((*input_size[:2], *outputs), steps, offset)
        column = columns
        for p in place:
            column = column.select(2, p)
        write(read, read + column)
    return _inside(padded, padding, input_size[2:])


@decomposes("convolution_backward_weight")
def convolution_backward_weight(
    grad: Tensor, input: Tensor, weight_size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Tensor:
    g, x, batch = wide(grad), wide(input), input.shape[0]
    columns = _columns(x, weight_size[2:], grad.shape[2:], stride, padding, dilation, groups)
    products = candelabra.bmm(_by_groups(g, groups), columns.transpose(1, 2))
    return products.reshape(batch, groups, *products.shape[1:]).sum(0).reshape(weight_size)
