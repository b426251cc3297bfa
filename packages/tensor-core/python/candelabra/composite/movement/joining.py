"""Joining, repeating and rotating tensors."""

from __future__ import annotations

import itertools
import math
import operator as python_operator

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..creation.creation import sizes_of
from ..memory_formats import suggested
from ..movement.broadcasting import atleast_1d, atleast_2d, atleast_3d, meshgrid
from ..movement.views import reshape, wrap_dim
from ..registration import decomposes, function
from ..transformed import any_holds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

_cat = OPERATORS["cat"]
_unsqueeze = OPERATORS["unsqueeze"]


@decomposes("stack")
def stack(tensors: Any, dim: int = 0) -> Tensor:
    tensors = list(tensors)
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    shape = tensors[0].shape
    for i, t in enumerate(tensors):
        if t.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and {list(t.shape)} at entry {i}"
            )
    dim = wrap_dim(dim, len(shape) + 1)
    if dim < len(shape):  # as strides of channels-last images are kept
        return OPERATORS["unflatten"](_cat(tensors, dim), dim, (len(tensors), shape[dim]))
    return _cat([_unsqueeze(OPERATORS["contiguous"](t), dim) for t in tensors], dim)


def _copied(view: Tensor, shape: Any, like: Tensor) -> Tensor:
    """Return a copy in another shape, which never shares memory with `like` and keeps its memory
    format.
    """
    copy = OPERATORS["view"](OPERATORS["clone"](view, memory_format=_C.contiguous_format), shape)
    kept = suggested(like) if like.ndim == 4 else _C.contiguous_format
    return copy if kept is _C.contiguous_format else OPERATORS["contiguous"](copy, memory_format=kept)


@decomposes("pixel_shuffle")
def pixel_shuffle(self: Tensor, upscale_factor: int) -> Tensor:
    OPERATORS["pixel_shuffle"].check(self, upscale_factor)
    r = upscale_factor
    *batch, channels, height, width = self.shape
    n, fewer = len(batch), channels // (r * r)
    split = reshape(self, (*batch, fewer, r, r, height, width))
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return _copied(OPERATORS["permute"](split, order), (*batch, fewer, height * r, width * r), self)


