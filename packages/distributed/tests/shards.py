"""A tensor of which a rank holds a part, for tests of checkpoints."""

from __future__ import annotations

import candelabra
from candelabra.distributed.checkpoint import Shards


class Shard:
    """Part `rank` of `count` of a tensor along `dim`, cut as evenly as `chunk` cuts."""

    def __init__(self, full, dim, rank, count, is_saved_here=True, empty=False):
        size = -(-full.shape[dim] // count)
        begin = min(rank * size, full.shape[dim])
        self.local = full.narrow(dim, begin, min(size, full.shape[dim] - begin)).clone()
        self.expected = self.local.clone()
        if empty:
            self.local.zero_()
        self._shape = full.shape
        self._offsets = [begin if at == dim else 0 for at in range(full.dim())]
        self._is_saved_here = is_saved_here
        self._full = full

    def __sharded__(self):
        return Shards(self._shape, [(self._offsets, self.local)], self._is_saved_here)

    def full_tensor(self):
        return self._full.clone()

    def is_right(self):
        return candelabra.equal(self.local, self.expected)


def state(rank, count, empty=False):
    """A state of sharded tensors and others, the same for any number of ranks."""
    full = {
        "rows": (candelabra.arange(60).reshape(10, 6).float(), 0),
        "columns": (candelabra.arange(77).reshape(7, 11).to(candelabra.bfloat16), 1),
        "middle": (candelabra.arange(2 * 5 * 3).reshape(2, 5, 3), 1),
        "few": (candelabra.arange(3).double(), 0),
    }
    return {"model": {name: Shard(tensor, dim, rank, count, empty=empty) for name, (tensor, dim) in full.items()}}
