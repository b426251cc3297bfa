"""Splitting tensors into views."""

from __future__ import annotations

import operator as python_operator
from itertools import pairwise

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..keyword_names import also_named
from ..movement.views import wrap_dim
from ..registration import function, refuse_others

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from candelabra._C import Tensor

_narrow = OPERATORS["narrow"]
_select = OPERATORS["select"]
_slice = OPERATORS["slice"]


def _refuse_countless(name: str, count: int, limit: int = 2**31) -> None:
    """Raise for a number of views that memory cannot hold."""
    if count >= limit:
        raise RuntimeError(f"{name}: {count} parts are too many; their views would not fit in memory")


@function()
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor into the slices along a dimension.

    Parameters
    ----------
    input : Tensor
    dim : int
        The dimension to remove.

    Returns
    -------
    tuple of Tensor
        One view per position.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.unbind(candelabra.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    if input.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    dim = wrap_dim(dim, input.ndim)
    _refuse_countless("unbind", input.shape[dim])
    return tuple([_select(input, dim, i)._mark_one_of_views() for i in range(input.shape[dim])])


@function(operator=True)
def split(tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, **names: Any) -> tuple[Tensor, ...]:
    """Split into parts of a given size, or of given sizes.

    Parameters
    ----------
    tensor : Tensor
    split_size_or_sections : int or sequence of int
        The size of each part (the last may be smaller), or one size per part.
    dim : int
        The dimension that is split.

    Returns
    -------
    tuple of Tensor
        Views.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.split(candelabra.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if names:
        split_size_or_sections = names.pop("split_size", split_size_or_sections)
        if names:
            raise TypeError(f"split() got an unexpected keyword argument '{next(iter(names))}'")
    size = split_size_or_sections
    if type(size) is not int:
        if size is None:
            raise TypeError("split() missing 1 required argument: 'split_size_or_sections'")
        if not hasattr(size, "__index__"):
            return split_with_sizes(tensor, size, dim)
        size = python_operator.index(size)
    try:
        shape = tensor.shape
    except AttributeError:
        refuse_others("split", tensor=tensor)
        raise
    if not shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    if type(dim) is not int or not 0 <= dim < len(shape):
        dim = wrap_dim(dim, len(shape))
    length = shape[dim]
    if size == 0:
        if length:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}")
        return (OPERATORS["alias"](tensor),)
    rest = length % size
    _refuse_countless("split", length // size + 1)
    parts = [_narrow(tensor, dim, i, size) for i in range(0, length - rest, size)]
    if rest or not parts:
        parts.append(_narrow(tensor, dim, length - rest, rest))
    return tuple([part._mark_one_of_views() for part in parts])


@function()
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split into parts of given sizes; see :func:`candelabra.split`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.split_with_sizes(candelabra.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    if input.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    dim = wrap_dim(dim, input.ndim)
    sizes = [python_operator.index(n) for n in split_sizes]
    length = input.shape[dim]
    if sum(sizes) != length or any(n < 0 for n in sizes):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension {dim}), "
            f"but got split_sizes={sizes}"
        )
    return tuple([part._mark_one_of_views() for part in _parts_of(input, sizes, dim)])


def _parts_of(input: Tensor, sizes: list[int], dim: int) -> list[Tensor]:
    parts, start = [], 0
    for size in sizes:
        parts.append(_narrow(input, dim, start, size))
        start += size
    return parts


@function()
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split into at most `chunks` parts of equal size, the last possibly smaller.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.chunk(candelabra.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    if input.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    length = input.shape[wrap_dim(dim, input.ndim)]
    size = -(-length // chunks)
    if size == 0:
        _refuse_countless("chunk", chunks, 2**24)
        return split_with_sizes(input, [0] * chunks, dim)
    return split(input, size, dim)


@function()
def tensor_split(
    input: Tensor, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: Any = None
) -> tuple[Tensor, ...]:
    """Split into a number of parts of nearly equal size, or before given indices.

    Parameters
    ----------
    input : Tensor
    indices_or_sections : int or sequence of int
        The number of parts, or the indices at which parts begin.
    dim : int
        The dimension that is split.

    Returns
    -------
    tuple of Tensor
        Views.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.tensor_split(candelabra.arange(5), 3)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if indices_or_sections is None:
        indices_or_sections = sections if indices is None else indices
    if isinstance(indices_or_sections, _C.Tensor):
        indices_or_sections = indices_or_sections.tolist()
    if input.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    dim = wrap_dim(dim, input.ndim)
    length = input.shape[dim]
    if isinstance(indices_or_sections, int):
        if indices_or_sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {indices_or_sections}")
        # With more parts than elements, the remaining parts are empty.
        _refuse_countless("tensor_split", indices_or_sections, min(length + 2**24, 2**31))
        each, longer = divmod(length, indices_or_sections)
        return tuple(_parts_of(input, [each + (i < longer) for i in range(indices_or_sections)], dim))
    bounds = [None, *indices_or_sections, None]
    return tuple([_slice(input, dim, start, end) for start, end in pairwise(bounds)])


def _named_split(name: str, ndim: int, dim_of: Callable[[int], int]) -> None:
    @also_named(indices="indices_or_sections", sections="indices_or_sections")
    def split_function(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
        if input.ndim < ndim:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {ndim} dimension{'s' if ndim > 1 else ''}, but got a tensor with "
                f"{input.ndim} dimensions!"
            )
        dim = dim_of(input.ndim)
        if isinstance(indices_or_sections, int) and indices_or_sections > 0 and input.shape[dim] % indices_or_sections:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {input.shape[dim]} is not divisible "
                f"by the split_size {indices_or_sections}!"
            )
        return tensor_split(input, indices_or_sections, dim)

    split_function.__name__ = split_function.__qualname__ = name
    split_function.__doc__ = f"""Split along dimension {dim_of(3)} (of three); see :func:`candelabra.tensor_split`.

    Examples
    --------
    >>> import candelabra
    >>> [part.shape for part in candelabra.{name}(candelabra.ones(2, 2, 2), 2)][0]
    candelabra.Size({[1 if d == dim_of(3) else 2 for d in range(3)]})
    """
    function()(split_function)


_named_split("hsplit", 1, lambda ndim: 0 if ndim == 1 else 1)
_named_split("vsplit", 2, lambda ndim: 0)
_named_split("dsplit", 3, lambda ndim: 2)
