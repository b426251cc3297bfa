"""Statistical and utility functions of the array API standard 2024.12."""

from __future__ import annotations

import builtins
from typing import Any

import candelabra
from candelabra import Tensor

from .array_object import Array, fresh
from .data_types import KINDS, Dtype

Axis = int | tuple[int, ...] | None


def _axes(x: Tensor, axis: Axis) -> tuple[int, ...]:
    """The dimensions meant; the empty tuple stands for none of them."""
    if axis is None:
        return tuple(range(x.ndim))
    return (axis,) if isinstance(axis, int) else tuple(axis)


def _accumulated(x: Tensor, dtype: Dtype | None) -> Tensor:
    """The array in the data type that sums and products are in: integers are widened to 64 bits of
    their signedness.
    """
    if dtype is None:
        if x.dtype in KINDS["unsigned integer"]:
            dtype = candelabra.uint64
        elif x.dtype in KINDS["signed integer"] or x.dtype is candelabra.bool:
            dtype = candelabra.int64
        else:
            dtype = x.dtype
    return x.to(dtype)


def _reduced(function: Any, x: Tensor, axis: Axis, keepdims: builtins.bool, **options: Any) -> Array:
    """Reduce over dimensions, where the operator of Candelabra takes an empty tuple for all of
    them.
    """
    axes = _axes(x, axis)
    if not axes:
        # Each element alone: a dimension of size 1 to reduce over.
        return fresh(function(x.unsqueeze(-1), (x.ndim,), False, **options))
    return fresh(function(x, axes, keepdims, **options))


def cumulative_prod(
    x: Array, /, *, axis: int | None = None, dtype: Dtype | None = None, include_initial: builtins.bool = False
) -> Array:
    """Products of the elements up to each, along an axis.

    Parameters
    ----------
    x : Array
        Of one dimension or more.
    axis : int, optional
        May be left out for an array of one dimension.
    dtype : dtype, optional
        Of the result; integers are widened to 64 bits by default.
    include_initial : bool
        Whether the 1 at the beginning is part of the result.

    Raises
    ------
    ValueError
        If the axis is left out and there is not just one, or the array has no dimensions.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.cumulative_prod(xp.asarray([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6])
    """
    return _cumulative("cumulative_prod", candelabra.cumprod, 1, x, axis, dtype, include_initial)


def _cumulative(
    name: str,
    function: Any,
    initial: int,
    x: Tensor,
    axis: int | None,
    dtype: Dtype | None,
    include_initial: builtins.bool,
) -> Array:
    if x.ndim == 0:
        raise ValueError(f"{name}(): expected an array of one dimension at least")
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"{name}(): axis must be given for an array of {x.ndim} dimensions")
        axis = 0
    source = _accumulated(x, dtype)
    result = function(source, axis, dtype=source.dtype)
    if include_initial:
        shape = list(x.shape)
        shape[axis] = 1
        result = candelabra.cat([candelabra.full(shape, initial, dtype=result.dtype, device=x.device), result], axis)
    return fresh(result)


def cumulative_sum(
    x: Array, /, *, axis: int | None = None, dtype: Dtype | None = None, include_initial: builtins.bool = False
) -> Array:
    """Sums of the elements up to each, along an axis.

    Parameters
    ----------
    x : Array
        Of one dimension or more.
    axis : int, optional
        May be left out for an array of one dimension.
    dtype : dtype, optional
        Of the result; integers are widened to 64 bits by default.
    include_initial : bool
        Whether the 0 at the beginning is part of the result.

    Raises
    ------
    ValueError
        If the axis is left out and there is not just one, or the array has no dimensions.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]))
    Array([1, 3, 6])
    """
    return _cumulative("cumulative_sum", candelabra.cumsum, 0, x, axis, dtype, include_initial)


