"""``torch.distributed``: not available yet, and says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

__all__ = [
    "all_gather",
    "all_reduce",
    "barrier",
    "broadcast",
    "destroy_process_group",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
]


def is_available() -> bool:
    """Whether processes on several machines can compute together: not yet."""
    return False


def is_initialized() -> bool:
    """Whether a group of processes is there: there is none."""
    return False


is_gloo_available = is_mpi_available = is_nccl_available = is_torchelastic_launched = is_available


def _refuse(name: str) -> Callable[..., NoReturn]:
    """A function that programs import for several machines, and call for more than one only."""

    def refuse(*arguments: Any, **options: Any) -> NoReturn:
        raise RuntimeError(
            f"torch.distributed.{name}(): torch.distributed is not available on Candelabra; tensors are not spread over machines"
        )

    refuse.__name__ = name
    return refuse


all_gather, all_reduce, barrier, broadcast = (
    _refuse(name) for name in ("all_gather", "all_reduce", "barrier", "broadcast")
)
init_process_group, destroy_process_group = _refuse("init_process_group"), _refuse("destroy_process_group")
get_rank, get_world_size = _refuse("get_rank"), _refuse("get_world_size")
