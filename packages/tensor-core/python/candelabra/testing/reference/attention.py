"""References of attention, with the full matrix of weights: P = softmax(scale * Q K^T + mask), O =
P V.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from candelabra.testing.sampling import FLOATS, Input, Reference, Sample, numbers

Array = np.ndarray


def _spread(a: Array, heads: int) -> Array:
    return np.repeat(a, heads // a.shape[1], axis=1)


def _weights(query: Array, key: Array, mask: Array | None, is_causal: bool, scale: float) -> tuple[Array, Array]:
    scores = query @ _spread(key, query.shape[1]).swapaxes(-1, -2) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf)
    largest = scores.max(-1, keepdims=True)
    empty = largest == -np.inf
    powers = np.exp(scores - np.where(empty, 0, largest))
    sums = powers.sum(-1, keepdims=True)
    logarithms = np.where(empty, np.inf, largest + np.log(np.where(empty, 1, sums)))
    return powers / np.where(empty, 1, sums), logarithms[..., 0]


def forward(
    query: Array, key: Array, value: Array, mask: Array | None, is_causal: bool, scale: float
) -> tuple[Array, Array]:
    weights, logarithms = _weights(query, key, mask, is_causal, scale)
    return weights @ _spread(value, query.shape[1]), logarithms


def _gathered(a: Array, groups: int) -> Array:
    return a.reshape(a.shape[0], groups, -1, *a.shape[2:]).sum(2)


def backward(
    grad: Array,
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    output: Array,
    logsumexp: Array,
    is_causal: bool,
    scale: float,
) -> tuple[Array, Array, Array]:
    heads, groups = query.shape[1], key.shape[1]
    weights, _ = _weights(query, key, mask, is_causal, scale)
    of_weights = grad @ _spread(value, heads).swapaxes(-1, -2)
    slopes = weights * (of_weights - (grad * output).sum(-1, keepdims=True)) * scale
    of_key, of_value = slopes.swapaxes(-1, -2) @ query, weights.swapaxes(-1, -2) @ grad
    return slopes @ _spread(key, heads), _gathered(of_key, groups), _gathered(of_value, groups)


#: N, H, G, L, S, E, V, and shape and content of a mask.
_CALLS: tuple[tuple[tuple[int, ...], tuple[int, ...] | None, str, bool], ...] = (
    ((2, 2, 2, 3, 5, 4, 3), None, "", False),
    ((1, 4, 2, 7, 7, 2, 4), None, "", True),
    ((2, 2, 1, 3, 4, 4, 4), (3, 4), "bool", False),
    ((2, 2, 2, 3, 4, 4, 4), (2, 1, 1, 4), "number", False),
    ((1, 1, 1, 70, 140, 4, 4), (1, 140), "empty", False),
    ((1, 2, 2, 130, 130, 3, 3), None, "", True),
)


def _calls(rng: np.random.Generator, dtype: str) -> Iterator[tuple[Any, ...]]:
    for (n, h, g, length, keys, width, columns), mask_shape, kind, causal in _CALLS:
        for layout in ("contiguous", "strided"):
            query = Input(numbers(rng, dtype, (n, h, length, width), -2, 2), dtype, layout)
            key = Input(numbers(rng, dtype, (n, g, keys, width), -2, 2), dtype, layout)
            value = Input(numbers(rng, dtype, (n, g, keys, columns), -2, 2), dtype, layout)
            mask = None
            if mask_shape is not None:
                if kind == "number":
                    mask = Input(numbers(rng, dtype, mask_shape, -2, 2), dtype)
                else:
                    seen = rng.random(mask_shape) < (0 if kind == "empty" else 0.6)
                    mask = Input(seen if kind == "empty" else seen | (np.arange(mask_shape[-1]) == 0), "bool")
            yield query, key, value, mask, causal, 0.6


def _forwards(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for call in _calls(rng, dtype):
        yield Sample(call)


def _backwards(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    statistics = "float64" if dtype == "float64" else "float32"
    for query, key, value, mask, causal, scale in _calls(rng, dtype):
        seen = None if mask is None else mask.values
        output, logarithms = forward(query.values, key.values, value.values, seen, causal, scale)
        grad = Input(numbers(rng, dtype, output.shape, -1, 1), dtype)
        yield Sample(
            (grad, query, key, value, mask, Input(output, dtype), Input(logarithms, statistics), causal, scale)
        )


REFERENCES: dict[str, Reference] = {
    "_scaled_dot_product_attention": Reference(forward, _forwards, FLOATS, 20),
    "_scaled_dot_product_attention_backward": Reference(backward, _backwards, ("float32", "float64"), 100),
}
