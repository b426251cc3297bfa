"""``torch.backends.mps``: there is no backend for Apple's GPUs."""

from __future__ import annotations

__all__ = ["is_available", "is_built", "is_macos13_or_newer"]


def is_available() -> bool:
    """Whether there is such a device: there is not."""
    return False


is_built = is_available


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Whether the system is macOS: backends are for Linux."""
    return False