@decomposes("pixel_unshuffle")
def pixel_unshuffle(self: Tensor, downscale_factor: int) -> Tensor:
    OPERATORS["pixel_unshuffle"].check(self, downscale_factor)
    r = downscale_factor
    *batch, channels, height, width = self.shape
    n = len(batch)
    split = reshape(self, (*batch, channels, height // r, r, width // r, r))
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return _copied(OPERATORS["permute"](split, order), (*batch, channels * r * r, height // r, width // r), self)


@decomposes("channel_shuffle")
def channel_shuffle(self: Tensor, groups: int) -> Tensor:
    OPERATORS["channel_shuffle"].check(self, groups)
    shape = self.shape
    split = reshape(self, (shape[0], groups, shape[1] // groups, *shape[2:]))
    return _copied(OPERATORS["transpose"](split, 1, 2), shape, self)


def _sequence(name: str, tensors: Any) -> Any:
    """Return the tensors to join, and refuse one tensor in their place."""
    if isinstance(tensors, _C.Tensor):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    return tensors


def _joined(tensors: Any, dim: int, out: Tensor | None) -> Tensor:
    return _cat(tensors, dim) if out is None else _cat(tensors, dim, out=out)


@function(method=False)
def hstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Concatenate along columns: dimension 1, or dimension 0 of one-dimensional tensors.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.hstack([candelabra.tensor([1, 2]), candelabra.tensor([3])])
    tensor([1, 2, 3])
    """
    joined = [atleast_1d(t) for t in _sequence("hstack", tensors)]
    if not joined:
        raise RuntimeError("hstack expects a non-empty TensorList")
    return _joined(joined, 0 if joined[0].ndim == 1 else 1, out)


@function(method=False, aliases=("row_stack",))
def vstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Concatenate along rows; one-dimensional tensors are rows.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.vstack([candelabra.tensor([1, 2]), candelabra.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    joined = [atleast_2d(t) for t in _sequence("vstack", tensors)]
    if not joined:
        raise RuntimeError("vstack expects a non-empty TensorList")
    return _joined(joined, 0, out)


@function(method=False)
def dstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Concatenate along dimension 2.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.dstack([candelabra.tensor([1, 2]), candelabra.tensor([3, 4])]).shape
    candelabra.Size([1, 2, 2])
    """
    joined = [atleast_3d(t) for t in _sequence("dstack", tensors)]
    if not joined:
        raise RuntimeError("dstack expects a non-empty TensorList")
    return _joined(joined, 2, out)


@function(method=False)
def column_stack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Concatenate along columns; one-dimensional tensors are columns.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.column_stack([candelabra.tensor([1, 2]), candelabra.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    joined = [reshape(t, t.numel(), 1) if t.ndim <= 1 else t for t in _sequence("column_stack", tensors)]
    if not joined:
        raise RuntimeError("column_stack expects a non-empty TensorList")
    return _joined(joined, 1, out)


@function(package=False)
def repeat(self: Tensor, *repeats: Any, **names: Any) -> Tensor:
    """Repeat the tensor along each dimension, into new memory.

    Parameters
    ----------
    *repeats : int or sequence of int
        The number of repetitions of each dimension of the result, which may have more dimensions
        than the tensor.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import candelabra
    >>> candelabra.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    if names:
        repeats = (names.pop("repeats"),) if "repeats" in names and not repeats else repeats
        if names:
            raise TypeError(f"repeat() got an unexpected keyword argument '{next(iter(names))}'")
    times = [python_operator.index(n) for n in sizes_of(repeats)]
    if len(times) < self.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if any(n < 0 for n in times):
        raise RuntimeError(f"repeat(): the numbers of repetitions must not be negative, but got {times}")
    shape = [1] * (len(times) - self.ndim) + list(self.shape)
    # Each dimension becomes two, the first of them expanded; the clone merges them.
    paired = [n for size in shape for n in (1, size)]
    expanded = [n for time, size in zip(times, shape) for n in (time, size)]
    spread = OPERATORS["expand"](reshape(self, paired), expanded)
    whole = OPERATORS["clone"](spread, memory_format=_C.contiguous_format)
    return reshape(whole, [time * size for time, size in zip(times, shape)])


@function()
def tile(input: Tensor, *dims: Any) -> Tensor:
    """Repeat the tensor along its last dimensions.

    Parameters
    ----------
    input : Tensor
    *dims : int or sequence of int
        The number of repetitions of the last dimensions; missing ones are 1.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.tile(candelabra.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    times = tuple(sizes_of(dims))
    return (
        repeat(input, *((1,) * (input.ndim - len(times))), *times) if input.ndim or times else OPERATORS["clone"](input)
    )


@function()
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Repeat elements of a dimension.

    Parameters
    ----------
    input : Tensor
        The tensor to repeat. Without `repeats`, the numbers of repetitions of 0, 1, 2, ….
    repeats : int or Tensor
        The number of repetitions: one for all elements, or one for each.
    dim : int, optional
        The dimension; without it, `input` is flattened.
    output_size : int, optional
        The size of the result along `dim`, if it is known.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.repeat_interleave(candelabra.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    if repeats is None:
        return _repeated_positions(input, output_size)
    if dim is None:
        input, dim = reshape(input, -1), 0
    dim = wrap_dim(dim, input.ndim)
    if isinstance(repeats, (list, tuple)):
        repeats = _C.tensor_from_data(repeats, _C.int64, input.device)
    if isinstance(repeats, _C.Tensor) and repeats.numel() == 1:
        repeats = int(repeats.item())
    length = input.shape[dim] if input.ndim else 1
    if isinstance(repeats, int):
        if repeats < 0:
            raise RuntimeError("repeats can not be negative")
        if input.ndim == 0:
            return OPERATORS["clone"](OPERATORS["expand"](_unsqueeze(input, 0), (repeats,)))
        inner = list(input.shape)
        spread = OPERATORS["expand"](_unsqueeze(input, dim + 1), [*inner[: dim + 1], repeats, *inner[dim + 1 :]])
        inner[dim] = length * repeats
        return reshape(OPERATORS["clone"](spread, memory_format=_C.contiguous_format), inner)
    if repeats.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if repeats.numel() != length:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.numel()} and input.size({dim}) = {length}"
        )
    return OPERATORS["index_select"](input, dim, _repeated_positions(repeats, output_size))


def _repeated_positions(repeats: Any, output_size: int | None) -> Tensor:
    """Return index i repeats[i] times."""
    if repeats.dtype not in (_C.int64, _C.int32):
        raise RuntimeError("repeats has to be Long or Int tensor")
    if repeats.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.numel() and any_holds(repeats < 0):
        raise RuntimeError("repeats can not be negative")
    ends = OPERATORS["cumsum"](repeats, 0)
    if repeats.is_meta and output_size is not None:
        total = output_size
    else:
        total = int(ends[-1]) if repeats.numel() else 0
    if output_size is not None and output_size != total:
        raise RuntimeError(
            f"allocated size does not match required size: output_size is {output_size}, the repeats sum to {total}"
        )
    starts = ends - repeats
    marks = OPERATORS["fill_"](OPERATORS["empty"]((total + 1,), dtype=_C.int64, device=repeats.device), 0)
    # A step of one at each start; more if indices between are repeated zero times.
    marks = OPERATORS["scatter_add"](marks, 0, starts.to(_C.int64), marks.new_ones(repeats.numel()))
    return OPERATORS["cumsum"](marks[:total], 0) - 1


@function()
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Shift elements along dimensions; those that leave the end enter at the start.

    Parameters
    ----------
    input : Tensor
    shifts : int or sequence of int
        The number of places to shift by, towards the end.
    dims : int or sequence of int, optional
        The dimensions. Without it, the flattened tensor is shifted.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.roll(candelabra.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    dims = () if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if not dims:
        if len(shifts) != 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:0")
        return reshape(roll(reshape(input, -1), shifts, (0,)), input.shape)
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    result = input
    for shift, given in zip(shifts, dims):
        dim = wrap_dim(given, input.ndim)
        length = input.shape[dim]
        start = -shift % length if length else 0
        if start:
            result = _cat(
                [OPERATORS["slice"](result, dim, start, None), OPERATORS["slice"](result, dim, 0, start)], dim
            )
    return OPERATORS["clone"](input) if result is input else result


@function()
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Rotate by 90 degrees in the plane of two dimensions.

    Parameters
    ----------
    input : Tensor
    k : int
        The number of rotations, from the first of `dims` towards the second.
    dims : sequence of two int
        The two dimensions of the plane.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.rot90(candelabra.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    first, second = (wrap_dim(d, input.ndim) for d in dims)
    if first == second:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    k %= 4
    if k == 0:
        return OPERATORS["clone"](input)
    if k == 2:
        return OPERATORS["flip"](input, (first, second))
    return OPERATORS["transpose"](OPERATORS["flip"](input, (second if k == 1 else first,)), first, second)


@function()
def fliplr(input: Tensor) -> Tensor:
    """Reverse the columns.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fliplr(candelabra.tensor([[1, 2]]))
    tensor([[2, 1]])
    """
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return OPERATORS["flip"](input, (1,))


@function()
def flipud(input: Tensor) -> Tensor:
    """Reverse the rows.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.flipud(candelabra.tensor([1, 2]))
    tensor([2, 1])
    """
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return OPERATORS["flip"](input, (0,))


@function(method=False)
def block_diag(*tensors: Any) -> Tensor:
    """Return a matrix with the given matrices along its diagonal, and zeros elsewhere.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.block_diag(candelabra.tensor([[1]]), candelabra.tensor([[2, 3]]))
    tensor([[1, 0, 0],
            [0, 2, 3]])
    """
    if not tensors:
        return OPERATORS["empty"]((1, 0))
    blocks = [atleast_2d(t) for t in tensors]
    for i, block in enumerate(blocks):
        if block.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {block.ndim} dimensions"
            )
    width = sum(block.shape[1] for block in blocks)
    first = blocks[0] if blocks else None
    if first is not None and all(
        type(block) is _C.Tensor and block.dtype is first.dtype and not block.requires_grad for block in blocks
    ):
        matrix: Any = first.new_zeros(sum(block.shape[0] for block in blocks), width)
        top = left = 0
        for block in blocks:
            height, own = block.shape
            OPERATORS["narrow"](OPERATORS["narrow"](matrix, 0, top, height), 1, left, own).copy_(block)
            top, left = top + height, left + own
        return matrix
    rows, left = [], 0
    for block in blocks:
        height, own = block.shape
        rows.append(_cat([block.new_zeros(height, left), block, block.new_zeros(height, width - left - own)], 1))
        left += own
    return _cat(rows, 0)


@function(method=False)
def cartesian_prod(*tensors: Any) -> Tensor:
    """Return the Cartesian product of one-dimensional tensors, one combination per row.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cartesian_prod(candelabra.tensor([1, 2]), candelabra.tensor([3]))
    tensor([[1, 3],
            [2, 3]])
    """
    for tensor in tensors:
        if tensor.ndim != 1:
            raise RuntimeError(f"cartesian_prod(): Expect a 1D vector, but got shape {list(tensor.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return OPERATORS["stack"]([reshape(grid, -1) for grid in meshgrid(*tensors, indexing="ij")], 1)


@function(method=False)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return the combinations of `r` elements of a vector, one per row.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.combinations(candelabra.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if input.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    n = input.numel()
    count = math.comb(n + r - 1, r) if with_replacement and n else math.comb(n, r)
    if r == 0 or count == 0:
        # Without elements, but computed from the input, so that its gradient is zeros.
        return reshape(OPERATORS["narrow"](input, 0, 0, 0), (0,) if r == 0 else (0, r))
    if r == 2:
        pairs = OPERATORS["_tril_triu_indices"](
            n, n, 0 if with_replacement else 1, True, dtype=_C.int64, device=input.device
        )
        positions = OPERATORS["contiguous"](OPERATORS["t"](pairs))
    else:
        choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
        positions = _C.tensor_from_data(list(choose(range(n), r)), _C.int64, input.device)
    return reshape(OPERATORS["index_select"](input, 0, reshape(positions, -1)), positions.shape)
