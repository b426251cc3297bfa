"""Functions of the array API standard 2024.12 that move elements: shapes, joins, repetitions, and
selection by index.
"""

from __future__ import annotations

from collections.abc import Sequence

import candelabra
from candelabra import Tensor

from .array_object import Array, as_array, fresh
from .data_types import result_type


def broadcast_arrays(*arrays: Array) -> list[Array]:
    """Broadcast arrays against one another.

    Raises
    ------
    ValueError
        If their shapes do not broadcast.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> [x.shape for x in xp.broadcast_arrays(xp.ones((2, 1)), xp.ones(3))]
    [candelabra.Size([2, 3]), candelabra.Size([2, 3])]
    """
    try:
        shape = candelabra.broadcast_shapes(*[x.shape for x in arrays])
    except RuntimeError as error:
        raise ValueError(f"broadcast_arrays(): {error}") from error
    return [fresh(candelabra.broadcast_to(x, shape)) for x in arrays]


def broadcast_to(x: Array, /, shape: tuple[int, ...]) -> Array:
    """Broadcast an array to a shape, on the same memory.

    Raises
    ------
    ValueError
        If the shape is not one to which the array broadcasts.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]])
    """
    sizes = tuple(shape)
    fits = len(sizes) >= x.ndim and all(
        mine in (1, theirs) for mine, theirs in zip(x.shape, sizes[len(sizes) - x.ndim :], strict=True)
    )
    if not fits or any(size < 0 for size in sizes):
        raise ValueError(f"broadcast_to(): shape {tuple(x.shape)} does not broadcast to {sizes}")
    return fresh(candelabra.broadcast_to(x, sizes))


def concat(arrays: tuple[Array, ...] | list[Array], /, *, axis: int | None = 0) -> Array:
    """Join arrays along an axis that they have; None joins them flattened. Their data types are
    promoted.

    Raises
    ------
    ValueError
        If there are none.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.concat([xp.asarray([1, 2]), xp.asarray([3])])
    Array([1, 2, 3])
    """
    parts = _same_dtype(arrays, "concat")
    if axis is None:
        return fresh(candelabra.cat([part.reshape(-1) for part in parts]))
    # PyTorch overlooks empty parts of one dimension, whatever the others are.
    for part in parts:
        if part.ndim != parts[0].ndim:
            raise ValueError(
                f"concat(): arrays of shapes {[tuple(part.shape) for part in parts]} differ in their number of dimensions"
            )
    return fresh(candelabra.cat(parts, axis))


def _same_dtype(arrays: Sequence[Array], name: str) -> list[Tensor]:
    if len(arrays) == 0:
        raise ValueError(f"{name}(): expected one array at least")
    dtype = result_type(*arrays)
    return [x.to(dtype) for x in arrays]


def expand_dims(x: Array, /, axis: int) -> Array:
    """Insert a dimension of size 1.

    Raises
    ------
    IndexError
        If `axis` is not from ``-ndim - 1`` to ``ndim``.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.expand_dims(xp.ones(3), 0).shape
    candelabra.Size([1, 3])
    """
    return fresh(candelabra.unsqueeze(x, axis))


