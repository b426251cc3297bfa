"""``torch.fx._compatibility``: a decorator of functions that stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["compatibility"]

T = TypeVar("T")


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """Return a decorator that returns the function or class as it is."""
    return lambda decorated: decorated
