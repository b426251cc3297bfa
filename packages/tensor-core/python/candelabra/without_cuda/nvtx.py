"""Ranges and marks for NVIDIA's profilers, which do nothing without a GPU."""

from __future__ import annotations

from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def range_push(msg: str) -> None:
    """Do nothing."""


def range_pop() -> None:
    """Do nothing."""


def mark(msg: str) -> None:
    """Do nothing."""


@contextmanager
def range(msg: str, *args: Any, **keywords: Any) -> Iterator[None]:
    """Do nothing."""
    yield


def range_start(msg: str) -> int:
    """Return 0, which `range_end` takes."""
    return 0


def range_end(range_id: int) -> None:
    """Do nothing."""
