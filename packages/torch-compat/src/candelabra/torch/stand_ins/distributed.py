"""``torch.distributed``: not available yet, and says so."""

from __future__ import annotations

__all__ = [
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
