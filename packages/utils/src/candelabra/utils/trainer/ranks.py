"""The ranks of a distributed run, if candelabra.distributed has been initialized."""

from __future__ import annotations

import math
import sys
from typing import Any

import candelabra


def _distributed() -> Any:
    """Return candelabra.distributed if it has several ranks, or None."""
    module = sys.modules.get("candelabra.distributed")
    if module is None or not module.is_initialized() or module.get_world_size() == 1:
        return None
    return module


def rank_and_count() -> tuple[int, int]:
    """Return this process's rank, and the number of ranks."""
    distributed = _distributed()
    return (0, 1) if distributed is None else (distributed.get_rank(), distributed.get_world_size())


def on_any_rank(value: bool) -> bool:
    """Return whether a value is true on any rank. All ranks must call it.

    The trainer asks it whether to stop: ranks that stop at different steps would wait for one
    another for ever.
    """
    distributed = _distributed()
    if distributed is None:
        return value
    mark = candelabra.tensor([int(value)], device=distributed.group.WORLD.host_or_only_device())
    distributed.all_reduce(mark, distributed.ReduceOp.MAX)
    return bool(mark.item())


def is_finite(loss: float, on_all_ranks: bool) -> bool:
    """Return whether a loss is finite, on all ranks if ranks that go on would wait for those that
    skip the batch.
    """
    own = math.isfinite(loss)
    return not on_any_rank(not own) if on_all_ranks else own


def from_all_ranks(value: Any) -> list[Any] | None:
    """Return the values of all ranks on rank 0, and None on the others. All ranks must call it."""
    distributed = _distributed()
    if distributed is None:
        return [value]
    rank, count = rank_and_count()
    found: list[Any] | None = [None] * count if rank == 0 else None
    distributed.gather_object(value, found, dst=0)
    return found


def from_first_rank(value: Any) -> Any:
    """Return the value of rank 0. All ranks must call it."""
    distributed = _distributed()
    if distributed is None:
        return value
    box = [value]
    distributed.broadcast_object_list(box, src=0)
    return box[0]
