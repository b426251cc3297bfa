"""References of matrix products."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from candelabra.testing.reference.elementwise import gelu
from candelabra.testing.sampling import COMPLEX, FLOATS, Input, Reference, Sample, Samples, numbers

Array = np.ndarray
_DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", *COMPLEX)


def products(*shapes: tuple[tuple[int, ...], ...], keywords: tuple[dict[str, Any], ...] = ({},)) -> Samples:
    """Yield calls with tensors of each group of shapes, in several layouts."""

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


def add_product_and_activate(
    a: Array, b: Array, c: Array, beta: Any = 1, alpha: Any = 1, use_gelu: bool = False
) -> Array:
    made = add_product(a, b, c, beta, alpha)
    return gelu(made) if use_gelu else np.maximum(made, 0)


_SCALES: tuple[dict[str, Any], ...] = ({}, {"beta": 2, "alpha": 3}, {"beta": 0})
_MATRICES = (
    ((3, 4), (4, 5)),
    ((1, 1), (1, 1)),
    ((17, 33), (33, 9)),
    ((0, 4), (4, 2)),
    ((2, 0), (0, 3)),
    ((64, 48), (48, 80)),
)
_BATCHES = (((2, 3, 4), (2, 4, 5)), ((3, 8, 8), (3, 8, 8)), ((0, 2, 3), (0, 3, 2)))
_matmul: Callable[..., Array] = np.matmul


def _activated_products(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    """Yield products with biases of a row, a column and a matrix. gelu gets small numbers, where it
    is not linear.
    """
    for shapes in (
        ((5,), (3, 4), (4, 5)),
        ((3, 1), (3, 4), (4, 5)),
        ((3, 5), (3, 0), (0, 5)),
        ((130,), (70, 48), (48, 130)),
    ):
        yield from products(shapes, keywords=_SCALES)(rng, dtype)
    if dtype not in FLOATS:
        return
    for shapes in (((5,), (3, 4), (4, 5)), ((3, 5), (3, 4), (4, 5)), ((130,), (70, 48), (48, 130))):
        for layout in ("contiguous", "transposed", "strided"):
            tensors = tuple(Input(numbers(rng, dtype, shape, -1, 1), dtype, layout) for shape in shapes)
            yield Sample(tensors, {"use_gelu": True})
            yield Sample(tensors, {"use_gelu": True, "beta": 2, "alpha": 0.5})


def cdist_forward(x1: Array, x2: Array, p: float) -> Array:
    difference = np.abs(x1[..., :, None, :] - x2[..., None, :, :])
    if p == 0:
        return np.count_nonzero(difference, axis=-1).astype(x1.dtype)
    if p == np.inf:
        return difference.max(-1, initial=0)
    return (difference**p).sum(-1) ** (1 / p)


def _cdist_backward(grad: Array, x1: Array, x2: Array, result: Array, p: float) -> Array:
    difference = x1[..., :, None, :] - x2[..., None, :, :]
    sign, size = np.sign(difference), np.abs(difference)
    distance = result[..., None]
    with np.errstate(all="ignore"):
        if p == 0:
            change = np.zeros_like(difference)
        elif p == np.inf:
            change = np.where(size == distance, sign, 0)
        else:
            change = np.where(distance == 0, 0, sign * size ** (p - 1) / distance ** (p - 1))
    return (change * grad[..., None]).sum(-2)


def _gradients_of_pairs(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for sample in _pairs_of_rows(rng, dtype):
        x1, x2, p = sample.arguments
        x2.values[..., :1, :] = x1.values[..., :1, :] if x1.values.size else 0  # equal rows
        made = cdist_forward(x1.values, x2.values, p)
        if p == np.inf:  # the distance must be exactly one of the differences
            x1, x2 = (Input(np.round(x.values * 8) / 8, dtype, x.layout) for x in (x1, x2))
            made = cdist_forward(x1.values, x2.values, p)
        yield Sample((Input(numbers(rng, dtype, made.shape, -1, 1), dtype), x1, x2, Input(made, dtype), p))


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
    "addmm": Reference(
        add_product, products(((3, 5), (3, 4), (4, 5)), ((5,), (3, 4), (4, 5)), keywords=_SCALES), _DTYPES, 60
    ),
    "_addmm_activation": Reference(
        add_product_and_activate, _activated_products, ("float32", "float64", "bfloat16", "float16", "int64"), 60
    ),
    "baddbmm": Reference(
        add_product,
        products(((2, 3, 5), (2, 3, 4), (2, 4, 5)), ((1,), (2, 3, 4), (2, 4, 5)), keywords=_SCALES),
        _DTYPES,
        60,
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
    "_pdist_forward": Reference(
        lambda x, p: cdist_forward(x, x, p)[np.triu_indices(x.shape[0], 1)],
        lambda rng, dtype: (
            Sample((Input(numbers(rng, dtype, (n, m)), dtype), p))
            for n, m in ((0, 2), (1, 3), (5, 4), (70, 9), (131, 3))
            for p in (0.0, 1.0, 2.0, 3.0, float("inf"))
        ),
        FLOATS,
        10,
    ),
    "_cdist_forward": Reference(cdist_forward, _pairs_of_rows, FLOATS, 10),
    "_cdist_backward": Reference(_cdist_backward, _gradients_of_pairs, ("float32", "float64"), 100),
}