def max(x: Array, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
    """Greatest element; NaN, if there is one.

    Raises
    ------
    IndexError or RuntimeError
        If there are no elements to take it of.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.max(xp.asarray([[1, 5], [7, 3]]), axis=1)
    Array([5, 7])
    """
    return _reduced(candelabra.amax, x, axis, keepdims)


def mean(x: Array, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
    """Arithmetic mean, of floating-point or complex numbers; NaN of none.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.mean(xp.asarray([1.0, 2.0]))
    Array(1.5000)
    """
    return _reduced(candelabra.mean, x, axis, keepdims)


def min(x: Array, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
    """Smallest element; NaN, if there is one.

    Raises
    ------
    IndexError or RuntimeError
        If there are no elements to take it of.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.min(xp.asarray([[1, 5], [7, 3]]), axis=1)
    Array([1, 3])
    """
    return _reduced(candelabra.amin, x, axis, keepdims)


def prod(x: Array, /, *, axis: Axis = None, dtype: Dtype | None = None, keepdims: builtins.bool = False) -> Array:
    """Product; 1 of none. Integers are widened to 64 bits, unless `dtype` is given.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.prod(xp.asarray([2, 3]))
    Array(6)
    """
    result = _accumulated(x, dtype)
    # One dimension at a time, from the last, so that the numbers of the others stay what they are.
    for dim in sorted({axis % x.ndim if -x.ndim <= axis < x.ndim else axis for axis in _axes(x, axis)}, reverse=True):
        result = candelabra.prod(result, dim, keepdims, dtype=result.dtype)
    return fresh(result.clone() if result is x else result)


def std(x: Array, /, *, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Array:
    """Standard deviation: the square root of `var`.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.std(xp.asarray([1.0, 3.0]))
    Array(1.)
    """
    return fresh(candelabra.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims)))


def sum(x: Array, /, *, axis: Axis = None, dtype: Dtype | None = None, keepdims: builtins.bool = False) -> Array:
    """Sum; 0 of none. Integers are widened to 64 bits, unless `dtype` is given.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.sum(xp.asarray([[1, 2], [3, 4]]), axis=0)
    Array([4, 6])
    """
    source = _accumulated(x, dtype)
    return _reduced(candelabra.sum, source, axis, keepdims, dtype=source.dtype)


def var(x: Array, /, *, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Array:
    """Variance: mean of the squares of the distances from the mean, the divisor being ``count -
    correction``.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.var(xp.asarray([1.0, 3.0]), correction=1)
    Array(2.)
    """
    axes = _axes(x, axis)
    if not axes:
        return fresh(candelabra.var(x.unsqueeze(-1), -1, correction=correction))
    return fresh(candelabra.var(x, axes, correction=correction, keepdim=keepdims))


# ---- utility functions


def all(x: Array, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
    """Whether every element is true, that is, not zero.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.all(xp.asarray([[True, False], [True, True]]), axis=1)
    Array([False,  True])
    """
    return _reduced(candelabra.all, x != 0, axis, keepdims)


def any(x: Array, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
    """Whether an element is true, that is, not zero.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.any(xp.asarray([[True, False], [False, False]]), axis=1)
    Array([ True, False])
    """
    return _reduced(candelabra.any, x != 0, axis, keepdims)


def diff(
    x: Array, /, *, axis: int = -1, n: int = 1, prepend: Array | None = None, append: Array | None = None
) -> Array:
    """Differences between neighbours along an axis, `n` times.

    Parameters
    ----------
    x : Array
        Of one dimension or more.
    axis : int
        Along which.
    n : int
        How many times.
    prepend, append : Array, optional
        What to put before and after the elements first; of their shape but along the axis.

    Raises
    ------
    ValueError
        If `n` is negative.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.diff(xp.asarray([1, 4, 9]), prepend=xp.asarray([0]))
    Array([1, 3, 5])
    """
    if n < 0:
        raise ValueError(f"diff(): n must not be negative, got {n}")
    if n == 0:
        return fresh(x.clone())
    parts = [part for part in (prepend, x, append) if part is not None]
    joined = candelabra.cat(parts, axis) if len(parts) > 1 else x
    return fresh(candelabra.diff(joined, n, axis))
