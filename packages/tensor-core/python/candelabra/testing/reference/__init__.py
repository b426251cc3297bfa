"""What each operator should compute, in NumPy and SciPy, with the inputs to try: one module a
family.
"""

from __future__ import annotations

import importlib

from candelabra.testing.sampling import Reference

FAMILIES = (
    "creation", "copying", "elementwise", "reduction", "scan", "sorting", "joining", "indexing", "linalg", "factorization", "spectral",
    "solving", "fft", "special", "softmax", "loss", "attention", "recurrent",
    "convolution", "pooling", "resampling", "normalization", "random", "optimizer",
)  # fmt: skip


def references() -> dict[str, Reference]:
    """Every operator's reference by name; imported here, since SciPy takes a while."""
    found: dict[str, Reference] = {}
    for family in FAMILIES:
        found.update(importlib.import_module(f"{__name__}.{family}").REFERENCES)
    return found
