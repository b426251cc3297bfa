"""The formulas, one file per family of operators; importing this package fills the table."""

from . import (
    convolution,
    copying,
    elementwise,
    indexing,
    joining,
    linalg,
    loss,
    normalization,
    pooling,
    random,
    reduction,
    scan,
    softmax,
    sorting,
    views,
)

__all__ = [
    "convolution", "copying", "elementwise", "indexing", "joining", "linalg", "loss", "normalization", "pooling", "random", "reduction",
    "scan", "softmax", "sorting", "views",
]  # fmt: skip
