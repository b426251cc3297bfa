"""Creation functions of the array API standard 2024.12."""

from __future__ import annotations

import math
from typing import Any, Literal

import candelabra
from candelabra import Tensor
from candelabra.types import Device

from .array_object import Array, as_array, fresh
from .data_types import KINDS, Dtype

Shape = int | tuple[int, ...]


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: Dtype | None = None,
    device: Device | None = None,
) -> Array:
    """Evenly spaced numbers from `start` up to, and without, `stop`; from 0 to `start`, if there is
    no `stop`.

    Integers are exact over the whole range of the data type, unsigned ones included.

    Raises
    ------
    ValueError
        If `step` is 0.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.arange(5, 0, -2)
    Array([5, 3, 1])
    """
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange(): step must not be 0")
    whole = isinstance(start, int) and isinstance(stop, int) and isinstance(step, int)
    if dtype is None:
        dtype = candelabra.int64 if whole else candelabra.get_default_dtype()
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int) and dtype in KINDS["integral"]:
        # Modulo 2**64, so that numbers of uint64 above those of int64 come out right.
        numbers = candelabra.arange(len(range(start, stop, step)), device=device) * _wrapped(step) + _wrapped(start)
        return fresh(numbers.to(dtype))
    count = max(math.ceil((stop - start) / step), 0)
    if (dtype.is_floating_point or dtype.is_complex) and (not whole or abs(stop) < 2**53):
        return fresh(candelabra.arange(count, dtype=candelabra.float64, device=device).mul_(step).add_(start).to(dtype))
    return fresh(candelabra.arange(start, stop, step, dtype=dtype, device=device))


def _wrapped(number: int) -> int:
    """A number modulo 2**64, as a signed one."""
    return (number + 2**63) % 2**64 - 2**63


def asarray(
    obj: Any,
    /,
    *,
    dtype: Dtype | None = None,
    device: Device | None = None,
    copy: bool | None = None,
) -> Array:
    """Make an array of numbers, nested sequences, tensors, NumPy arrays, buffers and whatever
    speaks DLPack.

    Parameters
    ----------
    obj : object
        What to make an array of.
    dtype : dtype, optional
        That of the data by default: the default integer or floating-point type for Python's
        numbers.
    device : device, optional
        The current default device, or that of `obj`.
    copy : bool, optional
        True: always copy; False: never; None: share memory where that is possible.

    Raises
    ------
    ValueError
        If a copy is needed that `copy` forbids.
    OverflowError
        If an integer does not fit.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.asarray([[1, 2.5], [3, 4]])
    Array([[1.0000, 2.5000],
           [3.0000, 4.0000]])
    """
    if isinstance(obj, Tensor):
        same = (dtype is None or dtype is obj.dtype) and (device is None or candelabra.device(device) == obj.device)
        if copy is False and not same:
            raise ValueError(
                f"asarray(): a copy is needed to make {obj.dtype} on {obj.device} into {dtype} on {device}"
            )
        if same and not copy:
            return as_array(obj, obj)
        return fresh(obj.to(device=obj.device if device is None else device, dtype=dtype or obj.dtype, copy=True))
    try:
        made = candelabra.asarray(obj, dtype=dtype, device=device, copy=copy)
    except (ValueError, RuntimeError) as error:
        if "verflow" in str(error):
            raise OverflowError(f"asarray(): {error}") from error
        raise
    return as_array(made, obj)


def empty(shape: Shape, *, dtype: Dtype | None = None, device: Device | None = None) -> Array:
    """Make an array whose elements are not set.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.empty((2, 3)).shape
    candelabra.Size([2, 3])
    """
    return fresh(candelabra.empty(_sizes(shape), dtype=dtype, device=device))


