"""``torch.backends.cudnn``: switches; what they ask for is what the CUDA backend does anyway, or does not do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..cuda import is_available

__all__ = [
    "allow_tf32",
    "benchmark",
    "benchmark_limit",
    "deterministic",
    "enabled",
    "flags",
    "is_acceptable",
    "is_available",
    "version",
]

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True


def version() -> int | None:
    """Version of cuDNN: the backend has its own, and does not tell."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN can compute with a tensor: if it is on a CUDA device."""
    return bool(tensor.is_cuda)


@contextmanager
def flags(*arguments: Any, **options: Any) -> Iterator[None]:
    """Set switches for a block: nothing changes by it."""
    yield