def flip(x: Array, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Reverse the order of the elements along some axes, or all.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.flip(xp.arange(3))
    Array([2, 1, 0])
    """
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    return fresh(candelabra.flip(x, axes))


def moveaxis(x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Array:
    """Move axes to other places; the rest keep their order.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
    candelabra.Size([3, 4, 2])
    """
    return fresh(candelabra.movedim(x, source, destination))


def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Array:
    """Put the dimensions into another order.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.permute_dims(xp.ones((2, 3, 4)), (2, 0, 1)).shape
    candelabra.Size([4, 2, 3])
    """
    return fresh(candelabra.permute(x, axes))


def repeat(x: Array, repeats: int | Array, /, *, axis: int | None = None) -> Array:
    """Repeat every element, along an axis or of the flattened array.

    Parameters
    ----------
    x : Array
        Any shape.
    repeats : int or Array
        How often: one number, or one for each place along the axis.
    axis : int, optional
        None repeats the elements of the flattened array.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.repeat(xp.asarray([1, 2]), xp.asarray([2, 3]))
    Array([1, 1, 2, 2, 2])
    """
    source, dim = (x.reshape(-1), 0) if axis is None else (x, axis)
    times = repeats.to(candelabra.int64) if isinstance(repeats, Tensor) else repeats
    if isinstance(times, Tensor) and times.numel() == 1:
        times = int(times)
    return fresh(candelabra.repeat_interleave(source, times, dim))


def reshape(x: Array, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Array:
    """Give the elements, in row-major order, another shape; one size may be -1, for what is left.

    Parameters
    ----------
    x : Array
        Any shape.
    shape : tuple of int
        As many elements.
    copy : bool, optional
        True: always copy; False: never; None: only where it must be.

    Raises
    ------
    ValueError
        If a copy is needed that `copy` forbids.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.reshape(xp.arange(4), (2, -1))
    Array([[0, 1],
           [2, 3]])
    """
    if copy is False:
        try:
            return fresh(x.view(shape))
        except RuntimeError as error:
            raise ValueError(f"reshape(): shape {tuple(shape)} cannot be had without a copy: {error}") from error
    if copy:
        return fresh(candelabra.reshape(x.clone(memory_format=candelabra.contiguous_format), shape))
    return as_array(candelabra.reshape(x, shape), x)


def roll(x: Array, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Shift elements along axes; what falls off one end comes in at the other. None rolls the
    flattened array.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.roll(xp.arange(4), 1)
    Array([3, 0, 1, 2])
    """
    if axis is None:
        return fresh(candelabra.roll(x, shift))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    if len(shifts) == 1:
        shifts *= len(axes)
    return fresh(candelabra.roll(x, shifts, axes))


def squeeze(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    """Remove dimensions of size 1.

    Raises
    ------
    ValueError
        If one of them is of another size.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.squeeze(xp.ones((1, 3)), 0).shape
    candelabra.Size([3])
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for one in axes:
        if -x.ndim <= one < x.ndim and x.shape[one] != 1:
            raise ValueError(f"squeeze(): axis {one} of shape {tuple(x.shape)} is of size {x.shape[one]}, not 1")
    return as_array(candelabra.squeeze(x, axes), x)


def stack(arrays: tuple[Array, ...] | list[Array], /, *, axis: int = 0) -> Array:
    """Join arrays of one shape along a new axis. Their data types are promoted.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.stack([xp.asarray([1, 2]), xp.asarray([3, 4])])
    Array([[1, 2],
           [3, 4]])
    """
    return fresh(candelabra.stack(_same_dtype(arrays, "stack"), axis))


def tile(x: Array, repetitions: tuple[int, ...], /) -> Array:
    """Repeat an array as a whole along its axes.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.tile(xp.asarray([1, 2]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]])
    """
    return fresh(candelabra.tile(x, repetitions))


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Split an array into those along an axis, which they lose.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.unstack(xp.asarray([[1, 2], [3, 4]]))
    (Array([1, 2]), Array([3, 4]))
    """
    return tuple(fresh(part) for part in candelabra.unbind(x, axis))


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """Select places along an axis by index; negative ones count from the end.

    Parameters
    ----------
    x : Array
        Any shape.
    indices : Array
        Integers, of one dimension.
    axis : int, optional
        May be left out for an array of one dimension.

    Raises
    ------
    ValueError
        If the axis is left out and `x` has several dimensions.
    IndexError
        If an index is out of range.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.take(xp.asarray([10, 20, 30]), xp.asarray([2, 0]))
    Array([30, 10])
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take(): axis must be given for an array of {x.ndim} dimensions")
        axis = 0
    _check_integers("take", indices)
    size = x.shape[axis]
    return fresh(candelabra.index_select(x, axis, _from_the_start(indices, size)))


def _check_integers(name: str, indices: Tensor) -> None:
    if indices.dtype is candelabra.bool or indices.dtype.is_floating_point or indices.dtype.is_complex:
        raise TypeError(f"{name}(): indices must be integers, not {indices.dtype}")


def _from_the_start(indices: Tensor, size: int) -> Tensor:
    whole = indices.to(candelabra.int64)
    return candelabra.where(whole < 0, whole + size, whole)


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Select elements along an axis, by indices of their own for each place of the others.

    `x` and `indices` have as many dimensions, and broadcast against each other along all but the
    axis.

    Raises
    ------
    ValueError
        If the numbers of dimensions differ.
    IndexError
        If an index is out of range.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.take_along_axis(xp.asarray([[1, 2], [3, 4]]), xp.asarray([[1], [0]]))
    Array([[2],
           [3]])
    """
    if x.ndim != indices.ndim:
        raise ValueError(
            f"take_along_axis(): x has {x.ndim} dimensions and indices {indices.ndim}; they must have as many"
        )
    _check_integers("take_along_axis", indices)
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(f"take_along_axis(): axis {axis} is out of range for {x.ndim} dimensions")
    dim = axis % x.ndim
    shape = list(candelabra.broadcast_shapes(x.narrow(dim, 0, 0).shape, indices.narrow(dim, 0, 0).shape))
    sizes = shape.copy()
    shape[dim], sizes[dim] = x.shape[dim], indices.shape[dim]
    source = candelabra.broadcast_to(x, shape)
    return fresh(candelabra.gather(source, dim, _from_the_start(candelabra.broadcast_to(indices, sizes), x.shape[dim])))
