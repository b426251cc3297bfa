"""Moves the parts of a distributed tensor from one placement to another."""

from __future__ import annotations

import math
from collections.abc import Sequence

import candelabra
from candelabra import Tensor

from ..collectives.gathers import all_gather_into_tensor, all_to_all_single
from ..collectives.reductions import all_reduce, reduce_scatter_tensor
from ..device_mesh import DeviceMesh
from ..process_group import ProcessGroup
from ..reduce_op import ReduceOp
from .layout import Placements, shard_order, size_before
from .placements import Partial, Placement, Replicate, Shard, _NormPartial

_OPS = {
    "sum": ReduceOp.SUM,
    "avg": ReduceOp.AVG,
    "max": ReduceOp.MAX,
    "min": ReduceOp.MIN,
    "product": ReduceOp.PRODUCT,
}


def redistribute(
    local: Tensor, shape: Sequence[int], mesh: DeviceMesh, source: Placements, target: Placements
) -> Tensor:
    """Return this rank's part in other places. All ranks of the mesh must call it.

    A dimension that several mesh dimensions shard is gathered back to where the two orders of
    slices differ: the last slice first.

    Parameters
    ----------
    local : Tensor
        This rank's part.
    shape : sequence of int
        Of the whole tensor.
    mesh : DeviceMesh
        Where it is.
    source, target : tuple of Placement
        How it is placed, and will be.
    """
    if source == target or mesh.get_coordinate() is None:
        return local
    now: list[Placement] = list(source)
    removed, added = _changes(source, target)
    # A slice that moves to another dimension needs one all_to_all instead of two collectives.
    exchanged = [i for i in removed if i in added and _is_only(i, removed, source) and _is_only(i, added, target)]
    # Its new dimension must be whole by then: two mesh dimensions cannot swap theirs.
    swapped = {source[i].dim for i in exchanged}  # type: ignore[attr-defined]
    exchanged = [i for i in exchanged if target[i].dim not in swapped]  # type: ignore[attr-defined]
    for i in removed:
        if i not in exchanged:
            dim = now[i].dim  # type: ignore[attr-defined]
            local = _gather(local, dim, size_before(shape, mesh, now, i), mesh.get_group(i))
            now[i] = Replicate()
    for i in exchanged:
        old, new = source[i].dim, target[i].dim  # type: ignore[attr-defined]
        before = size_before(shape, mesh, now, i)
        now[i] = target[i]
        local = _exchange(local, old, before, new, size_before(shape, mesh, now, i), mesh, i)
        added.remove(i)
    # Reductions to the same place or other operations come before slices, which they must not mix.
    for i, (old, new) in enumerate(zip(source, target, strict=True)):
        if isinstance(old, Partial) and old != new and not (isinstance(new, Shard) and _scatters(old)):
            local = reduced(local, old, mesh.get_group(i))
            now[i] = Replicate()
    for i in added:
        new = target[i]
        assert isinstance(new, Shard)
        old = now[i]
        now[i] = new
        before = size_before(shape, mesh, now, i)
        if isinstance(old, Partial):
            local = _scatter(local, new.dim, before, old, mesh.get_group(i))
        else:
            length, start = Shard.local_shard_size_and_offset(before, mesh.shape[i], mesh.get_local_rank(i))
            local = local.narrow(new.dim, start, length)
            if length != before:
                local = local.contiguous()
    for i, new in enumerate(target):
        if isinstance(new, Partial) and not isinstance(now[i], Partial):
            local = _partitioned(local, new, mesh, i)
            now[i] = new
    return local


def _is_only(i: int, changed: list[int], placements: Placements) -> bool:
    """Return whether, of the mesh dimensions that change, only `i` slices its tensor dimension."""
    dim = placements[i].dim  # type: ignore[attr-defined]
    return [j for j in changed if placements[j].is_shard(dim)] == [i]


def _changes(source: Placements, target: Placements) -> tuple[list[int], list[int]]:
    """Return the mesh dimensions whose slices are put together, and those that make slices, in
    order.
    """
    removed: list[int] = []
    added: list[int] = []
    dims = {each.dim for each in (*source, *target) if isinstance(each, Shard)}
    for dim in sorted(dims):
        old = [i for i in shard_order(source) if source[i].is_shard(dim)]
        new = [i for i in shard_order(target) if target[i].is_shard(dim)]
        kept = 0
        while kept < min(len(old), len(new)) and old[kept] == new[kept]:
            kept += 1
        removed += reversed(old[kept:])
        added += new[kept:]
    return removed, added


