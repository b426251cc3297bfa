"""References of pooling: the indices of each window in the flattened plane, window by window."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from candelabra.testing.sampling import Input, Reference, Sample, numbers

Array = Any  # a NumPy array, whose stubs reject an index of an ellipsis and integers
Ints = list[int]
Windows = list[tuple[tuple[int, ...], list[int]]]

#: sizes, kernel, stride, padding, dilation, ceil_mode
_CASES: tuple[tuple[tuple[int, ...], Ints, Ints, Ints, Ints, bool], ...] = (
    ((7,), [3], [2], [1], [1], False),
    ((7,), [2], [2], [0], [2], True),
    ((6, 5), [2, 2], [2, 2], [0, 0], [1, 1], False),
    ((6, 5), [3, 3], [2, 2], [1, 1], [1, 1], True),
    ((5, 7), [3, 2], [1, 2], [1, 0], [1, 2], False),
    ((20, 24), [3, 3], [2, 2], [1, 1], [1, 1], False),
    ((4, 5, 6), [2, 3, 2], [2, 2, 1], [1, 1, 0], [1, 1, 2], True),
    ((5, 4, 7), [3, 1, 3], [1, 2, 2], [1, 0, 1], [2, 1, 1], False),
)


def _outputs(
    sizes: tuple[int, ...], window: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> tuple[int, ...]:
    result = []
    for n, k, s, p, d in zip(sizes, window, stride, padding, dilation, strict=True):
        reach = n + 2 * p - d * (k - 1) - 1
        size = (-(-reach // s) if ceil_mode else reach // s) + 1
        result.append(size - 1 if ceil_mode and (size - 1) * s >= n + p else size)
    return tuple(result)


def _windows(
    sizes: tuple[int, ...], outputs: tuple[int, ...], window: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> Windows:
    found = []
    for output in product(*map(range, outputs)):
        ranges = []
        for o, s, p, d, k, n in zip(output, stride, padding, dilation, window, sizes, strict=True):
            ranges.append([q for q in (o * s - p + i * d for i in range(k)) if 0 <= q < n])
        found.append((output, [int(np.ravel_multi_index(q, sizes)) for q in product(*ranges)]))
    return found


def _shares(sizes: tuple[int, ...], outputs: Ints) -> Windows:
    found = []
    for output in product(*map(range, outputs)):
        ranges = [range(o * n // m, -(-(o + 1) * n // m)) for o, n, m in zip(output, sizes, outputs, strict=True)]
        found.append((output, [int(np.ravel_multi_index(q, sizes)) for q in product(*ranges)]))
    return found


def _maxima(a: Array, outputs: Any, windows: Windows) -> tuple[Array, Array]:
    plane = a.reshape(*a.shape[:2], -1)
    values: Array = np.zeros((*a.shape[:2], *outputs), a.dtype)
    indices: Array = np.zeros(values.shape, np.int64)
    for output, positions in windows:
        best = plane[..., positions].argmax(-1)
        indices[(..., *output)] = np.asarray(positions)[best]
        values[(..., *output)] = np.take_along_axis(plane, indices[(..., *output)][..., None], -1)[..., 0]
    return values, indices


def max_pool(
    a: Array, window: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> tuple[Array, Array]:
    outputs = _outputs(a.shape[2:], window, stride, padding, dilation, ceil_mode)
    return _maxima(a, outputs, _windows(a.shape[2:], outputs, window, stride, padding, dilation))


def adaptive_max_pool(a: Array, output_size: Ints) -> tuple[Array, Array]:
    return _maxima(a, output_size, _shares(a.shape[2:], output_size))


def max_pool_backward(grad: Array, indices: Array, input_size: Ints) -> Array:
    result = np.zeros((*input_size[:2], int(np.prod(input_size[2:]))))
    for n, c in product(range(input_size[0]), range(input_size[1])):
        np.add.at(result[n, c], indices[n, c].ravel(), grad[n, c].ravel())
    return result.reshape(input_size)


def _averages(
    sizes: Any, window: Ints, stride: Ints, padding: Ints, ceil_mode: bool, with_pad: bool, divisor: int | None
) -> list[Any]:
    ones = [1] * len(window)
    outputs = _outputs(tuple(sizes), window, stride, padding, ones, ceil_mode)
    found = []
    for output, positions in _windows(tuple(sizes), outputs, window, stride, padding, ones):
        count = 1
        for o, s, p, k, n in zip(output, stride, padding, window, sizes, strict=True):
            count *= min(o * s - p + k, n + p) - (o * s - p)
        found.append((output, positions, divisor or (count if with_pad else len(positions))))
    return [outputs, found]


def avg_pool(
    a: Array, window: Ints, stride: Ints, padding: Ints, ceil_mode: bool, with_pad: bool, divisor: int | None
) -> Array:
    outputs, windows = _averages(a.shape[2:], window, stride, padding, ceil_mode, with_pad, divisor)
    plane, result = a.reshape(*a.shape[:2], -1), np.zeros((*a.shape[:2], *outputs), a.dtype)
    for output, positions, count in windows:
        result[(..., *output)] = plane[..., positions].sum(-1) / count
    return result


def avg_pool_backward(
    grad: Array,
    input_size: Ints,
    window: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    with_pad: bool,
    divisor: int | None,
) -> Array:
    _, windows = _averages(input_size[2:], window, stride, padding, ceil_mode, with_pad, divisor)
    result = np.zeros((*input_size[:2], int(np.prod(input_size[2:]))))
    for output, positions, count in windows:
        result[..., positions] += grad[(..., *output)][..., None] / count
    return result.reshape(input_size)


def adaptive_avg_pool(a: Array, output_size: Ints) -> Array:
    plane = a.reshape(*a.shape[:2], -1)
    result: Array = np.zeros((*a.shape[:2], *output_size), a.dtype)
    for output, positions in _shares(a.shape[2:], output_size):
        result[(..., *output)] = plane[..., positions].mean(-1)
    return result


def adaptive_avg_pool_backward(grad: Array, input_size: Ints) -> Array:
    result = np.zeros((*input_size[:2], int(np.prod(input_size[2:]))))
    for output, positions in _shares(tuple(input_size[2:]), list(grad.shape[2:])):
        result[..., positions] += grad[(..., *output)][..., None] / len(positions)
    return result.reshape(input_size)


def _max_calls(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for sizes, *how in _CASES:
        values = rng.permutation(6 * int(np.prod(sizes))).reshape(2, 3, *sizes) / 8.0 - 10
        if dtype in ("float16", "bfloat16"):
            values = np.round(numbers(rng, "float64", values.shape))
        for layout in ("contiguous", "transposed", "strided"):
            yield Sample((Input(values, dtype, layout), *how))


def _avg_calls(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for sizes, window, stride, padding, _, ceil_mode in _CASES:
        for with_pad, divisor in ((True, None), (False, None), (True, 3)):
            for layout in ("contiguous", "transposed"):
                a = Input(numbers(rng, dtype, (2, 3, *sizes)), dtype, layout)
                yield Sample((a, window, stride, padding, ceil_mode, with_pad, divisor))


def _avg_gradients(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for sizes, window, stride, padding, _, ceil_mode in _CASES:
        outputs = _outputs(sizes, window, stride, padding, [1] * len(window), ceil_mode)
        for with_pad in (True, False):
            grad = Input(numbers(rng, dtype, (2, 3, *outputs)), dtype)
            yield Sample((grad, [2, 3, *sizes], window, stride, padding, ceil_mode, with_pad, None))


def _max_gradients(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for sizes, outputs in (((7,), (3,)), ((6, 5), (3, 2)), ((3, 4, 5), (2, 2, 3))):
        indices = rng.integers(0, int(np.prod(sizes)), (2, 3, *outputs))
        yield Sample((Input(numbers(rng, dtype, indices.shape), dtype), Input(indices, "int64"), [2, 3, *sizes]))


def _adaptive(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for sizes, outputs in (
        ((7,), [3]),
        ((6, 5), [3, 2]),
        ((6, 5), [1, 1]),
        ((4, 4), [5, 4]),
        ((3, 4, 5), [2, 3, 2]),
        ((3, 4, 5), [1, 1, 1]),
    ):
        values = rng.permutation(6 * int(np.prod(sizes))).reshape(2, 3, *sizes) / 8.0
        yield Sample((Input(values, dtype), outputs))
        yield Sample((Input(values, dtype, "transposed"), outputs))


def _adaptive_gradients(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for sizes, outputs in (((7,), (3,)), ((6, 5), (3, 2)), ((4, 4), (5, 4)), ((3, 4, 5), (2, 3, 2))):
        yield Sample((Input(numbers(rng, dtype, (2, 3, *outputs)), dtype), [2, 3, *sizes]))


_DTYPES = ("float32", "float64", "bfloat16")
REFERENCES: dict[str, Reference] = {
    "max_pool": Reference(max_pool, _max_calls, ("float32", "float64")),
    "max_pool_values": Reference(lambda *call: max_pool(*call)[0], _max_calls, ("float32", "float64")),
    "adaptive_max_pool": Reference(adaptive_max_pool, _adaptive, ("float32", "float64")),
    "max_pool_backward": Reference(max_pool_backward, _max_gradients, ("float32", "float64"), 5),
    "avg_pool": Reference(avg_pool, _avg_calls, _DTYPES, 5),
    "avg_pool_backward": Reference(avg_pool_backward, _avg_gradients, ("float32", "float64"), 5),
    "adaptive_avg_pool": Reference(adaptive_avg_pool, _adaptive, ("float32", "float64"), 5),
    "adaptive_avg_pool_backward": Reference(adaptive_avg_pool_backward, _adaptive_gradients, ("float32", "float64"), 5),
}
