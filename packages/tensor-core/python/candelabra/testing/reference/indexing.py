"""References of indexing: gather, scatter and their relatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from candelabra.testing.sampling import (
    ALL,
    COMPLEX,
    FLOATS,
    NUMBERS,
    Input,
    Reference,
    Sample,
    Samples,
    layouts,
    numbers,
)

Array = np.ndarray


def _index(rng: np.random.Generator, shape: tuple[int, ...], size: int, unique: bool = False) -> Input:
    if unique:
        return Input(rng.permutation(size)[: shape[0]], "int64")
    return Input(rng.integers(0, size, shape), "int64")


def _grid(index: Array, dim: int) -> tuple[Array, ...]:
    grid: list[Array] = list(np.indices(index.shape, sparse=True))
    grid[dim] = index
    return tuple(grid)


def _tensors(rng: np.random.Generator, dtype: str) -> Iterator[Input]:
    for shape, layout in (
        ((6,), "contiguous"),
        ((4, 6), "contiguous"),
        ((4, 6), "transposed"),
        ((4, 6), "strided"),
        ((2, 3, 4), "contiguous"),
    ):
        yield Input(numbers(rng, dtype, shape), dtype, layout)


def _gathers(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a in _tensors(rng, dtype):
        for dim in (0, -1):
            shape = list(a.values.shape)
            shape[dim] = 3
            yield Sample((a, dim, _index(rng, tuple(shape), a.values.shape[dim])))


def _scatters(number: bool) -> Samples:
    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for a in _tensors(rng, dtype):
            for dim in (0, a.values.ndim - 1):
                order = np.argsort(rng.random(a.values.shape), axis=dim)  # no index twice: the order would be undefined
                yield Sample((a, dim, Input(order, "int64"), Input(numbers(rng, dtype, a.values.shape), dtype)))
                if number:
                    yield Sample((a, dim, Input(order, "int64"), True if dtype == "bool" else 2))

    return samples


def scatter(a: Array, dim: int, index: Array, source: Any) -> Array:
    result = a.copy()
    result[_grid(index, dim)] = source
    return result


def scatter_add(a: Array, dim: int, index: Array, source: Array) -> Array:
    result = a.copy()
    np.add.at(result, _grid(index, dim), source)
    return result


def _adds(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a in _tensors(rng, dtype):
        for dim in (0, a.values.ndim - 1):
            yield Sample(
                (
                    a,
                    dim,
                    _index(rng, a.values.shape, a.values.shape[dim]),
                    Input(numbers(rng, dtype, a.values.shape), dtype),
                )
            )


def _rows(unique: bool, with_source: bool) -> Samples:
    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for a in _tensors(rng, dtype):
            for dim in (0, -1):
                index = _index(rng, (3,), a.values.shape[dim], unique and a.values.shape[dim] >= 3)
                shape = list(a.values.shape)
                shape[dim] = len(index.values)
                if unique and a.values.shape[dim] < 3:
                    continue
                if with_source:
                    yield Sample((a, dim, index, Input(numbers(rng, dtype, tuple(shape)), dtype)))
                else:
                    yield Sample((a, dim, index))

    return samples


def _along(a: Array, dim: int, index: Array) -> tuple[Any, ...]:
    return (slice(None),) * (dim % a.ndim) + (index,)


def changed(change: Callable[[Array, Any, Any], None]) -> Callable[..., Array]:
    def expected(a: Array, dim: int, index: Array, source: Any, **keywords: Any) -> Array:
        result = a.copy()
        change(result, _along(a, dim, index), source)
        return result

    return expected


def _assign(a: Array, where: Any, source: Any) -> None:
    a[where] = source


def _fills(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for sample in _rows(False, False)(rng, dtype):
        yield Sample((*sample.arguments, 1))


def _advanced(with_values: bool) -> Samples:
    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        cube = Input(numbers(rng, dtype, (3, 4, 5)), dtype)
        cases: list[list[Input | None]] = [
            [_index(rng, (2,), 3)],
            [None, _index(rng, (2, 2), 4)],
            [_index(rng, (2,), 3), _index(rng, (3, 1), 4)],
            [_index(rng, (2,), 3), None, _index(rng, (2,), 5)],
            [None, _index(rng, (2,), 4), _index(rng, (2,), 5)],
            [Input(np.array([-1, 0, -3]), "int64")],
        ]
        for indices in cases:
            for tensor in (cube, Input(cube.values, dtype, "transposed")):
                if not with_values:
                    yield Sample((tensor, indices))
                    continue
                shape = cube.values[_numpy_index([i.values if i else None for i in indices])].shape
                for accumulate in (False, True):
                    # without accumulate, repeated indices write equal values
                    values = numbers(rng, dtype, shape) if accumulate else numbers(rng, dtype, ())
                    yield Sample((tensor, indices, Input(values, dtype), accumulate))

    return samples


def _numpy_index(indices: Any) -> tuple[Any, ...]:
    return tuple(slice(None) if index is None else index for index in indices)


def index_put(a: Array, indices: Any, values: Array, accumulate: bool) -> Array:
    result = a.copy()
    if accumulate:
        np.add.at(result, _numpy_index(indices), values)
    else:
        result[_numpy_index(indices)] = values
    return result


def _takes(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a in _tensors(rng, dtype):
        yield Sample((a, _index(rng, (2, 3), a.values.size)))


def _masks(rng: np.random.Generator, dtype: str, *, value: bool = False, source: bool = False) -> Iterator[Sample]:
    for a in layouts(rng, dtype):
        mask = Input(numbers(rng, "bool", a.values.shape), "bool")
        if value:
            yield Sample((a, mask, True if dtype == "bool" else 3))
        elif source:
            yield Sample((a, mask, Input(numbers(rng, dtype, (max(a.values.size, 1),)), dtype)))
        else:
            yield Sample((a, mask))


def masked_scatter(a: Array, mask: Array, source: Array) -> Array:
    result = a.copy()
    result[mask] = source[: np.count_nonzero(mask)]
    return result


def _embeddings(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for layout in ("contiguous", "transposed"):
        for shape in ((), (5,), (2, 3), (0,)):
            yield Sample((Input(numbers(rng, dtype, (7, 4)), dtype, layout), _index(rng, shape, 7)))


def _embedding_gradients(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape in ((5,), (2, 3)):
        for padding in (-1, 2):
            yield Sample((Input(numbers(rng, dtype, (*shape, 4)), dtype), _index(rng, shape, 7), 7, padding))


def embedding_backward(grad: Array, indices: Array, num_weights: int, padding_idx: int) -> Array:
    result = np.zeros((num_weights, grad.shape[-1]), grad.dtype)
    np.add.at(result, indices, np.where((indices == padding_idx)[..., None], 0, grad))
    return result


def scatter_reduce(a: Array, dim: int, index: Array, source: Array, reduce: str, *, include_self: bool = True) -> Array:
    result = a.copy()
    found: dict[tuple[int, ...], list[Any]] = {}
    for place in np.ndindex(*index.shape):
        target = tuple(int(index[place]) if d == dim else i for d, i in enumerate(place))
        found.setdefault(target, [a[target]] if include_self else []).append(source[place])
    combine: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "amax": np.max, "amin": np.min, "mean": np.mean}
    for target, values in found.items():
        made = (
            np.floor(np.mean(values))
            if reduce == "mean" and a.dtype.kind in "iu"
            else combine[reduce](np.array(values))
        )
        result[target] = made
    return result


def _reductions(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        if (reduce == "mean" and dtype == "bool") or (reduce[:2] == "am" and dtype in COMPLEX):
            continue
        for shape, sources, dim in (
            ((4,), (7,), 0),
            ((4, 3), (6, 3), 0),
            ((2, 3, 4), (2, 3, 5), 2),
            ((3, 4), (2, 5), 1),
        ):
            for include_self, layout in ((True, "contiguous"), (False, "strided")):
                a = Input(numbers(rng, dtype, shape, -2, 3), dtype, layout)
                index = _index(rng, sources, shape[dim])
                source = Input(numbers(rng, dtype, sources, -2, 3), dtype, layout)
                yield Sample((a, dim, index, source, reduce), {"include_self": include_self})


def _bags_of(indices: Array, offsets: Array, has_end: bool) -> tuple[int, Array]:
    count = len(offsets) - has_end
    return count, np.searchsorted(np.sort(offsets[:count]), np.arange(len(indices)), side="right") - 1


def _embedding_bag(
    weight: Array,
    indices: Array,
    offsets: Array,
    mode: str,
    factors: Array | None,
    by_frequency: bool,
    has_end: bool,
    padding: int,
) -> tuple[Array, Array, Array, Array]:
    count, bag = _bags_of(indices, offsets, has_end)
    out = np.zeros((count, weight.shape[1]))
    sizes = np.zeros(count, dtype=np.int64)
    largest = np.zeros(out.shape, dtype=np.int64)
    for b in range(count):
        here = [i for i in range(len(indices)) if bag[i] == b and indices[i] != padding]
        sizes[b] = len(here)
        if not here:
            continue
        rows = weight[indices[here]] * (1 if factors is None else factors[here][:, None])
        out[b] = {"sum": rows.sum(0), "mean": rows.mean(0), "max": rows.max(0)}[mode]
        largest[b] = indices[here][rows.argmax(0)]
    if mode == "sum":
        sizes = np.zeros_like(sizes)
    return out, bag, sizes, largest if mode == "max" else sizes


def _embedding_bag_backward(
    grad: Array,
    indices: Array,
    bag: Array,
    sizes: Array,
    largest: Array,
    rows: int,
    mode: str,
    factors: Any,
    by_frequency: bool,
    padding: int,
) -> Array:
    out = np.zeros((rows, grad.shape[1]))
    if mode == "max":
        for b, c in np.ndindex(*grad.shape):
            out[largest[b, c], c] += grad[b, c] if sizes[b] else 0
        return out
    for i, row in enumerate(indices):
        if row == padding:
            continue
        share = (1 if factors is None else factors[i]) / (sizes[bag[i]] if mode == "mean" else 1)
        out[row] += grad[bag[i]] * share / ((indices == row).sum() if by_frequency else 1)
    return out


def _bag_calls(rng: np.random.Generator, dtype: str) -> Iterator[tuple[Any, ...]]:
    for mode, weighted, by_frequency, has_end, padding in (
        ("sum", False, False, False, -1), ("sum", True, False, True, 2), ("mean", False, True, False, 1), ("max", False, False, True, -1),
        ("max", False, False, False, 3), ("mean", False, False, False, -1),
    ):  # fmt: skip
        for layout in ("contiguous", "transposed"):
            weight = Input(numbers(rng, dtype, (7, 4)), dtype, layout)
            indices = _index(rng, (9,), 7)
            offsets = Input(np.array([0, 3, 3, 5] + ([9] if has_end else [])), "int64")
            factors = (
                Input(numbers(rng, "float64", (9,)), "float64" if dtype == "float64" else "float32")
                if weighted
                else None
            )
            yield weight, indices, offsets, mode, factors, by_frequency, has_end, padding


def _bag_gradients(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for call in _bag_calls(rng, dtype):
        weight, indices, offsets, mode, factors, by_frequency, has_end, padding = call
        arrays = [None if x is None else x.values for x in (weight, indices, offsets, factors)]
        made = _embedding_bag(arrays[0], arrays[1], arrays[2], mode, arrays[3], by_frequency, has_end, padding)  # type: ignore[arg-type]
        grad = Input(numbers(rng, dtype, made[0].shape), dtype)
        kept = [Input(x, "int64") for x in made[1:]]
        yield Sample((grad, indices, *kept, 7, mode, factors, by_frequency, padding))


_ADDED = ("int64", *FLOATS, "complex64")
REFERENCES: dict[str, Reference] = {
    "gather": Reference(lambda a, dim, index: np.take_along_axis(a, index, dim), _gathers, ALL),
    "scatter": Reference(scatter, _scatters(True), ALL),
    "scatter_add": Reference(scatter_add, _adds, _ADDED, 5),
    "index_select": Reference(lambda a, dim, index: np.take(a, index, axis=dim), _rows(False, False), ALL),
    "index_add": Reference(changed(lambda a, w, s: np.add.at(a, w, s)), _rows(False, True), _ADDED, 5),
    "index_copy": Reference(changed(_assign), _rows(True, True), ALL),
    "index_fill": Reference(changed(_assign), _fills, ALL),
    "index": Reference(lambda a, indices: a[_numpy_index(indices)], _advanced(False), ALL),
    "index_put": Reference(index_put, _advanced(True), _ADDED, 5),
    "take": Reference(lambda a, index: np.take(a, index), _takes, ALL),
    "masked_fill": Reference(
        lambda a, mask, value: np.where(mask, value, a), lambda r, d: _masks(r, d, value=True), ALL
    ),
    "masked_scatter": Reference(masked_scatter, lambda r, d: _masks(r, d, source=True), ALL),
    "masked_select": Reference(lambda a, mask: a[mask] if a.ndim else a.reshape(1)[mask.reshape(1)], _masks, ALL),
    "nonzero": Reference(
        lambda a: np.argwhere(a), lambda r, d: (Sample((a,)) for a in layouts(r, d, -1, 1)), ("bool", *NUMBERS)
    ),
    "embedding": Reference(lambda weight, indices: weight[indices], _embeddings, FLOATS),
    "embedding_backward": Reference(embedding_backward, _embedding_gradients, ("float32", "float64"), 5),
    "scatter_reduce": Reference(scatter_reduce, _reductions, ("bool", "int64", "uint8", *FLOATS, "complex64"), 10),
    "_embedding_bag": Reference(
        _embedding_bag, lambda rng, dtype: (Sample(call) for call in _bag_calls(rng, dtype)), FLOATS, 5
    ),
    "_embedding_bag_backward": Reference(_embedding_bag_backward, _bag_gradients, FLOATS, 5),
}
