"""Quasi-random sequences, as in ``torch.quasirandom``."""

from __future__ import annotations

from .sobol import SobolEngine

__all__ = ["SobolEngine"]
