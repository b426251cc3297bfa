"""Sorting and searching, by the sort operator."""

from __future__ import annotations

from candelabra import _C, return_types
from candelabra.catalogue import OPERATORS

from ..keyword_names import also_named
from ..movement.views import reshape, wrap_dim
from ..reduction.scan import cummax
from ..registration import decomposes, fallback, function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor


@fallback("sort")
def _sort_stable_none(self: Tensor, *arguments: Any, **names: Any) -> Any:
    # sort(stable=None) is sort(stable=False).
    if "stable" not in names or names["stable"] is not None:
        return NotImplemented
    return OPERATORS["sort"](self, *arguments, **{**names, "stable": False})


_sort_stable_none.is_deprecated = True  # type: ignore[attr-defined]  # the stubs keep the documented signature


@function()
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Return the indices that sort a dimension.

    Parameters
    ----------
    input : Tensor
    dim : int
        The dimension to sort.
    descending : bool
        Whether to sort in descending order.
    stable : bool
        Whether equal elements keep their order.

    Returns
    -------
    Tensor
        Of dtype int64 and the shape of `input`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.argsort(candelabra.tensor([3, 1, 2]))
    tensor([1, 2, 0])
    """
    return OPERATORS["sort"](input, dim, descending, stable)[1]


@function(out="exact whole")
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sort along dimension 0.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.msort(candelabra.tensor([3, 1, 2]))
    tensor([1, 2, 3])
    """
    result = OPERATORS["sort"](input, 0)[0]
    return result if out is None else _C.give_to_out("msort", out, result, input)


@decomposes("_mode_index")
def _mode_index(self: Tensor, dim: int) -> Tensor:
    values, indices = OPERATORS["sort"](self.detach(), dim, False, True)
    values_last, length = OPERATORS["movedim"](values, dim, -1), self.shape[dim]
    # The rank of each element in its run of equals: 1, 2, 3, …
    positions = OPERATORS["arange"](0, length, 1, dtype=_C.int64, device=self.device)
    before, after = (
        OPERATORS["narrow"](values_last, -1, 0, length - 1),
        OPERATORS["narrow"](values_last, -1, 1, length - 1),
    )
    starts = OPERATORS["where"](OPERATORS["ne"](before, after), OPERATORS["narrow"](positions, 0, 1, length - 1), 0)
    starts = OPERATORS["cat"]([starts.new_zeros((*starts.shape[:-1], 1)), starts], -1)
    run_start = cummax(starts, -1).values
    longest = OPERATORS["argmax"](positions - run_start, -1, True)
    return OPERATORS["gather"](indices, dim, OPERATORS["movedim"](longest, -1, dim))


@function(out="exact whole")
def mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """Return the most frequent element along a dimension, the smallest among equals, and an index
    of it.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.mode(candelabra.tensor([2, 1, 2])).values
    tensor(2)
    """
    axis = wrap_dim(dim, input.ndim)
    x = reshape(input, 1) if input.ndim == 0 else input
    if x.shape[axis] == 0:
        raise IndexError(f"mode(): Expected reduction dim {axis} to have non-zero size.")
    index = OPERATORS["_mode_index"](x, axis)
    value = OPERATORS["gather"](x, axis, index)
    if not keepdim or input.ndim == 0:
        value, index = (OPERATORS["squeeze"](part, axis) for part in (value, index))
    if out is not None:
        value, index = _C.give_to_outs("mode", out, (value, index), input)
    return return_types.mode(value, index)


def _unique_sorted(flat: Tensor) -> Any:
    """Return the sorted elements, the starts of runs of equals, the order, and the number of runs
    up to each element.
    """
    values, order = OPERATORS["sort"](flat, 0, False, True)
    length = flat.numel()
    if length == 0:
        first = OPERATORS["empty"]((0,), dtype=_C.bool, device=flat.device)
    else:
        changed = OPERATORS["ne"](
            OPERATORS["narrow"](values, 0, 1, length - 1), OPERATORS["narrow"](values, 0, 0, length - 1)
        )
        head = OPERATORS["fill_"](OPERATORS["empty"]((1,), dtype=_C.bool, device=flat.device), True)
        first = OPERATORS["cat"]([head, changed])
    return values, first, order


