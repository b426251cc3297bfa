"""Fusion of layers, and questions about symbolic sizes."""

from __future__ import annotations

from . import optimization, symbolic_shapes

__all__ = ["optimization", "symbolic_shapes"]
