"""Graphs of operators, fusion of layers, and questions about symbolic sizes."""

from __future__ import annotations

from . import optimization, proxy_tensor, symbolic_shapes

__all__ = ["optimization", "proxy_tensor", "symbolic_shapes"]
