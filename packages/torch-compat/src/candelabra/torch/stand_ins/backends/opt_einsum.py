"""``torch.backends.opt_einsum``: the order of einsum's products is Candelabra's own."""

from __future__ import annotations

from typing import Any

__all__ = ["enabled", "get_opt_einsum", "is_available", "strategy"]

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Whether the package opt_einsum is used: it is not."""
    return False


def get_opt_einsum() -> Any:
    """The package opt_einsum: None, for it is not used."""
    return None
