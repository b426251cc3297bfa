"""Gradients of sorting and selection: scattered to the selected elements."""

from __future__ import annotations

from ..table import derivative
from .reduction import selected

derivative("sort", self=lambda grad, result1, dim, self_shape: selected(grad, result1, dim, True, self_shape))
derivative("topk", self=lambda grad, result1, dim, self_shape: selected(grad, result1, dim, True, self_shape))
