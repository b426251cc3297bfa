"""The protocol by which checkpoints see tensors whose parts are on several ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from candelabra import Tensor


@dataclass(frozen=True)
class Shards:
    """The parts of a tensor that this rank holds.

    Attributes
    ----------
    shape : sequence of int
        The shape of the whole tensor.
    pieces : sequence of (offsets, Tensor)
        Each part, a plain tensor, and the index of its first element in the whole tensor. Loading
        writes into these tensors, which must therefore share the memory of the parameter. A rank
        may have no part, one, or several.
    is_saved_here : bool
        Whether this rank saves its parts. Of ranks with equal parts exactly one says so.
    """

    shape: Sequence[int]
    pieces: Sequence[tuple[Sequence[int], Tensor]]
    is_saved_here: bool = True


@runtime_checkable
class Sharded(Protocol):
    """A tensor of which each rank holds a part, such as a DTensor.

    Neither saving nor loading calls a collective of it.
    """

    def __sharded__(self) -> Shards:
        """Return the parts that this rank holds, detached from the graph.

        Raises
        ------
        RuntimeError
            The parts are not values yet: their sum over the ranks is pending.
        """