def _unique_slices(input: Tensor, dim: int, return_inverse: bool, return_counts: bool, consecutive: bool) -> Any:
    """Return the distinct slices along a dimension in lexicographic order, or the first of each run
    of equal slices.
    """
    axis = wrap_dim(dim, input.ndim)
    if input.ndim == 0:
        raise IndexError("unique(): a tensor without dimensions has no slices")
    if 0 in input.shape and input.shape[axis] != 0:
        raise RuntimeError(
            f"There are 0 sized dimensions, and they aren't selected, so unique cannot be applied: the shape is {list(input.shape)}"
        )
    rows = OPERATORS["movedim"](input, axis, 0)
    count = rows.shape[0]
    flat = reshape(rows, count, rows.numel() // count if count else 0)
    positions = OPERATORS["arange"](0, count, 1, dtype=_C.int64, device=input.device)
    order = positions
    if not consecutive:
        # Sorts by the last column first, then stably by those before it.
        for column in range(flat.shape[1] - 1, -1, -1):
            keys = OPERATORS["index_select"](OPERATORS["select"](flat, 1, column), 0, order)
            order = OPERATORS["index_select"](order, 0, OPERATORS["sort"](keys, 0, False, True)[1])
    ordered = OPERATORS["index_select"](flat, 0, order)
    first = OPERATORS["fill_"](OPERATORS["empty"]((count,), dtype=_C.bool, device=input.device), True)
    if count > 1:
        differs = OPERATORS["ne"](
            OPERATORS["narrow"](ordered, 0, 1, count - 1), OPERATORS["narrow"](ordered, 0, 0, count - 1)
        )
        first = OPERATORS["cat"]([OPERATORS["narrow"](first, 0, 0, 1), OPERATORS["any"](differs, 1)])
    chosen = OPERATORS["masked_select"](order, first)
    parts = [OPERATORS["index_select"](input, axis, chosen)]
    runs = OPERATORS["cumsum"](first, 0) - 1
    if return_inverse:
        parts.append(OPERATORS["scatter"](runs.new_zeros(count), 0, order, runs))
    if return_counts:
        parts.append(OPERATORS["scatter_add"](runs.new_zeros(chosen.numel()), 0, runs, runs.new_ones(count)))
    return tuple(parts) if len(parts) > 1 else parts[0]


@function()
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements, in ascending order.

    Parameters
    ----------
    input : Tensor
    sorted : bool
        Ignored; for compatibility with PyTorch: the result is always sorted.
    return_inverse : bool
        Whether to also return the index in the result of each element of `input`.
    return_counts : bool
        Whether to also return the number of occurrences.
    dim : int, optional
        The dimension whose slices are compared; without it, all elements are.

    Returns
    -------
    Tensor or tuple of Tensor

    Examples
    --------
    >>> import candelabra
    >>> candelabra.unique(candelabra.tensor([2, 1, 2]))
    tensor([1, 2])
    """
    if dim is not None and (input.ndim != 1 or wrap_dim(dim, 1) != 0):
        return _unique_slices(input.detach(), dim, return_inverse, return_counts, False)
    flat = reshape(input.detach(), -1)
    values, first, order = _unique_sorted(flat)
    result = OPERATORS["masked_select"](values, first)
    if not return_inverse and not return_counts:
        return result
    parts = [result]
    runs = OPERATORS["cumsum"](first, 0) - 1
    if return_inverse:
        inverse = OPERATORS["scatter"](runs.new_zeros(flat.numel()), 0, order, runs)
        parts.append(reshape(inverse, input.shape))
    if return_counts:
        parts.append(OPERATORS["scatter_add"](runs.new_zeros(result.numel()), 0, runs, runs.new_ones(flat.numel())))
    return tuple(parts)


@function()
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the first element of each run of equal elements.

    Parameters
    ----------
    input : Tensor
        The input, which is flattened without `dim`.
    return_inverse : bool
        Whether to also return the run index of each element.
    return_counts : bool
        Whether to also return the length of each run.
    dim : int, optional
        The dimension whose slices are compared; without it, all elements are.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.unique_consecutive(candelabra.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    if dim is not None and (input.ndim != 1 or wrap_dim(dim, 1) != 0):
        return _unique_slices(input.detach(), dim, return_inverse, return_counts, True)
    flat = reshape(input.detach(), -1)
    length = flat.numel()
    first = OPERATORS["fill_"](OPERATORS["empty"]((min(length, 1),), dtype=_C.bool, device=flat.device), True)
    if length > 1:
        changed = OPERATORS["ne"](
            OPERATORS["narrow"](flat, 0, 1, length - 1), OPERATORS["narrow"](flat, 0, 0, length - 1)
        )
        first = OPERATORS["cat"]([first, changed])
    result = OPERATORS["masked_select"](flat, first)
    parts = [result]
    if return_inverse or return_counts:
        runs = OPERATORS["cumsum"](first, 0) - 1
        if return_inverse:
            parts.append(reshape(runs, input.shape))
        if return_counts:
            parts.append(OPERATORS["scatter_add"](runs.new_zeros(result.numel()), 0, runs, runs.new_ones(length)))
    return tuple(parts) if len(parts) > 1 else result


@decomposes("_searchsorted")
def _searchsorted(sorted_sequence: Tensor, values: Tensor, right: bool, out_int32: bool, sorter: Tensor | None) -> Any:
    if sorted_sequence.ndim != 1 and sorted_sequence.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value "
            f"tensor must match, but we got boundaries tensor {list(sorted_sequence.shape)} and input value tensor {list(values.shape)}"
        )
    if sorter is not None:
        if sorter.shape != sorted_sequence.shape:
            raise RuntimeError(
                "searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
                f"{list(sorted_sequence.shape)} and got sorter tensor {list(sorter.shape)}"
            )
        if sorter.dtype is not _C.int64:
            raise RuntimeError(f"searchsorted(): sorter must be a tensor of long dtype but got dtype {sorter.dtype}")
        sorted_sequence = OPERATORS["gather"](sorted_sequence, -1, sorter)
    # A bisection of all values in parallel, with a gather per step: about log2(n) steps. NaN
    # compares greater than everything.
    behind = OPERATORS["gt"] if right else OPERATORS["ge"]
    length = sorted_sequence.shape[-1]
    flat_values = reshape(values, -1) if sorted_sequence.ndim == 1 else values
    low = OPERATORS["fill_"](OPERATORS["empty"](flat_values.shape, dtype=_C.int64, device=values.device), 0)
    high = low + length
    for _ in range(length.bit_length()):
        middle = OPERATORS["bitwise_right_shift"](low + high, 1)
        probe = OPERATORS["gather"](sorted_sequence, -1, OPERATORS["clamp"](middle, max=length - 1))
        after = ~behind(probe, flat_values) & (middle < high)
        low = OPERATORS["where"](after, middle + 1, low)
        high = OPERATORS["where"](after, high, OPERATORS["minimum"](middle, high))
    result = reshape(low, values.shape)
    return result.to(_C.int32) if out_int32 else result


@function(out="exact")
@also_named(input="values")
def searchsorted(
    sorted_sequence: Tensor,
    values: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the indices at which to insert values into sorted sequences.

    Parameters
    ----------
    sorted_sequence : Tensor
        Ascending along its last dimension; of one dimension, or of as many as `values`.
    values : Tensor or number
        The values to insert.
    out_int32 : bool
        Whether the indices have dtype int32 instead of int64.
    right : bool
        Whether to insert a value after equal elements.
    side : str, optional
        ``"left"`` or ``"right"``, in place of `right`.
    sorter : Tensor, optional
        The indices that sort `sorted_sequence`, if it is not sorted itself.
    out : Tensor, optional
        The output tensor, of dtype int64 or, with `out_int32`, int32.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.searchsorted(candelabra.tensor([1, 3, 5]), candelabra.tensor([3, 6]))
    tensor([1, 3])
    """
    if side is not None:
        if side not in ("left", "right"):
            raise RuntimeError(f"searchsorted(): side can only be 'left' or 'right' but got {side}")
        if side == "left" and right:
            raise RuntimeError(
                "searchsorted(): side and right can't be set to opposites, got side of left while right was True"
            )
        right = side == "right"
    if not isinstance(values, _C.Tensor):
        values = _C.tensor_from_data(values, None, sorted_sequence.device)
    result = OPERATORS["_searchsorted"](sorted_sequence, values, right, out_int32, sorter)
    if out is None:
        return result
    if out.dtype is not result.dtype:
        raise RuntimeError(
            f"searchsorted(): output tensor's dtype is wrong: it has to be {result.dtype}, but is {out.dtype}"
        )
    return _C.give_to_out("searchsorted", out, result)


@function(out="exact")
def bucketize(
    input: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the index of the bucket of each value; see :func:`candelabra.searchsorted`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.bucketize(candelabra.tensor([0, 2, 9]), candelabra.tensor([1, 5]))
    tensor([0, 1, 2])
    """
    if boundaries.ndim != 1:
        raise RuntimeError(f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


@function()
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Count the occurrences of each nonnegative integer.

    Parameters
    ----------
    input : Tensor
        One-dimensional, of an integer dtype.
    weights : Tensor, optional
        The weights to sum instead of ones.
    minlength : int
        The minimum length of the result.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.bincount(candelabra.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    if input.dtype.is_floating_point or input.dtype.is_complex:
        raise NotImplementedError(
            f'"bincount" not implemented for {input.dtype}: it counts whole numbers; convert with .to()'
        )
    if input.ndim != 1:
        raise RuntimeError(
            f"bincount only supports 1-d non-negative integral inputs, but got shape {list(input.shape)}."
        )
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is not None and weights.shape != input.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    length = minlength
    if input.numel():
        if OPERATORS["amin"](input).item() < 0:
            raise RuntimeError("bincount only supports 1-d non-negative integral inputs, but there are negative ones.")
        length = max(minlength, OPERATORS["amax"](input).item() + 1)
    positions = input if input.dtype is _C.int64 else input.to(_C.int64)
    if weights is None:
        added = OPERATORS["expand"](_C.tensor_from_data(1, _C.int64, positions.device), positions.shape)
    else:
        added = weights if weights.dtype is _C.float32 else weights.to(_C.float64)
    return OPERATORS["scatter_add"](added.new_zeros(length), 0, positions, added)
