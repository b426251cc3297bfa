"""Rules that write the operators of the catalogue as ONNX, by family."""

from __future__ import annotations

from . import (
    activations,
    attention,
    convolution,
    creation,
    elementwise,
    indexing,
    joining,
    linalg,
    losses,
    normalization,
    padding,
    pooling,
    recurrent,
    reductions,
    resampling,
    sorting,
    views,
)
from .table import RULES, Rule

__all__ = [
    "RULES", "Rule", "activations", "attention", "convolution", "creation", "elementwise", "indexing", "joining", "linalg", "losses",
    "normalization", "padding", "pooling", "recurrent", "reductions", "resampling", "sorting", "views",
]  # fmt: skip
