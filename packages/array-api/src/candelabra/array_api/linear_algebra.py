"""Linear algebra of the main namespace of the array API standard 2024.12: products and
transposes.
"""

from __future__ import annotations

from collections.abc import Sequence

import candelabra

from .array_object import Array, fresh
from .elementwise import promoted


def matmul(x1: Array, x2: Array, /) -> Array:
    """Matrix product; stacks of matrices broadcast, and an array of one dimension is a vector.

    Raises
    ------
    ValueError
        If an array has no dimensions, or the shapes do not fit.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.matmul(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 1]))
    Array([3, 7])
    """
    first, second = promoted("matmul", x1, x2)
    if first.ndim == 0 or second.ndim == 0:
        raise ValueError("matmul(): expected arrays of one dimension at least; multiply by a number with multiply()")
    if first.shape[-1] != second.shape[-2 if second.ndim > 1 else -1]:
        raise ValueError(f"matmul(): shapes {tuple(first.shape)} and {tuple(second.shape)} do not fit")
    if first.dtype is candelabra.bool:
        return fresh(candelabra.matmul(first.to(candelabra.int64), second.to(candelabra.int64)) != 0)
    return fresh(candelabra.matmul(first, second))


def matrix_transpose(x: Array, /) -> Array:
    """Transpose of a matrix, or of each of a stack.

    Raises
    ------
    ValueError
        If the array has fewer than two dimensions.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.matrix_transpose(xp.asarray([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]])
    """
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose(): expected an array of two dimensions at least, got {x.ndim}")
    return fresh(candelabra.transpose(x, -2, -1))


def tensordot(x1: Array, x2: Array, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Array:
    """Sum of products over some axes of both.

    Parameters
    ----------
    x1, x2 : Array
        Of numbers.
    axes : int or pair of sequences of int
        The last so many of the first with the first so many of the second, or the axes of each.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.tensordot(xp.ones((2, 3)), xp.ones((3, 4)), axes=1).shape
    candelabra.Size([2, 4])
    """
    first, second = promoted("tensordot", x1, x2)
    dims = axes if isinstance(axes, int) else (list(axes[0]), list(axes[1]))
    return fresh(candelabra.tensordot(first, second, dims))


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Inner product of vectors along an axis: the conjugates of the first are multiplied with the
    second.

    Raises
    ------
    ValueError
        If the vectors are of different length, which may not be broadcast.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.vecdot(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 1]))
    Array([3, 7])
    """
    first, second = promoted("vecdot", x1, x2)
    if first.ndim == 0 or second.ndim == 0:
        raise ValueError("vecdot(): expected arrays of one dimension at least")
    if first.shape[axis] != second.shape[axis]:
        raise ValueError(f"vecdot(): vectors of length {first.shape[axis]} and {second.shape[axis]} along axis {axis}")
    ones, others = candelabra.movedim(first, axis, -1), candelabra.movedim(second, axis, -1)
    if first.dtype is candelabra.bool:
        return fresh(candelabra.any(candelabra.logical_and(ones, others), -1))
    if first.dtype.is_floating_point or first.dtype.is_complex:
        return fresh(candelabra.linalg.vecdot(ones, others))
    return fresh(candelabra.sum(candelabra.mul(ones, others), -1, dtype=first.dtype))
