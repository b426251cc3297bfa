"""References of softmax and its relatives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import special

from candelabra.testing.sampling import Input, Reference, Sample, layouts, numbers

Array = np.ndarray
_DTYPES = ("float32", "float64", "bfloat16", "float16")


def _along(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a in layouts(rng, dtype):
        for dim in range(-1, min(a.values.ndim, 2)):
            if a.values.ndim:
                yield Sample((a, dim))
    yield Sample((Input(np.array([[1000.0, 1000.0], [-1000.0, 0.0], [-np.inf, 0.0]]), dtype), 1))
    yield Sample((Input(numbers(rng, dtype, (3, 300)), dtype), 1))


def _gradients(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape in ((5,), (3, 4), (2, 3, 4)):
        for dim in (0, -1):
            output = special.softmax(rng.uniform(-2, 2, shape), axis=dim)
            yield Sample((Input(numbers(rng, dtype, shape), dtype), Input(output, dtype, "transposed"), dim))


def softmax_backward(grad: Array, output: Array, dim: int) -> Array:
    return output * (grad - (grad * output).sum(axis=dim, keepdims=True))


def log_softmax_backward(grad: Array, output: Array, dim: int) -> Array:
    return grad - np.exp(output) * grad.sum(axis=dim, keepdims=True)


REFERENCES: dict[str, Reference] = {
    "softmax": Reference(lambda a, dim: special.softmax(a, axis=dim) if a.size else a, _along, _DTYPES, 10),
    "log_softmax": Reference(lambda a, dim: special.log_softmax(a, axis=dim) if a.size else a, _along, _DTYPES, 20),
    "softmax_backward": Reference(softmax_backward, _gradients, _DTYPES, 10),
    "log_softmax_backward": Reference(log_softmax_backward, _gradients, _DTYPES, 20),
}
