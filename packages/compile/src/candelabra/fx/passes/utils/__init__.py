"""Parts of passes: finding patterns in graphs."""

from __future__ import annotations

from . import matcher_utils

__all__ = ["matcher_utils"]
