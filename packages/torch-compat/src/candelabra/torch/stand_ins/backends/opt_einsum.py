"""``torch.backends.opt_einsum``: not used, because einsum chooses its own contraction order."""

from __future__ import annotations

from typing import Any

__all__ = ["enabled", "get_opt_einsum", "is_available", "strategy"]

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Return False, because the package opt_einsum is not used."""
    return False


def get_opt_einsum() -> Any:
    """Return None, because the package opt_einsum is not used."""
    return None
