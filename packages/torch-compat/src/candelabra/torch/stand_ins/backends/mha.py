"""``torch.backends.mha``: attention has one implementation, so that the setting has no effect."""

from __future__ import annotations

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_enabled = True


def get_fastpath_enabled() -> bool:
    """Return what `set_fastpath_enabled` said."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Say whether attention may take PyTorch's fast path."""
    global _enabled
    _enabled = value
