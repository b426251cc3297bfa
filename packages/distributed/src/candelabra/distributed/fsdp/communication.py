"""What carries out the collectives of `fully_shard` instead of this package."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from candelabra import Tensor

from ..process_group import ProcessGroup
from ..reduce_op import ReduceOp
from ..work import Work


class Comm(ABC):
    """A collective, and the memory that it sends and fills."""

    @abstractmethod
    def allocate(self, size: Sequence[int], *, dtype: Any, device: Any) -> Tensor:
        """Return a tensor of one dimension for the collective."""


class AllGather(Comm):
    """Gathers shards, for `FSDPModule.set_custom_all_gather`."""

    @abstractmethod
    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup, async_op: bool = False
    ) -> Work | None:
        """Write the inputs of all ranks into the output; None if it is done."""


class ReduceScatter(Comm):
    """Reduces gradients, for `FSDPModule.set_custom_reduce_scatter`."""

    @abstractmethod
    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup, op: ReduceOp, async_op: bool = False
    ) -> Work | None:
        """Write this rank's part of the reduced inputs into the output; None if it is done."""
