"""References of all operators in NumPy and SciPy, with sample inputs: one module per family."""

from __future__ import annotations

import importlib

from candelabra.testing.sampling import Reference

FAMILIES = (
    "creation", "copying", "elementwise", "reduction", "scan", "sorting", "joining", "indexing", "linalg", "factorization", "spectral",
    "solving", "fft", "special", "softmax", "loss", "attention", "recurrent",
    "convolution", "pooling", "resampling", "normalization", "random", "optimizer",
)  # fmt: skip


def references() -> dict[str, Reference]:
    """Return every operator's reference by name. Imported here, because SciPy is slow to import."""
    found: dict[str, Reference] = {}
    for family in FAMILIES:
        found.update(importlib.import_module(f"{__name__}.{family}").REFERENCES)
    return found
