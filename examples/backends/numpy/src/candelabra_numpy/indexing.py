"""Indexing. NumPy checks the indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_numpy.kernels import KERNELS, array, kernel, store

Array = Any


def _check(index: Array, size: int, dim: int, error: type[Exception] = IndexError) -> None:
    wrong = (index < 0) | (index >= size)
    if np.any(wrong):
        raise error(f"index {np.asarray(index)[wrong].flat[0]} is out of bounds for dimension {dim} with size {size}")


def _grid(index: Array, dim: int) -> tuple[Array, ...]:
    """Return open indices of every element of `index`, with `index` itself in dimension `dim`."""
    grid: list[Array] = list(np.indices(index.shape, sparse=True))
    grid[dim] = index
    return tuple(grid)


@kernel("gather")
def gather(a: Array, dim: int, index: Array) -> Array:
    _check(index, a.shape[dim], dim, RuntimeError)
    return a[_grid(index, dim)]


def _source(source: Array, index: Array) -> Array:
    return (
        source[tuple(slice(size) for size in index.shape)] if isinstance(source, np.ndarray) and source.ndim else source
    )


@kernel("scatter")
def scatter(a: Array, dim: int, index: Array, source: Array) -> Array:
    _check(index, a.shape[dim], dim, RuntimeError)
    result = a.copy()
    result[_grid(index, dim)] = _source(source, index)
    return result


@kernel("scatter_add")
def scatter_add(a: Array, dim: int, index: Array, source: Array) -> Array:
    _check(index, a.shape[dim], dim, RuntimeError)
    result = a.copy()
    np.add.at(result, _grid(index, dim), _source(source, index))
    return result


@kernel("index_select")
def index_select(a: Array, dim: int, index: Array) -> Array:
    _check(index, a.shape[dim], dim)
    return np.take(a, index, axis=dim)


def _along(dim: int, index: Array) -> tuple[Any, ...]:
    return (slice(None),) * dim + (index,)


@kernel("index_add")
def index_add(a: Array, dim: int, index: Array, source: Array, alpha: Any) -> Array:
    _check(index, a.shape[dim], dim)
    result = a.copy()
    np.add.at(result, _along(dim, index), np.asarray(alpha, a.dtype) * source)
    return result


@kernel("index_copy")
def index_copy(a: Array, dim: int, index: Array, source: Array) -> Array:
    _check(index, a.shape[dim], dim)
    result = a.copy()
    result[_along(dim, index)] = source
    return result


@kernel("index_fill")
def index_fill(a: Array, dim: int, index: Array, value: Any) -> Array:
    _check(index, a.shape[dim], dim)
    result = a.copy()
    result[_along(dim, index)] = value
    return result


def _advanced(indices: tuple[Array | None, ...]) -> tuple[Any, ...]:
    return tuple(slice(None) if index is None else index for index in indices)


@kernel("index")
def index(a: Array, indices: tuple[Array | None, ...]) -> Array:
    return a[_advanced(indices)]


@kernel("index_put")
def index_put(a: Array, indices: tuple[Array | None, ...], values: Array, accumulate: bool) -> Array:
    result = a.copy()
    if accumulate:
        np.add.at(result, _advanced(indices), values)
    else:
        result[_advanced(indices)] = values
    return result


@kernel("take")
def take(a: Array, index: Array) -> Array:
    return np.take(a, index, mode="raise")


@kernel("masked_fill")
def masked_fill(a: Array, mask: Array, value: Array) -> Array:
    return np.where(mask, np.asarray(value, a.dtype), a)


@kernel("masked_scatter")
def masked_scatter(a: Array, mask: Array, source: Array) -> Array:
    count = int(np.count_nonzero(mask))
    if source.size < count:
        raise RuntimeError(
            f"masked_scatter: the mask has {count} true elements, the source only {source.size} elements"
        )
    result = a.copy()
    result[mask] = source.reshape(-1)[:count]
    return result


def _masked_select(allocate: Any, a: Any, mask: Any) -> None:
    selected = array(a)[array(mask)]
    store(allocate(selected.size), selected)


def _nonzero(allocate: Any, a: Any) -> None:
    positions = np.argwhere(array(a))
    store(allocate(*positions.shape), positions)


KERNELS["masked_select"] = _masked_select
KERNELS["nonzero"] = _nonzero
