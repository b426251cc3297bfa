"""``torch.distributed`` without candelabra-distributed: it reports that it is not available.
`refusing` has its other names.
"""

from __future__ import annotations

import enum

__all__ = [
    "ReduceOp", "group", "is_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched",
]  # fmt: skip


def is_available() -> bool:
    """Return False, because candelabra-distributed is not installed."""
    return False


def is_initialized() -> bool:
    """Return False, because there are no process groups."""
    return False


is_gloo_available = is_mpi_available = is_nccl_available = is_torchelastic_launched = is_available


class ReduceOp(enum.Enum):
    """How collectives combine tensors."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


class group:
    """The groups of processes: there are none."""

    WORLD = None
