"""Decompositions of embedding_bag and its gradient."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..elementwise.elementwise import narrow_to, wide
from ..registration import decomposes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor


def _zeros(shape: Any, dtype: Any, device: Any) -> Any:
    return OPERATORS["fill_"](OPERATORS["empty"](tuple(shape), dtype=dtype, device=device), 0)


def _ones(shape: Any, dtype: Any, device: Any) -> Any:
    return OPERATORS["fill_"](OPERATORS["empty"](tuple(shape), dtype=dtype, device=device), 1)


def _largest(rows: Tensor, bag: Tensor, sizes: Tensor) -> Any:
    """Return the first row that holds the largest value of each bag in each column; 0 for an empty
    bag. `bag` does not fall.

    Each row is compared with the one 1, 2, 4, … rows behind it, as long as that is of its bag: then
    the first row of a bag knows the largest of all (prefix doubling, Hillis and Steele 1986).
    """
    count, columns = rows.shape
    narrow = OPERATORS["narrow"]
    where = OPERATORS["expand"](_arange(count, rows).unsqueeze(1), (count, columns))
    longest = int(OPERATORS["amax"](sizes)) if sizes.numel() else 0
    step = 1
    while step < longest:
        rest = count - step
        behind, here = narrow(rows, 0, step, rest), narrow(rows, 0, 0, rest)
        takes = (behind > here) | (OPERATORS["isnan"](behind) & ~OPERATORS["isnan"](here))
        takes = takes & OPERATORS["eq"](narrow(bag, 0, step, rest), narrow(bag, 0, 0, rest)).unsqueeze(1)
        found = OPERATORS["where"](takes, narrow(where, 0, step, rest), narrow(where, 0, 0, rest))
        rows = OPERATORS["cat"]([OPERATORS["where"](takes, behind, here), narrow(rows, 0, rest, step)])
        where = OPERATORS["cat"]([found, narrow(where, 0, rest, step)])
        step *= 2
    starts = OPERATORS["masked_fill"](OPERATORS["cumsum"](sizes, 0) - sizes, sizes == 0, 0)
    return (
        OPERATORS["index_select"](where, 0, starts)
        if count
        else _zeros((sizes.shape[0], columns), _C.int64, sizes.device)
    )


def _arange(count: int, like: Any) -> Any:
    return OPERATORS["arange"](0, count, 1, dtype=_C.int64, device=like.device)


def _check_offsets(offsets: Tensor, count: int) -> None:
    if not offsets.numel():
        return
    first, last = int(offsets[0]), int(offsets[-1])
    if first != 0:
        raise RuntimeError(
            f"offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got {first}"
        )
    if last > count:
        raise RuntimeError(f"offsets[-1] can not be greater than input's length({count}) but got offsets[-1] of {last}")


def _check_rows(numbers: Tensor, rows: int) -> None:
    if numbers.numel():
        for bound in (int(OPERATORS["amin"](numbers)), int(OPERATORS["amax"](numbers))):
            if not 0 <= bound < rows:
                raise RuntimeError(
                    f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {bound}, for {rows} rows"
                )


@decomposes("_embedding_bag")
def _embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    mode: str,
    per_sample_weights: Tensor | None,
    scale_grad_by_freq: bool,
    include_last_offset: bool,
    padding_idx: int,
) -> Any:
    numbers = indices.to(_C.int64)
    _check_offsets(offsets, indices.shape[0])
    _check_rows(numbers, weight.shape[0])
    device = indices.device
    count = offsets.shape[0] - (1 if include_last_offset else 0)
    starts = OPERATORS["narrow"](offsets.to(_C.int64), 0, 0, count)
    # The last bag that begins at or before each index; nothing without bags.
    bag = (
        OPERATORS["_searchsorted"](OPERATORS["sort"](starts)[0], _arange(indices.shape[0], indices), True, False, None)
        - 1
    )
    kept = (bag >= 0) & (numbers != padding_idx)
    counted, used = OPERATORS["masked_select"](bag, kept), OPERATORS["masked_select"](numbers, kept)
    sizes = OPERATORS["index_add"](
        _zeros((count,), _C.int64, device), 0, counted, _ones(counted.shape, _C.int64, device)
    )
    rows = wide(OPERATORS["index_select"](weight, 0, used))
    if per_sample_weights is not None:
        rows = rows * OPERATORS["masked_select"](per_sample_weights, kept).to(rows.dtype).unsqueeze(1)
    result = _zeros((count, weight.shape[1]), rows.dtype, device)
    positions = sizes
    if mode == "max":
        first = _largest(rows.detach(), counted, sizes)
        empty = (sizes == 0).unsqueeze(1)
        positions = _zeros(result.shape, _C.int64, device)
        if rows.shape[0]:
            positions = OPERATORS["masked_fill"](used[first], empty, 0)
            result = OPERATORS["masked_fill"](OPERATORS["gather"](rows, 0, first), empty, 0.0)
    else:
        result = OPERATORS["index_add"](result, 0, counted, rows)
        if mode == "mean":
            result = result / OPERATORS["clamp"](sizes, 1).to(result.dtype).unsqueeze(1)
    if mode == "sum":
        sizes = positions = _zeros(sizes.shape, _C.int64, device)  # not needed, and not returned by PyTorch
    return narrow_to(result, weight.dtype), bag, sizes, positions


@decomposes("_embedding_bag_backward")
def _embedding_bag_backward(
    grad: Tensor,
    indices: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    max_indices: Tensor,
    num_weights: int,
    mode: str,
    per_sample_weights: Tensor | None,
    scale_grad_by_freq: bool,
    padding_idx: int,
) -> Any:
    slopes = wide(grad)
    result = _zeros((num_weights, grad.shape[1]), slopes.dtype, grad.device)
    if mode == "max":
        slopes = OPERATORS["masked_fill"](slopes, (bag_size == 0).unsqueeze(1), 0.0)
        if num_weights:
            result = OPERATORS["scatter_add"](result, 0, max_indices, slopes)
        return narrow_to(result, grad.dtype)
    numbers = indices.to(_C.int64)
    _check_rows(numbers, num_weights)
    kept = (offset2bag >= 0) & (numbers != padding_idx)
    bag, used = OPERATORS["masked_select"](offset2bag, kept), OPERATORS["masked_select"](numbers, kept)
    rows = OPERATORS["index_select"](slopes, 0, bag)
    if per_sample_weights is not None:
        rows = rows * OPERATORS["masked_select"](per_sample_weights, kept).to(rows.dtype).unsqueeze(1)
    if mode == "mean":
        sizes = OPERATORS["index_select"](OPERATORS["clamp"](bag_size, 1), 0, bag)
        rows = rows / sizes.to(rows.dtype).unsqueeze(1)
    if scale_grad_by_freq:
        times = OPERATORS["index_add"](
            _zeros((num_weights,), rows.dtype, grad.device), 0, numbers, _ones(numbers.shape, rows.dtype, grad.device)
        )
        rows = rows / OPERATORS["index_select"](times, 0, used).unsqueeze(1)
    return narrow_to(OPERATORS["index_add"](result, 0, used, rows), grad.dtype)