def _sizes(shape: Shape) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def empty_like(x: Array, /, *, dtype: Dtype | None = None, device: Device | None = None) -> Array:
    """Make an array of the shape of another, whose elements are not set.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.empty_like(xp.ones(3)).dtype
    candelabra.float32
    """
    return fresh(candelabra.empty_like(x, dtype=dtype, device=device))


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Dtype | None = None, device: Device | None = None
) -> Array:
    """Make a matrix with ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    n_rows, n_cols : int
        Its size; square by default.
    k : int
        Which diagonal: above the main one if positive, below it if negative.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.eye(2, 3, k=1)
    Array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    columns = n_rows if n_cols is None else n_cols
    made = candelabra.zeros(n_rows, columns, dtype=dtype, device=device)
    if -n_rows < k < columns:
        candelabra.diagonal(made, k).fill_(1)
    return fresh(made)


def from_dlpack(x: Any, /, *, device: Device | None = None, copy: bool | None = None) -> Array:
    """Make an array on the memory of any object that speaks DLPack.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.from_dlpack(xp.arange(3))
    Array([0, 1, 2])
    """
    return as_array(candelabra.from_dlpack(x, device=device, copy=copy), x)


def full(shape: Shape, fill_value: complex, *, dtype: Dtype | None = None, device: Device | None = None) -> Array:
    """Make an array filled with a number; its data type is the default one of the number's kind,
    unless it is given.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.full((2, 2), 7)
    Array([[7, 7],
           [7, 7]])
    """
    return fresh(candelabra.full(_sizes(shape), fill_value, dtype=dtype, device=device))


def full_like(x: Array, /, fill_value: complex, *, dtype: Dtype | None = None, device: Device | None = None) -> Array:
    """Make an array of the shape and data type of another, filled with a number.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.full_like(xp.ones(2), 3)
    Array([3., 3.])
    """
    return fresh(candelabra.full_like(x, fill_value, dtype=dtype, device=device))


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: Dtype | None = None,
    device: Device | None = None,
    endpoint: bool = True,
) -> Array:
    """Evenly spaced numbers from `start` to `stop`.

    Parameters
    ----------
    start, stop : float or complex
        The ends.
    num : int
        How many numbers.
    dtype : dtype, optional
        The default floating-point type, or complex type for complex ends.
    endpoint : bool
        Whether `stop` is the last of them, or the one that would follow.

    Raises
    ------
    ValueError
        If `num` is negative.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.linspace(0, 1, 5), xp.linspace(0, 1, 4, endpoint=False)
    (Array([0.0000, 0.2500, 0.5000, 0.7500, 1.0000]), Array([0.0000, 0.2500, 0.5000, 0.7500]))
    """
    if num < 0:
        raise ValueError(f"linspace(): num must not be negative, got {num}")
    if dtype is None:
        dtype = candelabra.get_default_dtype()
        if isinstance(start, complex) or isinstance(stop, complex):
            dtype = candelabra.promote_types(dtype, candelabra.complex64)
    if not endpoint:
        return fresh(candelabra.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1])
    return fresh(candelabra.linspace(start, stop, num, dtype=dtype, device=device))


def meshgrid(*arrays: Array, indexing: Literal["xy", "ij"] = "xy") -> list[Array]:
    """Coordinates of a grid, one array for each of the one-dimensional arrays.

    Raises
    ------
    ValueError
        If the arrays are of different data types or of more than one dimension, or `indexing` is
        another word.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.meshgrid(xp.arange(2), xp.arange(2))
    [Array([[0, 1],
           [0, 1]]), Array([[0, 0],
           [1, 1]])]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid(): indexing must be 'xy' or 'ij', not {indexing!r}")
    for array in arrays:
        if array.ndim > 1:
            raise ValueError(f"meshgrid(): expected arrays of one dimension, got shape {tuple(array.shape)}")
        if array.dtype is not arrays[0].dtype:
            raise ValueError(f"meshgrid(): expected arrays of one data type, got {arrays[0].dtype} and {array.dtype}")
    if not arrays:
        return []
    # As views of one another's memory they could not be written to.
    return [
        fresh(grid.clone(memory_format=candelabra.contiguous_format))
        for grid in candelabra.meshgrid(*arrays, indexing=indexing)
    ]


def ones(shape: Shape, *, dtype: Dtype | None = None, device: Device | None = None) -> Array:
    """Make an array of ones.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.ones(3)
    Array([1., 1., 1.])
    """
    return fresh(candelabra.ones(_sizes(shape), dtype=dtype, device=device))


def ones_like(x: Array, /, *, dtype: Dtype | None = None, device: Device | None = None) -> Array:
    """Make an array of ones of the shape and data type of another.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.ones_like(xp.arange(2))
    Array([1, 1])
    """
    return fresh(candelabra.ones_like(x, dtype=dtype, device=device))


def tril(x: Array, /, *, k: int = 0) -> Array:
    """Keep the lower triangle of a matrix, or of each of a stack; zeros elsewhere.

    Parameters
    ----------
    x : Array
        Of two dimensions or more.
    k : int
        The last diagonal that is kept.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.tril(xp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]])
    """
    return fresh(candelabra.tril(x, _bounded_diagonal(x, k)))


def _bounded_diagonal(x: Tensor, k: int) -> int:
    """A diagonal far off is as good as the first outside the matrix."""
    reach = max(x.shape[-2:], default=0) + 1
    return max(-reach, min(reach, k))


def triu(x: Array, /, *, k: int = 0) -> Array:
    """Keep the upper triangle of a matrix, or of each of a stack; zeros elsewhere.

    Parameters
    ----------
    x : Array
        Of two dimensions or more.
    k : int
        The first diagonal that is kept.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.triu(xp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]])
    """
    return fresh(candelabra.triu(x, _bounded_diagonal(x, k)))


def zeros(shape: Shape, *, dtype: Dtype | None = None, device: Device | None = None) -> Array:
    """Make an array of zeros.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.zeros((2,))
    Array([0., 0.])
    """
    return fresh(candelabra.zeros(_sizes(shape), dtype=dtype, device=device))


def zeros_like(x: Array, /, *, dtype: Dtype | None = None, device: Device | None = None) -> Array:
    """Make an array of zeros of the shape and data type of another.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.zeros_like(xp.arange(2))
    Array([0, 0])
    """
    return fresh(candelabra.zeros_like(x, dtype=dtype, device=device))
