"""Base classes of passes."""

from __future__ import annotations

from . import pass_base

__all__ = ["pass_base"]
