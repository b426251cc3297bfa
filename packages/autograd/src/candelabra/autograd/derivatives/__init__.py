"""Derivative formulas, one file per operator family; importing this package fills the table."""

from . import (
    attention,
    convolution,
    copying,
    elementwise,
    factorization,
    fft,
    indexing,
    joining,
    linalg,
    loss,
    normalization,
    pooling,
    random,
    recurrent,
    reduction,
    resampling,
    scan,
    softmax,
    solving,
    sorting,
    special,
    spectral,
    views,
)

__all__ = [
    "attention", "convolution", "copying", "elementwise", "factorization", "fft", "indexing", "joining", "linalg", "loss", "normalization", "pooling", "random", "recurrent",
    "reduction", "resampling", "scan", "softmax", "solving", "sorting", "special", "spectral", "views",
]  # fmt: skip
