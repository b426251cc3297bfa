"""Shapes and offsets of the parts of distributed tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import candelabra
from candelabra import Tensor

from ..device_mesh import DeviceMesh
from .placements import Partial, Placement, Replicate, Shard, _StridedShard

Placements = tuple[Placement, ...]


@dataclass(frozen=True)
class Layout:
    """Where a distributed tensor is, and what it looks like as a whole."""

    mesh: DeviceMesh
    placements: Placements
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: Any

    def with_placements(self, placements: Placements) -> Layout:
        """Return the same tensor in other places."""
        return Layout(self.mesh, placements, self.shape, self.stride, self.dtype)


def shard_order(placements: Sequence[Placement]) -> list[int]:
    """Return the mesh dimensions that shard, in the order in which the slices were made.

    That is from left to right; strided ones come last.
    """
    plain = [i for i, each in enumerate(placements) if isinstance(each, Shard) and not isinstance(each, _StridedShard)]
    strided = [i for i, each in enumerate(placements) if isinstance(each, _StridedShard)]
    return plain + strided[::-1]


def local_shape_and_offset(
    shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement], coordinate: Sequence[int] | None = None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of a rank's part, and the index of its first element in the whole tensor.

    Parameters
    ----------
    shape
        Of the whole tensor.
    mesh, placements
        Where it is.
    coordinate
        The rank's place in the mesh; by default that of this rank.
    """
    place = mesh.get_coordinate() if coordinate is None else coordinate
    if place is None:
        return (0,) * len(shape), (0,) * len(shape)
    sizes, offsets = list(shape), [0] * len(shape)
    for i in shard_order(placements):
        dim = placements[i].dim  # type: ignore[attr-defined]
        sizes[dim], start = Shard.local_shard_size_and_offset(sizes[dim], mesh.shape[i], place[i])
        offsets[dim] += start
    return tuple(sizes), tuple(offsets)


def size_before(shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement], mesh_dim: int) -> int:
    """Return the length of the dimension that a mesh dimension shards, before it is sharded."""
    place = mesh.get_coordinate()
    assert place is not None
    dim = placements[mesh_dim].dim  # type: ignore[attr-defined]
    length = shape[dim]
    for i in shard_order(placements):
        if i == mesh_dim:
            break
        if placements[i].is_shard(dim):
            length, _ = Shard.local_shard_size_and_offset(length, mesh.shape[i], place[i])
    return length


def normalized(placements: Sequence[Placement] | None, mesh: DeviceMesh, ndim: int) -> Placements:
    """Return placements with nonnegative dimensions; by default all replicated.

    Raises
    ------
    ValueError, RuntimeError
        There are not as many as mesh dimensions, or one shards a dimension that does not exist.
    """
    if placements is None:
        return tuple(Replicate() for _ in range(mesh.ndim))
    if isinstance(placements, Placement) or any(not isinstance(each, Placement) for each in placements):
        raise TypeError(f"placements must be a sequence of Shard, Replicate or Partial, but got {placements!r}")
    if len(placements) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(placements)}, "
            f"and device_mesh.ndim: {mesh.ndim}."
        )
    made = []
    for each in placements:
        if isinstance(each, Shard):
            dim = each.dim + ndim if each.dim < 0 else each.dim
            if not 0 <= dim < ndim:
                raise RuntimeError(f"Sharding dim {each.dim} greater than tensor ndim {ndim} for placement {each!r}.")
            if dim != each.dim:
                each = _StridedShard(dim, each.split_factor) if isinstance(each, _StridedShard) else Shard(dim)
        made.append(each)
    return tuple(made)


def local_part(tensor: Tensor, mesh: DeviceMesh, placements: Sequence[Placement]) -> Tensor:
    """Return this rank's slice of a whole tensor, a view."""
    shape, offset = local_shape_and_offset(tensor.shape, mesh, placements)
    for dim, (size, start) in enumerate(zip(shape, offset, strict=True)):
        if size != tensor.shape[dim]:
            tensor = tensor.narrow(dim, start, size)
    return tensor


def has_partial(placements: Sequence[Placement]) -> bool:
    """Return whether a reduction is pending."""
    return any(isinstance(each, Partial) for each in placements)


def contiguous_stride(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def global_shape_and_stride(
    local: Tensor, mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape and strides of the tensor of which each rank has an equal part."""
    shape, stride = list(local.shape), list(local.stride())
    for i, each in enumerate(placements):
        if not isinstance(each, Shard):
            continue
        shape[each.dim] *= mesh.shape[i]
        for dim in range(len(stride)):
            if dim != each.dim and stride[dim] >= stride[each.dim] and local.stride(dim) > local.stride(each.dim):
                stride[dim] *= mesh.shape[i]
    return tuple(shape), tuple(stride)


def meta(layout: Layout) -> Tensor:
    """Return a tensor without memory that looks like the whole one."""
    return candelabra.empty_strided(layout.shape, layout.stride, dtype=layout.dtype, device="meta")
