"""``torch.backends.mps``: there is no backend for Apple GPUs."""

from __future__ import annotations

__all__ = ["is_available", "is_built", "is_macos13_or_newer"]


def is_available() -> bool:
    """Return False, because there is no backend for Apple GPUs."""
    return False


is_built = is_available


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Return False, because backends exist only for Linux."""
    return False
