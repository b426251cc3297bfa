"""Convolution over any number of spatial dimensions, by windows and a matrix product, and its two
gradients.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from candelabra_numpy.kernels import kernel

Array = Any
Ints = tuple[int, ...]


def _spans(position: Ints, sizes: Ints, stride: Ints, dilation: Ints) -> tuple[slice, ...]:
    """Return the slices of the padded input that a kernel position reads, for outputs of these
    sizes.
    """
    return tuple(
        slice(p * d, p * d + (n - 1) * s + 1, s) for p, n, s, d in zip(position, sizes, stride, dilation, strict=True)
    )


def _pad(a: Array, padding: Ints) -> Array:
    return np.pad(a, [(0, 0), (0, 0), *((p, p) for p in padding)])


def _grouped(a: Array, groups: int, axis: int) -> Array:
    return a.reshape(*a.shape[:axis], groups, a.shape[axis] // groups, *a.shape[axis + 1 :])


@kernel("convolution")
def convolution(
    a: Array, weight: Array, bias: Array | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    padded = _pad(a, padding)
    window = weight.shape[2:]
    sizes = tuple(
        (n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(padded.shape[2:], window, stride, dilation, strict=True)
    )
    weights = _grouped(weight, groups, 0)
    result = np.zeros((a.shape[0], groups, weights.shape[1], *sizes), a.dtype)
    for position in product(*map(range, window)):
        read = _grouped(padded[(..., *_spans(position, sizes, stride, dilation))], groups, 1)
        result += np.einsum("goi,ngi...->ngo...", weights[(..., *position)], read)
    result = result.reshape(a.shape[0], weight.shape[0], *sizes)
    return result if bias is None else result + bias.reshape(-1, *(1,) * len(sizes))


@kernel("convolution_backward_input")
def input_gradient(
    grad: Array, weight: Array, input_size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    padded = np.zeros((*input_size[:2], *(n + 2 * p for n, p in zip(input_size[2:], padding, strict=True))), grad.dtype)
    weights, grads = _grouped(weight, groups, 0), _grouped(grad, groups, 1)
    for position in product(*map(range, weight.shape[2:])):
        spread = np.einsum("goi,ngo...->ngi...", weights[(..., *position)], grads)
        padded[(..., *_spans(position, grad.shape[2:], stride, dilation))] += spread.reshape(
            *input_size[:2], *grad.shape[2:]
        )
    return padded[(..., *(slice(p, p + n) for p, n in zip(padding, input_size[2:], strict=True)))]


@kernel("convolution_backward_weight")
def weight_gradient(
    grad: Array, a: Array, weight_size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    padded = _pad(a, padding)
    grads = _grouped(grad, groups, 1)
    result = np.zeros(weight_size, grad.dtype)
    axes = "xyz"[: len(stride)]
    for position in product(*map(range, weight_size[2:])):
        read = _grouped(padded[(..., *_spans(position, grad.shape[2:], stride, dilation))], groups, 1)
        products = np.einsum(f"ngo{axes},ngi{axes}->goi", grads, read)
        result[(..., *position)] = products.reshape(weight_size[:2])
    return result
