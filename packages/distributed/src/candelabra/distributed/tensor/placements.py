"""Where the values of a distributed tensor are, along one dimension of a mesh."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """Where values are along one dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Return whether each rank has a slice (along a tensor dimension `dim`, if given)."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        """Return whether each rank has all values."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Return whether the values are a pending reduction over the ranks."""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each rank has one of the slices along a tensor dimension that `Tensor.chunk` makes.

    Examples
    --------
    >>> from candelabra.distributed.tensor import Shard
    >>> Shard.local_shard_size_and_offset(5, 4, 2)
    (1, 4)
    """

    dim: int

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """Return the length and the start of a rank's slice of a dimension."""
        full = -(-curr_local_size // num_chunks)
        start = min(full * rank, curr_local_size)
        return min(full, curr_local_size - start), start

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class _StridedShard(Shard):
    """A Shard made after those of the later mesh dimensions, of the same tensor dimension.

    FSDP makes it of a parameter that tensor parallelism has sharded along dimension 0:
    `split_factor` is the number of shards that were there.
    """

    split_factor: int = 1

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has all values."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """Each rank has values of which the reduction over the ranks is the tensor.

    Parameters
    ----------
    reduce_op : str
        ``"sum"``, ``"avg"``, ``"max"``, ``"min"`` or ``"product"``.
    """

    reduce_op: str = "sum"

    def __post_init__(self) -> None:
        if self.reduce_op not in ("sum", "avg", "max", "min", "product"):
            raise ValueError(f"Partial: reduce_op must be sum, avg, max, min or product, but got {self.reduce_op!r}")

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


@dataclass(frozen=True)
class _NormPartial(Partial):
    """Each rank has the norm of its part of a tensor."""

    norm_type: float = 2.0

    def __str__(self) -> str:
        return f"NP({self.norm_type})"
