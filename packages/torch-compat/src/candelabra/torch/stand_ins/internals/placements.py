"""``torch.distributed.tensor`` without candelabra-distributed: where parts of tensors would be.

Libraries make them when they are imported, as settings. Distributed tensors themselves are not
here: what makes one raises.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard", "_StridedShard"]


class Placement:
    """The base of the descriptions."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Return whether the tensor is split, along `dim` if it is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Return whether every device has the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Return whether the devices have terms of the tensor, of `reduce_op` if it is given."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """The tensor is split along a dimension."""

    dim: int


@dataclass(frozen=True)
class _StridedShard(Placement):
    """The tensor is split along a dimension, in several groups."""

    dim: int
    split_factor: int

    def __init__(self, dim: int, *, split_factor: int) -> None:
        object.__setattr__(self, "dim", dim)
        object.__setattr__(self, "split_factor", split_factor)


@dataclass(frozen=True)
class Replicate(Placement):
    """Every device has the whole tensor."""


@dataclass(frozen=True)
class Partial(Placement):
    """The devices have terms, which an operation combines."""

    reduce_op: str = "sum"
