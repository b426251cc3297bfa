"""Searching, sorting and set functions of the array API standard 2024.12."""

from __future__ import annotations

import builtins
from typing import Literal, NamedTuple

import candelabra
from candelabra import Tensor

from .array_object import Array, fresh
from .elementwise import Number, promoted
from .statistical import Axis, sum


def argmax(x: Array, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Array:
    """Index of the first greatest element along an axis, or of the flattened array.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.argmax(xp.asarray([1, 5, 5]))
    Array(1)
    """
    return fresh(candelabra.argmax(x, axis, keepdims))


def argmin(x: Array, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Array:
    """Index of the first smallest element along an axis, or of the flattened array.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.argmin(xp.asarray([3, 1, 1]))
    Array(1)
    """
    return fresh(candelabra.argmin(x, axis, keepdims))


def count_nonzero(x: Array, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
    """Number of elements that are not zero.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.count_nonzero(xp.asarray([[1, 0], [2, 3]]), axis=1)
    Array([1, 2])
    """
    return sum(fresh(x != 0), axis=axis, keepdims=keepdims)


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Indices of the elements that are not zero, an array for each dimension.

    Raises
    ------
    ValueError
        If the array has no dimensions.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.nonzero(xp.asarray([0, 3, 0, 4]))
    (Array([1, 3]),)
    """
    if x.ndim == 0:
        raise ValueError("nonzero(): expected an array of one dimension at least")
    return tuple(fresh(index) for index in candelabra.nonzero(x, as_tuple=True))


def searchsorted(
    x1: Array, x2: Array | int | float, /, *, side: Literal["left", "right"] = "left", sorter: Array | None = None
) -> Array:
    """Where elements are to be inserted into a sorted array so that it stays sorted.

    Parameters
    ----------
    x1 : Array
        Of one dimension, in ascending order, or put into it by `sorter`.
    x2 : Array, int or float
        What is to be inserted; the result has its shape.
    side : {"left", "right"}
        Before or after elements that are equal.
    sorter : Array, optional
        Indices that sort `x1`.

    Raises
    ------
    ValueError
        If `x1` is not of one dimension, or `side` another word.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.searchsorted(xp.asarray([1, 3, 3, 5]), xp.asarray([3, 6]), side="right")
    Array([3, 4])
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted(): side must be 'left' or 'right', not {side!r}")
    if x1.ndim != 1:
        raise ValueError(f"searchsorted(): x1 must be of one dimension, got shape {tuple(x1.shape)}")
    rows, values = promoted("searchsorted", x1, x2)
    if sorter is not None:
        rows = candelabra.index_select(rows, 0, sorter.to(candelabra.int64))
    return fresh(candelabra.searchsorted(rows.contiguous(), values.contiguous(), side=side))


def where(condition: Array, x1: Array | Number, x2: Array | Number, /) -> Array:
    """Elements of the first where the condition is true, and of the second elsewhere. Data types
    are promoted.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0)
    Array([1, 0])
    """
    if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        return fresh(candelabra.where(condition, x1, x2))
    first, second = promoted("where", x1, x2)
    return fresh(candelabra.where(condition, first, second))


# ---- sorting


def argsort(x: Array, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Array:
    """Indices that sort an array along an axis; NaN counts as the greatest.

    Parameters
    ----------
    x : Array
        Of a real data type.
    axis : int
        Along which.
    descending : bool
        From the greatest on.
    stable : bool
        Whether equal elements keep their order.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.argsort(xp.asarray([30, 10, 20]))
    Array([1, 2, 0])
    """
    return fresh(candelabra.argsort(x, axis, descending, stable))


def sort(x: Array, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Array:
    """Sort along an axis; NaN counts as the greatest.

    Parameters
    ----------
    x : Array
        Of a real data type.
    axis : int
        Along which.
    descending : bool
        From the greatest on.
    stable : bool
        Whether equal elements keep their order.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.sort(xp.asarray([30, 10, 20]), descending=True)
    Array([30, 20, 10])
    """
    return fresh(candelabra.sort(x, stable=stable, dim=axis, descending=descending).values)


# ---- sets


class UniqueAllResult(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


def unique_all(x: Array, /) -> UniqueAllResult:
    """Distinct elements, where each is first, which of them each element is, and how often each is
    there.

    The elements are sorted. NaN is equal to nothing, so every NaN is an element of its own; the
    zeros of both signs are one.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> values, indices, inverse_indices, counts = xp.unique_all(xp.asarray([3, 1, 3]))
    >>> values, indices, inverse_indices, counts
    (Array([1, 3]), Array([1, 0]), Array([1, 0, 1]), Array([1, 2]))
    """
    flat = x.reshape(-1)
    order = _order(flat)
    ascending = flat[order]
    first = candelabra.ones(flat.shape, dtype=candelabra.bool, device=x.device)
    if flat.numel():
        first[1:] = candelabra.ne(ascending[1:], ascending[:-1])
    starts = candelabra.nonzero(first).reshape(-1)
    group = candelabra.cumsum(first, 0) - 1
    inverse = candelabra.empty_like(group).scatter_(0, order, group)
    ends = candelabra.cat([starts[1:], starts.new_full((min(1, starts.numel()),), flat.numel())])
    return UniqueAllResult(
        fresh(ascending[starts]),
        fresh(order[starts]),
        fresh(inverse.reshape(x.shape)),
        fresh(candelabra.sub(ends, starts)),
    )


def _order(flat: Tensor) -> Tensor:
    """Indices that sort stably; complex numbers by their real parts, then by their imaginary
    ones.
    """
    flat = flat.as_subclass(Tensor)
    if not flat.dtype.is_complex:
        return candelabra.argsort(flat, 0, False, True)
    order = candelabra.argsort(flat.imag, 0, False, True)
    return order[candelabra.argsort(flat.real[order], 0, False, True)]


def unique_counts(x: Array, /) -> UniqueCountsResult:
    """Distinct elements and how often each is there: see `unique_all`.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.unique_counts(xp.asarray([3, 1, 3])).counts
    Array([1, 2])
    """
    found = unique_all(x)
    return UniqueCountsResult(found.values, found.counts)


def unique_inverse(x: Array, /) -> UniqueInverseResult:
    """Distinct elements and which of them each element is: see `unique_all`.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.unique_inverse(xp.asarray([3, 1, 3])).inverse_indices
    Array([1, 0, 1])
    """
    found = unique_all(x)
    return UniqueInverseResult(found.values, found.inverse_indices)


def unique_values(x: Array, /) -> Array:
    """Distinct elements: see `unique_all`.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.unique_values(xp.asarray([3, 1, 3]))
    Array([1, 3])
    """
    return unique_all(x).values
