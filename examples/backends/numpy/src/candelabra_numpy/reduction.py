"""Reductions, scans, sorting and the classification loss. Outputs of reductions have size 1 in the
reduced dimensions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_numpy.kernels import kernel

Array = Any
Dims = tuple[int, ...]


def _wide(a: Array) -> Array:
    """Return half precision as float32, in which it is summed."""
    return a.astype(np.float32) if a.dtype == np.float16 else a


@kernel("sum")
def sum_(a: Array, dim: Dims, keepdim: bool, dtype: Any) -> Array:
    return _wide(a).sum(axis=dim, keepdims=True)


@kernel("mean")
def mean(a: Array, dim: Dims, keepdim: bool, dtype: Any) -> Array:
    count = np.prod([a.shape[d] for d in dim], dtype=np.float64)
    return _wide(a).sum(axis=dim, keepdims=True) / count


@kernel("prod")
def prod(a: Array, dim: Dims, keepdim: bool, dtype: Any) -> Array:
    return _wide(a).prod(axis=dim, keepdims=True)


@kernel("amax")
def amax(a: Array, dim: Dims, keepdim: bool) -> Array:
    return a.max(axis=dim, keepdims=True)


@kernel("amin")
def amin(a: Array, dim: Dims, keepdim: bool) -> Array:
    return a.min(axis=dim, keepdims=True)


@kernel("all")
def all_(a: Array, dim: Dims, keepdim: bool) -> Array:
    return a.astype(bool).all(axis=dim, keepdims=True)


@kernel("any")
def any_(a: Array, dim: Dims, keepdim: bool) -> Array:
    return a.astype(bool).any(axis=dim, keepdims=True)


@kernel("argmax")
def argmax(a: Array, dim: int, keepdim: bool) -> Array:
    return a.argmax(axis=dim, keepdims=True)


@kernel("argmin")
def argmin(a: Array, dim: int, keepdim: bool) -> Array:
    return a.argmin(axis=dim, keepdims=True)


@kernel("max_with_indices")
def max_with_indices(a: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    indices = a.argmax(axis=dim, keepdims=True)
    return np.take_along_axis(a, indices, dim), indices


@kernel("min_with_indices")
def min_with_indices(a: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    indices = a.argmin(axis=dim, keepdims=True)
    return np.take_along_axis(a, indices, dim), indices


@kernel("var")
def var(a: Array, dim: Dims, correction: float, keepdim: bool) -> Array:
    count = np.prod([a.shape[d] for d in dim], dtype=np.float64)
    wide = _wide(a)
    distance = np.abs(wide - wide.mean(axis=dim, keepdims=True)) ** 2
    return distance.sum(axis=dim, keepdims=True) / np.maximum(count - correction, 0)


@kernel("std")
def std(a: Array, dim: Dims, correction: float, keepdim: bool) -> Array:
    return np.sqrt(var(a, dim, correction, keepdim))


@kernel("linalg_vector_norm")
def vector_norm(a: Array, order: float, dim: Dims, keepdim: bool, dtype: Any) -> Array:
    size = np.abs(_wide(a))
    if order == np.inf:
        return size.max(axis=dim, keepdims=True, initial=0)
    if order == -np.inf:
        return size.min(axis=dim, keepdims=True, initial=np.inf)
    if order == 0:
        return (size != 0).sum(axis=dim, keepdims=True)
    return (size**order).sum(axis=dim, keepdims=True) ** (1 / order)


@kernel("cumsum")
def cumsum(a: Array, dim: int, dtype: Any) -> Array:
    return _wide(a).cumsum(axis=dim) if a.ndim else a


@kernel("cumprod")
def cumprod(a: Array, dim: int, dtype: Any) -> Array:
    return _wide(a).cumprod(axis=dim) if a.ndim else a


def _order(a: Array, dim: int, descending: bool) -> Array:
    if not descending:
        return np.argsort(a, axis=dim, kind="stable")
    # A stable descending sort: sort the reversed array and read it from the end.
    order = np.flip(np.argsort(np.flip(a, dim), axis=dim, kind="stable"), dim)
    return a.shape[dim] - 1 - order


@kernel("sort")
def sort(a: Array, dim: int, descending: bool, stable: bool) -> tuple[Array, Array]:
    order = _order(a, dim, descending)
    return np.take_along_axis(a, order, dim), order


@kernel("topk")
def topk(a: Array, k: int, dim: int, largest: bool, sorted_: bool) -> tuple[Array, Array]:
    order = np.take(_order(a, dim, largest), np.arange(k), axis=dim)
    return np.take_along_axis(a, order, dim), order


def _class_weights(target: Array, weight: Array | None, classes: int, ignore_index: int, dtype: Any) -> Array:
    """Return the weight of each target; 0 for ignored ones."""
    kept = target != ignore_index
    wrong = kept & ((target < 0) | (target >= classes))
    if wrong.any():
        raise IndexError(f"Target {target[wrong].flat[0]} is out of bounds.")
    weights = np.ones(classes, dtype) if weight is None else weight
    return np.where(kept, weights[np.where(kept, target, 0)], 0).astype(dtype)


@kernel("nll_loss_forward")
def nll_loss(a: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> tuple[Array, Array]:
    weights = _class_weights(target, weight, a.shape[1], ignore_index, a.dtype)
    chosen = np.take_along_axis(a, np.expand_dims(np.where(target == ignore_index, 0, target), 1), 1).squeeze(1)
    losses = np.where(target == ignore_index, 0, -chosen * weights)
    total = weights.sum()
    if reduction == 0:
        return losses, total
    return (losses.sum() / total if reduction == 1 else losses.sum()), total


@kernel("nll_loss_backward")
def nll_loss_backward(
    grad: Array, a: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int, total: Array
) -> Array:
    weights = _class_weights(target, weight, a.shape[1], ignore_index, a.dtype)
    share = -weights * grad / (total if reduction == 1 else 1)
    share = np.where(target == ignore_index, 0, share)
    result = np.zeros(a.shape, a.dtype)
    np.put_along_axis(
        result, np.expand_dims(np.where(target == ignore_index, 0, target), 1), np.expand_dims(share, 1), 1
    )
    return result
