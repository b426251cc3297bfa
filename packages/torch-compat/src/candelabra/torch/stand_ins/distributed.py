"""``torch.distributed``, which reports that it is not available."""

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
    """Return False, because distributed training is not supported yet."""
    return False


def is_initialized() -> bool:
    """Return False, because there are no process groups."""
    return False


is_gloo_available = is_mpi_available = is_nccl_available = is_torchelastic_launched = is_available


def _refuse(name: str) -> Callable[..., NoReturn]:
    """Return a function that raises; programs import it, but only call it in distributed runs."""

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
