"""``torch.random``: generators of the workers of a loader."""

from __future__ import annotations

__all__ = ["thread_safe_generator"]


def thread_safe_generator() -> None:
    """Return None, which stands for the default generator: workers of a loader are processes."""