def _scatters(placement: Partial) -> bool:
    return not isinstance(placement, _NormPartial)


def reduced(local: Tensor, placement: Partial, group: ProcessGroup) -> Tensor:
    """Return the reduction of the ranks' values."""
    if isinstance(placement, _NormPartial):
        p = placement.norm_type
        if math.isinf(p):
            made = local.clone(memory_format=candelabra.contiguous_format)
            all_reduce(made, ReduceOp.MAX if p > 0 else ReduceOp.MIN, group)
            return made
        made = local.clone(memory_format=candelabra.contiguous_format) if p == 0 else (local**p).contiguous()
        all_reduce(made, ReduceOp.SUM, group)
        return made if p == 0 else made ** (1 / p)
    made = local.clone(memory_format=candelabra.contiguous_format)
    all_reduce(made, _OPS[placement.reduce_op], group)
    return made


def _gather(local: Tensor, dim: int, length: int, group: ProcessGroup) -> Tensor:
    """Put slices together. All but the last ones are equally long, so that padding is at the
    end.
    """
    count = group.size()
    full = -(-length // count)
    local = _padded(local, dim, full)
    made = candelabra.empty((count, *local.shape), dtype=local.dtype, device=local.device)
    all_gather_into_tensor(made, local.contiguous(), group)
    return _joined(made, dim, length)


def _joined(parts: Tensor, dim: int, length: int) -> Tensor:
    """Return parts, stacked along dimension 0, put together along `dim`, without padding."""
    made = parts.flatten(0, 1) if dim == 0 else candelabra.cat(list(parts.unbind(0)), dim)
    return made if made.shape[dim] == length else made.narrow(dim, 0, length).contiguous()


def _padded(local: Tensor, dim: int, length: int) -> Tensor:
    missing = length - local.shape[dim]
    if not missing:
        return local
    sizes = list(local.shape)
    sizes[dim] = missing
    return candelabra.cat([local, candelabra.zeros(sizes, dtype=local.dtype, device=local.device)], dim)


def _stacked(local: Tensor, dim: int, count: int) -> Tensor:
    """Return the padded slices along a dimension, stacked along dimension 0."""
    full = -(-local.shape[dim] // count)
    local = _padded(local, dim, full * count)
    if dim == 0:
        return local.contiguous().view(count, full, *local.shape[1:])
    return candelabra.stack(list(local.split(full, dim))) if full else local.new_empty((count, *local.shape))


def _scatter(local: Tensor, dim: int, length: int, placement: Partial, group: ProcessGroup) -> Tensor:
    """Reduce, and keep this rank's slice."""
    parts = _stacked(local, dim, group.size())
    made = candelabra.empty(parts.shape[1:], dtype=parts.dtype, device=parts.device)
    reduce_scatter_tensor(made, parts, _OPS[placement.reduce_op], group)
    own, _ = Shard.local_shard_size_and_offset(length, group.size(), group.rank())
    return made if own == made.shape[dim] else made.narrow(dim, 0, own).contiguous()


def _exchange(local: Tensor, old: int, length: int, new: int, new_length: int, mesh: DeviceMesh, i: int) -> Tensor:
    """Put slices along one dimension together, and slice along another."""
    group = mesh.get_group(i)
    parts = _stacked(_padded(local, old, -(-length // group.size())), new, group.size())
    made = candelabra.empty(parts.shape, dtype=parts.dtype, device=parts.device)
    all_to_all_single(made, parts.contiguous(), group=group)
    own, _ = Shard.local_shard_size_and_offset(new_length, group.size(), group.rank())
    joined = _joined(made, old, length)
    return joined if own == joined.shape[new] else joined.narrow(new, 0, own).contiguous()


def _partitioned(local: Tensor, placement: Partial, mesh: DeviceMesh, i: int) -> Tensor:
    """Return values whose reduction over the ranks is `local`, which all have."""
    if placement.reduce_op == "sum" and not isinstance(placement, _NormPartial):
        return local if mesh.get_local_rank(i) == 0 else candelabra.zeros_like(local)
    if placement.reduce_op == "product":
        return local if mesh.get_local_rank(i) == 0 else candelabra.ones_like(local)
    if isinstance(placement, _NormPartial) and not math.isinf(placement.norm_type):
        return local if mesh.get_local_rank(i) == 0 else candelabra.zeros_like(local)
    return local
