"""Pooling: each window is a list of indices in the flattened plane, which is then reduced."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from candelabra_numpy.kernels import kernel

Array = Any
Ints = tuple[int, ...]


def _windows(
    sizes: Ints, outputs: Ints, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> Iterator[tuple[Ints, Array]]:
    """Yield each output index with the flat indices that its window reads inside the plane."""
    for output in product(*map(range, outputs)):
        ranges = [
            [p for p in (o * s - pad + k * d for k in range(width)) if 0 <= p < n]
            for o, s, pad, d, width, n in zip(output, stride, padding, dilation, kernel_size, sizes, strict=True)
        ]
        yield output, np.ravel_multi_index(np.meshgrid(*ranges, indexing="ij"), sizes).ravel()


def _adaptive(sizes: Ints, outputs: Ints) -> Iterator[tuple[Ints, Array]]:
    """Yield each output index with its part of the plane. Parts overlap if the sizes do not
    divide.
    """
    for output in product(*map(range, outputs)):
        ranges = [range(o * n // m, -(-(o + 1) * n // m)) for o, n, m in zip(output, sizes, outputs, strict=True)]
        yield output, np.ravel_multi_index(np.meshgrid(*ranges, indexing="ij"), sizes).ravel()


def _flat(a: Array) -> Array:
    return a.reshape(*a.shape[:2], -1)


def _maxima(a: Array, outputs: Ints, windows: Iterator[tuple[Ints, Array]]) -> tuple[Array, Array]:
    plane = _flat(a)
    values = np.empty((*a.shape[:2], *outputs), a.dtype)
    indices = np.empty(values.shape, np.int64)
    for output, positions in windows:
        read = plane[..., positions]
        best = read.argmax(-1)
        values[(..., *output)] = np.take_along_axis(read, best[..., None], -1)[..., 0]
        indices[(..., *output)] = positions[best]
    return values, indices


def _output_sizes(sizes: Ints, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> Ints:
    result = []
    for n, k, s, p, d in zip(sizes, kernel_size, stride, padding, dilation, strict=True):
        reach = n + 2 * p - d * (k - 1) - 1
        size = (-(-reach // s) if ceil_mode else reach // s) + 1
        if ceil_mode and (size - 1) * s >= n + p:  # a window may not begin in the right padding
            size -= 1
        result.append(size)
    return tuple(result)


@kernel("max_pool")
def max_pool(
    a: Array, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> tuple[Array, Array]:
    sizes = a.shape[2:]
    outputs = _output_sizes(sizes, kernel_size, stride, padding, dilation, ceil_mode)
    return _maxima(a, outputs, _windows(sizes, outputs, kernel_size, stride, padding, dilation))


@kernel("adaptive_max_pool")
def adaptive_max_pool(a: Array, output_size: Ints) -> tuple[Array, Array]:
    return _maxima(a, output_size, _adaptive(a.shape[2:], output_size))


@kernel("max_pool_backward")
def max_pool_backward(grad: Array, indices: Array, input_size: Ints) -> Array:
    result = np.zeros((*input_size[:2], int(np.prod(input_size[2:]))), grad.dtype)
    n, c = np.indices(input_size[:2], sparse=True)
    np.add.at(result, (n[..., None], c[..., None], _flat(indices)), _flat(grad))
    return result.reshape(input_size)


def _divisors(
    sizes: Ints,
    outputs: Ints,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Iterator[float]:
    """Return the divisor of each window's sum, in the order of the windows."""
    for output in product(*map(range, outputs)):
        if divisor_override is not None:
            yield divisor_override
            continue
        count = 1
        for o, s, p, k, n in zip(output, stride, padding, kernel_size, sizes, strict=True):
            begin, end = o * s - p, min(o * s - p + k, n + p)
            count *= (end - begin) if count_include_pad else (min(end, n) - max(begin, 0))
        yield count


@kernel("avg_pool")
def avg_pool(
    a: Array,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    sizes, dilation = a.shape[2:], (1,) * len(kernel_size)
    outputs = _output_sizes(sizes, kernel_size, stride, padding, dilation, ceil_mode)
    plane = _flat(a)
    result = np.empty((*a.shape[:2], *outputs), a.dtype)
    divisors = _divisors(sizes, outputs, kernel_size, stride, padding, count_include_pad, divisor_override)
    for (output, positions), divisor in zip(
        _windows(sizes, outputs, kernel_size, stride, padding, dilation), divisors, strict=True
    ):
        result[(..., *output)] = plane[..., positions].sum(-1) / divisor
    return result


@kernel("avg_pool_backward")
def avg_pool_backward(
    grad: Array,
    input_size: Ints,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    sizes, outputs, dilation = input_size[2:], grad.shape[2:], (1,) * len(kernel_size)
    result = np.zeros((*input_size[:2], int(np.prod(sizes))), grad.dtype)
    divisors = _divisors(sizes, outputs, kernel_size, stride, padding, count_include_pad, divisor_override)
    for (output, positions), divisor in zip(
        _windows(sizes, outputs, kernel_size, stride, padding, dilation), divisors, strict=True
    ):
        result[..., positions] += grad[(..., *output)][..., None] / divisor
    return result.reshape(input_size)


@kernel("adaptive_avg_pool")
def adaptive_avg_pool(a: Array, output_size: Ints) -> Array:
    plane = _flat(a)
    result = np.empty((*a.shape[:2], *output_size), a.dtype)
    for output, positions in _adaptive(a.shape[2:], output_size):
        result[(..., *output)] = plane[..., positions].mean(-1)
    return result


@kernel("adaptive_avg_pool_backward")
def adaptive_avg_pool_backward(grad: Array, input_size: Ints) -> Array:
    result = np.zeros((*input_size[:2], int(np.prod(input_size[2:]))), grad.dtype)
    for output, positions in _adaptive(input_size[2:], grad.shape[2:]):
        result[..., positions] += grad[(..., *output)][..., None] / len(positions)
    return result.reshape(input_size)
