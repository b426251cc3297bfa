"""References of convolution: direct sums over the kernel, and its gradients by the transposed
sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from candelabra.testing.sampling import Input, Reference, Sample, numbers

Array = Any  # a NumPy array, whose stubs reject an index of an ellipsis and integers
Ints = list[int]
_DTYPES = ("float32", "float64", "bfloat16")

#: batch, groups, input and output channels per group, sizes, kernel, stride, padding, dilation
_CASES = (
    (2, 1, 3, 4, (7,), (3,), [1], [1], [1]),
    (1, 2, 2, 3, (9,), (2,), [2], [0], [2]),
    (2, 1, 3, 4, (6, 5), (3, 3), [1, 1], [1, 1], [1, 1]),
    (2, 2, 2, 2, (7, 6), (3, 2), [2, 1], [0, 1], [1, 2]),
    (1, 4, 1, 1, (5, 5), (3, 3), [1, 1], [1, 1], [1, 1]),
    (1, 1, 3, 2, (4, 4), (1, 1), [1, 1], [0, 0], [1, 1]),
    (1, 1, 2, 2, (8, 8), (3, 3), [3, 2], [2, 1], [2, 2]),
    (0, 1, 2, 3, (5, 5), (3, 3), [1, 1], [1, 1], [1, 1]),
)


def _reach(
    sizes: tuple[int, ...], window: tuple[int, ...], stride: Ints, padding: Ints, dilation: Ints
) -> tuple[int, ...]:
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(sizes, window, stride, padding, dilation, strict=True)
    )


def _places(
    outputs: tuple[int, ...], window: tuple[int, ...], stride: Ints, dilation: Ints
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    for position in product(*map(range, window)):
        yield (
            position,
            tuple(
                slice(p * d, p * d + (n - 1) * s + 1, s)
                for p, d, n, s in zip(position, dilation, outputs, stride, strict=True)
            ),
        )


def _padded(a: Array, padding: Ints) -> Array:
    return np.pad(a, [(0, 0), (0, 0), *((p, p) for p in padding)])


def forward(
    a: Array, weight: Array, bias: Array | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    outputs = _reach(a.shape[2:], weight.shape[2:], stride, padding, dilation)
    result = np.zeros((a.shape[0], weight.shape[0], *outputs), a.dtype)
    padded, share = _padded(a, padding), weight.shape[0] // groups
    for place, (position, spans) in product(range(groups), _places(outputs, weight.shape[2:], stride, dilation)):
        out, inner = (
            slice(place * share, (place + 1) * share),
            slice(place * weight.shape[1], (place + 1) * weight.shape[1]),
        )
        result[:, out] += np.einsum(
            "oi,ni...->no...", weight[(out, slice(None), *position)], padded[(slice(None), inner, *spans)]
        )
    return result if bias is None else result + bias.reshape(-1, *(1,) * len(outputs))


def input_gradient(
    grad: Array, weight: Array, input_size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    padded: Array = np.zeros((*input_size[:2], *(n + 2 * p for n, p in zip(input_size[2:], padding, strict=True))))
    share = weight.shape[0] // groups
    for place, (position, spans) in product(range(groups), _places(grad.shape[2:], weight.shape[2:], stride, dilation)):
        out, inner = (
            slice(place * share, (place + 1) * share),
            slice(place * weight.shape[1], (place + 1) * weight.shape[1]),
        )
        padded[(slice(None), inner, *spans)] += np.einsum(
            "oi,no...->ni...", weight[(out, slice(None), *position)], grad[:, out]
        )
    return padded[(..., *(slice(p, p + n) for p, n in zip(padding, input_size[2:], strict=True)))]


def weight_gradient(
    grad: Array, a: Array, weight_size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    result, padded, share = np.zeros(weight_size), _padded(a, padding), weight_size[0] // groups
    axes = "xyz"[: len(stride)]
    for place, (position, spans) in product(
        range(groups), _places(grad.shape[2:], tuple(weight_size[2:]), stride, dilation)
    ):
        out, inner = (
            slice(place * share, (place + 1) * share),
            slice(place * weight_size[1], (place + 1) * weight_size[1]),
        )
        result[(out, slice(None), *position)] = np.einsum(
            f"no{axes},ni{axes}->oi", grad[:, out], padded[(slice(None), inner, *spans)]
        )
    return result


def _calls(rng: np.random.Generator, dtype: str, kind: str) -> Iterator[Sample]:
    for batch, groups, channels, outs, sizes, window, stride, padding, dilation in _CASES:
        a = Input(numbers(rng, dtype, (batch, groups * channels, *sizes)), dtype)
        weight = Input(numbers(rng, dtype, (groups * outs, channels, *window)), dtype)
        grad = Input(
            numbers(rng, dtype, (batch, groups * outs, *_reach(sizes, window, stride, padding, dilation))), dtype
        )
        how = (stride, padding, dilation, groups)
        if kind == "forward":
            for bias in (None, Input(numbers(rng, dtype, (groups * outs,)), dtype)):
                yield Sample((a, weight, bias, *how))
            yield Sample((Input(a.values, dtype, "strided"), weight, None, *how))
        elif kind == "input":
            yield Sample((grad, weight, list(a.values.shape), *how))
        else:
            yield Sample((grad, a, list(weight.values.shape), *how))


REFERENCES: dict[str, Reference] = {
    "convolution": Reference(forward, lambda r, d: _calls(r, d, "forward"), _DTYPES, 60),
    "convolution_backward_input": Reference(input_gradient, lambda r, d: _calls(r, d, "input"), _DTYPES, 60),
    "convolution_backward_weight": Reference(weight_gradient, lambda r, d: _calls(r, d, "weight"), _DTYPES, 60),
}
