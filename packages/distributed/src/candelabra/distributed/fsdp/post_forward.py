"""Whole parameters that some ranks keep in parts between the forward and the backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import candelabra
from candelabra import Tensor

from ..collectives.gathers import all_gather_into_tensor
from ..groups import new_group
from ..process_group import ProcessGroup
from ..work import Work

#: By the group of all shards: the smaller groups of this rank, by their size.
_groups: WeakKeyDictionary[ProcessGroup, dict[int, ProcessGroup]] = WeakKeyDictionary()
#: By the group of all shards: the same ranks, for reductions.
_reducing: WeakKeyDictionary[ProcessGroup, ProcessGroup] = WeakKeyDictionary()


def smaller_group(shards: ProcessGroup, size: int) -> ProcessGroup:
    """Return the group of `size` consecutive ranks to which this rank belongs."""
    known = _groups.setdefault(shards, {})
    if size not in known:
        first = shards.rank() // size * size
        known[size] = new_group(shards.ranks[first : first + size], shards.timeout, use_local_synchronization=True)
    return known[size]


def group_for_reductions(shards: ProcessGroup) -> ProcessGroup:
    """Return a group of the same ranks, with a communicator of its own."""
    if shards not in _reducing:
        _reducing[shards] = new_group(shards.ranks, shards.timeout, use_local_synchronization=True)
    return _reducing[shards]


class KeptPart:
    """This rank's part of some tensors of one dtype, which other ranks of a group have the rest of.

    Parameters
    ----------
    tensors : sequence of Tensor
        The same on all ranks of the group.
    group : ProcessGroup
        The ranks.
    """

    def __init__(self, tensors: Sequence[Tensor], group: ProcessGroup) -> None:
        self._group = group
        self.sizes = [tensor.numel() for tensor in tensors]
        length = -(-sum(self.sizes) // group.size())
        begin, end = group.rank() * length, (group.rank() + 1) * length
        self._part = candelabra.zeros(length, dtype=tensors[0].dtype, device=tensors[0].device)
        offset = 0
        for tensor, size in zip(tensors, self.sizes, strict=True):
            first, last = max(begin, offset), min(end, offset + size)
            if first < last:
                self._part[first - begin : last - begin].copy_(tensor.reshape(-1)[first - offset : last - offset])
            offset += size

    def gather(self) -> tuple[Work, Tensor]:
        """Start to gather the parts; return the work, and the memory of all of them."""
        made = self._part.new_empty(self._part.numel() * self._group.size())
        work = all_gather_into_tensor(made, self._part, self._group, async_op=True)
        assert work is not None
        return work, made
