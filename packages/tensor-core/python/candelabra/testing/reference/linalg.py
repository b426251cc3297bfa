"""References of the products."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from candelabra.testing.sampling import COMPLEX, FLOATS, Input, Reference, Sample, Samples, numbers

Array = np.ndarray
_DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", *COMPLEX)


def products(*shapes: tuple[tuple[int, ...], ...], keywords: tuple[dict[str, Any], ...] = ({},)) -> Samples:
    """Calls with tensors of each group of shapes, in several layouts."""

    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for group in shapes:
            for layout in ("contiguous", "transposed", "strided"):
                tensors = tuple(Input(numbers(rng, dtype, shape, -2, 2), dtype, layout) for shape in group)
                for chosen in keywords:
                    yield Sample(tensors, chosen)

    return samples


def add_product(a: Array, b: Array, c: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    product = alpha * np.matmul(b, c)
    return product if beta == 0 else beta * a + product


def linear(a: Array, weight: Array, bias: Array | None = None) -> Array:
    result = a @ weight.T
    return result if bias is None else result + bias


_SCALES: tuple[dict[str, Any], ...] = ({}, {"beta": 2, "alpha": 3}, {"beta": 0})
_MATRICES = (((3, 4), (4, 5)), ((1, 1), (1, 1)), ((17, 33), (33, 9)), ((0, 4), (4, 2)), ((2, 0), (0, 3)), ((64, 48), (48, 80)))
_BATCHES = (((2, 3, 4), (2, 4, 5)), ((3, 8, 8), (3, 8, 8)), ((0, 2, 3), (0, 3, 2)))
_matmul: Callable[..., Array] = np.matmul


def distances(x1: Array, x2: Array, p: float) -> Array:
    difference = np.abs(x1[..., :, None, :] - x2[..., None, :, :])
    if p == 0:
        return np.count_nonzero(difference, axis=-1).astype(x1.dtype)
    if p == np.inf:
        return difference.max(-1, initial=0)
    return (difference**p).sum(-1) ** (1 / p)


def _pairs_of_rows(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for first, second in (((3, 4), (5, 4)), ((2, 3, 4), (2, 70, 4)), ((70, 300), (3, 300)), ((2, 0, 3), (2, 4, 3))):
        for p in (2.0, 1.0, 0.0, 3.0, float("inf")):
            for layout in ("contiguous", "strided"):
                x1 = Input(numbers(rng, dtype, first, -2, 2), dtype, layout)
                yield Sample((x1, Input(numbers(rng, dtype, second, -2, 2), dtype, layout), p))


REFERENCES: dict[str, Reference] = {
    "mm": Reference(_matmul, products(*_MATRICES), _DTYPES, 60),
    "bmm": Reference(_matmul, products(*_BATCHES), _DTYPES, 60),
    "mv": Reference(_matmul, products(((3, 4), (4,)), ((5, 0), (0,))), _DTYPES, 60),
    "dot": Reference(np.dot, products(((7,), (7,)), ((0,), (0,)), ((300,), (300,))), _DTYPES, 60),
    "addmm": Reference(add_product, products(((3, 5), (3, 4), (4, 5)), ((5,), (3, 4), (4, 5)), keywords=_SCALES), _DTYPES, 60),
    "baddbmm": Reference(
        add_product, products(((2, 3, 5), (2, 3, 4), (2, 4, 5)), ((1,), (2, 3, 4), (2, 4, 5)), keywords=_SCALES), _DTYPES, 60
    ),
    "linear": Reference(
        linear,
        products(
            ((3, 4), (5, 4)),
            ((3, 4), (5, 4), (5,)),
            ((2, 3, 4), (5, 4), (5,)),
            ((4,), (5, 4), (5,)),
            ((0, 4), (5, 4), (5,)),
            ((32, 64), (128, 64), (128,)),
        ),
        ("float32", "float64", "bfloat16"),
        60,
    ),
    "distances": Reference(distances, _pairs_of_rows, FLOATS, 10),
}
