"""Reduce segments of a dimension."""

from __future__ import annotations

import math

import candelabra
from candelabra import Tensor, is_grad_enabled
from candelabra.composite.transformed import is_differentiated_outside


def _check_positions(positions: Tensor, kind: str, data: Tensor, axis: int) -> None:
    """Check the dtype and the shape of `lengths` or `offsets`, whichever `kind` says."""
    if positions.dtype not in (candelabra.int64, candelabra.int32):
        raise RuntimeError(f"segment_reduce(): expected {kind} of dtype int64 or int32, but got {positions.dtype}")
    if axis != positions.ndim - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {kind} but got {axis}.")
    if tuple(positions.shape[:axis]) != tuple(data.shape[:axis]):
        raise RuntimeError(
            f"segment_reduce(): expected {kind} to have the sizes of data in front of axis, but got {list(positions.shape)} for data of "
            f"shape {list(data.shape)}"
        )


def _check_lengths(lengths: Tensor, size: int) -> None:
    if lengths.numel():
        if bool((lengths < 0).any()):
            raise RuntimeError("lengths contains negative value!")
        if bool((lengths.sum(-1) != size).any()):
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
            )


def _segments_of_elements(start: Tensor, ends: Tensor, size: int) -> Tensor:
    """Return the number of the segment of each element along the axis.

    Elements before the first segment, between two or after the last one get the number after the
    last segment's.
    """
    count = ends.shape[-1]
    at = candelabra.arange(size, device=ends.device).expand(*ends.shape[:-1], size).contiguous()
    if not count:
        return candelabra.zeros_like(at)
    # The number of segment ends at or before an element.
    segment = candelabra.searchsorted(ends, at, right=True)
    outside = (segment >= count) | (at < start.gather(-1, segment.clamp(max=count - 1)))
    return segment.masked_fill(outside, count)


def _differentiable(base: Tensor, axis: int, where: Tensor, data: Tensor, method: str) -> Tensor:
    """Reduce with PyTorch's gradient.

    The gradient of an extremum is shared by all elements equal to it, which leaves out the initial
    value; NaN is equal to NaN here. In a product, NaN has the product of the others as its
    gradient.
    """
    missing = data.isnan()
    ones = candelabra.ones_like(data.detach())
    count = candelabra.zeros_like(base).scatter_add(axis, where, missing.to(data.dtype))
    if method == "prod":
        rest = base.scatter_reduce(axis, where, candelabra.where(missing, ones, data), method)
        # The sum is NaN, and its gradient is 1 at a single NaN. It is NaN if there are more.
        scale = candelabra.where(count > 1, math.nan, 1.0).to(data.dtype)
    else:
        found = base.scatter_reduce(axis, where, data.detach(), method)
        reached = found.gather(axis, where) == data
        # Only the elements that are the extremum go to its segment, all others to the last one.
        last = candelabra.full_like(where, base.shape[axis] - 1)
        index = candelabra.where(reached, where, last)
        hits = candelabra.zeros_like(base).scatter_add(axis, index, ones)
        # NaN stands where the initial value must not take a share.
        start = base.masked_fill(hits > 0, math.nan)
        rest = start.scatter_reduce(axis, index, candelabra.where(missing, ones, data), method, include_self=False)
        scale = 1 / count.clamp(min=1)
    total = candelabra.zeros_like(base).scatter_add(axis, where, data.masked_fill(~missing, 0)) * scale
    present = count > 0
    if method == "prod":
        return rest * candelabra.where(present, total, 1.0)
    return candelabra.where(present, total, rest)


def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Reduce segments of a dimension; the segments may differ in length.

    Parameters
    ----------
    data
        Floating point, (..., N, ...), where N is the size of dimension `axis`.
    reduce
        ``"sum"``, ``"mean"``, ``"max"``, ``"min"`` or ``"prod"``.
    lengths, offsets
        Length of each segment, (..., S); or the start of each segment and the end of the last,
        (..., S + 1). The leading sizes are those of `data` before `axis`. One of the two is
        required.
    indices
        Not supported, as in PyTorch.
    unsafe
        Whether to skip the check of the lengths.
    initial
        Initial value of each segment. Default: the identity element of the reduction, and NaN for
        an empty mean.

    Returns
    -------
    Tensor
        (..., S, ...).

    Raises
    ------
    RuntimeError
        If shapes, dtypes or lengths are incompatible.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.segment_reduce(candelabra.tensor([1.0, 2.0, 3.0]), "max", lengths=candelabra.tensor([2, 1]))
    tensor([2., 3.])
    """
    if reduce not in ("sum", "mean", "max", "min", "prod"):
        raise RuntimeError(f"unsupported reduction given! {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if not data.is_floating_point():
        raise RuntimeError(f"segment_reduce(): expected data of a floating dtype, but got {data.dtype}")
    if data.ndim == 0:
        raise RuntimeError("segment_reduce(): expected data of at least one dimension")
    axis = axis + data.ndim if axis < 0 else axis
    positions = lengths if lengths is not None else offsets
    assert positions is not None
    kind = "lengths" if lengths is not None else "offsets"
    _check_positions(positions, kind, data, axis)
    size = data.shape[axis]
    positions = positions.detach().to(candelabra.int64)
    if lengths is not None:
        if not unsafe:
            _check_lengths(positions, size)
        ends = positions.cumsum(-1)
    else:
        if positions.shape[-1] == 0:
            raise RuntimeError("segment_reduce(): expected offsets of at least one entry: where the last segment ends")
        ends = positions.narrow(-1, 1, positions.shape[-1] - 1).contiguous()
        positions = positions.diff(dim=-1)
    count = positions.shape[-1]
    start = ends - positions
    segment = _segments_of_elements(start, ends, size)
    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    inner = (1,) * (data.ndim - axis - 1)
    lengths_of = positions.reshape(*positions.shape, *inner)
    wide = data.float() if data.dtype in (candelabra.float16, candelabra.bfloat16) else data
    neutral = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}[reduce]
    begin = neutral if initial is None else float(initial)
    # One additional segment collects the elements that belong to none.
    base = candelabra.full(
        (*data.shape[:axis], count + 1, *data.shape[axis + 1 :]), begin, dtype=wide.dtype, device=data.device
    )
    where = segment.reshape(*segment.shape, *inner).expand(data.shape)
    method = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "min": "amin"}[reduce]
    if not data.numel():
        result = base + wide.sum()  # 0; the gradient of nothing is of data's shape
    elif method != "sum" and ((wide.requires_grad and is_grad_enabled()) or is_differentiated_outside(wide)):
        result = _differentiable(base, axis, where, wide, method)
    else:
        result = base.scatter_reduce(axis, where, wide, method)
    result = result.narrow(axis, 0, count)
    if reduce == "mean":
        if initial is None:
            result = result / lengths_of.to(result.dtype)
        else:
            result = result / lengths_of.clamp(min=1).to(result.dtype)
    return result.to(data.dtype).reshape(shape)
