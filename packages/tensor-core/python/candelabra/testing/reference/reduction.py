"""References of the reductions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from candelabra.testing.sampling import (
    BOOLEAN,
    COMPLEX,
    FLOATS,
    NUMBERS,
    REAL,
    Input,
    Reference,
    Sample,
    Samples,
    layouts,
    numbers,
    special_values,
)

Array = np.ndarray
Dims = tuple[int, ...] | int | None
REFERENCES: dict[str, Reference] = {}


def _axis(dim: Any) -> Any:
    return tuple(dim) if isinstance(dim, (list, tuple)) else dim


def over_dims(empty: bool = True, special: bool = True, whole: bool = True, **keywords: Any) -> Samples:
    """Yield calls over all dimensions, one, several and the last, with and without keepdim."""

    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for a in layouts(rng, dtype):
            if not empty and a.values.size == 0:
                continue
            if whole:
                yield Sample((a,), keywords)
            for dim in range(-1, min(a.values.ndim, 2)):
                if a.values.ndim:
                    yield Sample((a,), {"dim": [dim], "keepdim": dim == 0, **keywords})
        cube = numbers(rng, dtype, (3, 4, 5))
        yield Sample((Input(cube, dtype),), {"dim": [0, 2], **keywords})
        yield Sample((Input(cube, dtype, "transposed"),), {"dim": [-1, 1], "keepdim": True, **keywords})
        yield Sample((Input(numbers(rng, dtype, (3, 1000), 0, 1), dtype),), {"dim": [1], **keywords})
        if special and whole:
            for a in special_values(dtype):
                yield Sample((a,), keywords)

    return samples


def one_dim(**keywords: Any) -> Samples:
    """Yield calls along one nonempty dimension."""

    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for a in layouts(rng, dtype):
            for dim in range(-1, min(a.values.ndim, 2)):
                if a.values.ndim and a.values.shape[dim]:
                    yield Sample((a, dim), {"keepdim": dim == 0, **keywords})
        many = numbers(rng, dtype, (4, 50), 0, 1) if dtype == "bool" else rng.integers(0, 9, (4, 50))
        yield Sample((Input(many, dtype), 1), keywords)
        if dtype in FLOATS:
            yield Sample(
                (Input(np.array([[1.0, np.nan, 3.0, np.nan], [np.inf, 2.0, -np.inf, np.inf]]), dtype), 1), keywords
            )

    return samples


def reduce(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, dim=None, keepdim=False, **k: function(a, axis=_axis(dim), keepdims=keepdim, **k)


REFERENCES["sum"] = Reference(reduce(np.sum), over_dims(), (*BOOLEAN, *NUMBERS), 10)
REFERENCES["mean"] = Reference(reduce(np.mean), over_dims(), (*FLOATS, *COMPLEX), 10)


def _products(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a in layouts(rng, dtype, 0.5, 1.5):
        yield Sample((a,))
        for dim in range(-1, min(a.values.ndim, 2)):
            if a.values.ndim:
                yield Sample((a, dim), {"keepdim": dim == 0})


REFERENCES["prod"] = Reference(reduce(np.prod), _products, ("int32", "int64", "float32", "float64", "complex64"), 10)
_function: Callable[..., Any]
for _name, _function in (("amax", np.max), ("amin", np.min)):
    REFERENCES[_name] = Reference(reduce(_function), over_dims(empty=False), (*BOOLEAN, *REAL))
_smallest, _largest = reduce(np.min), reduce(np.max)
REFERENCES["_aminmax"] = Reference(
    lambda *arguments, **keywords: (_smallest(*arguments, **keywords), _largest(*arguments, **keywords)),
    over_dims(empty=False),
    (*BOOLEAN, *REAL),
)
for _name, _function in (("all", np.all), ("any", np.any)):
    REFERENCES[_name] = Reference(reduce(_function), over_dims(special=False), (*BOOLEAN, *NUMBERS))
REFERENCES["_nansum"] = Reference(reduce(np.nansum), over_dims(), FLOATS, 10)


def _counts(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for sample in over_dims()(rng, dtype):
        yield Sample(sample.arguments, {"dim": sample.keywords["dim"]} if "dim" in sample.keywords else {})


REFERENCES["count_nonzero"] = Reference(
    lambda a, dim=None: np.asarray(np.count_nonzero(a, axis=_axis(dim))), _counts, (*BOOLEAN, *NUMBERS)
)
for _name, _function in (("argmax", np.argmax), ("argmin", np.argmin)):
    REFERENCES[_name] = Reference(reduce(_function), one_dim(), REAL)


def with_indices(pick: Callable[..., Any]) -> Callable[..., tuple[Array, Array]]:
    def expected(a: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
        indices = pick(a, axis=dim, keepdims=True)
        values = np.take_along_axis(a, indices, dim)
        return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))

    return expected


REFERENCES["max_with_indices"] = Reference(with_indices(np.argmax), one_dim(), (*BOOLEAN, *REAL))
REFERENCES["min_with_indices"] = Reference(with_indices(np.argmin), one_dim(), (*BOOLEAN, *REAL))


def _variance(a: Array, dim: Any = None, correction: float = 1, keepdim: bool = False) -> Array:
    axis = _axis(dim)
    count = a.size if axis is None else np.prod([a.shape[d] for d in axis])
    distance = np.abs(a - a.mean(axis=axis, keepdims=True)) ** 2
    return distance.sum(axis=axis, keepdims=keepdim) / np.float64(max(count - correction, 0))


for _name, _last in (("var", lambda v: v), ("std", np.sqrt)):
    REFERENCES[_name] = Reference(
        lambda a, last=_last, **k: last(_variance(a, **k)),
        over_dims(special=False),
        ("float32", "float64", "bfloat16", "complex64"),
        20,
    )
REFERENCES["var"].samples, REFERENCES["std"].samples = over_dims(special=False), over_dims(special=False, correction=0)


def vector_norm(a: Array, ord: float = 2, dim: Any = None, keepdim: bool = False) -> Array:
    size, axis = np.abs(a), _axis(dim)
    if ord == np.inf:
        return size.max(axis=axis, keepdims=keepdim)
    if ord == -np.inf:
        return size.min(axis=axis, keepdims=keepdim)
    if ord == 0:
        return (size != 0).sum(axis=axis, keepdims=keepdim)
    return (size**ord).sum(axis=axis, keepdims=keepdim) ** (1 / ord)


def _norms(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for order in (0, 1, 2, 3, 0.5, np.inf, -np.inf):
        yield from over_dims(empty=not np.isinf(order), special=False, ord=order)(rng, dtype)


REFERENCES["linalg_vector_norm"] = Reference(
    vector_norm, _norms, ("float32", "float64", "bfloat16", "complex64", "complex128"), 20
)


def logsumexp(a: Array, dim: Any, keepdim: bool = False) -> Array:
    from scipy.special import logsumexp as reference

    return reference(a, axis=_axis(dim), keepdims=keepdim)


REFERENCES["logsumexp"] = Reference(
    logsumexp, over_dims(empty=False, special=False, whole=False), ("float32", "float64", "bfloat16"), 10
)
