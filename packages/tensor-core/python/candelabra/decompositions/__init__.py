"""Decompositions of primitives: for a device without a kernel, or whose kernel declines a call.

They end in the kernels of the tier "required" (``candelabra.backends.tiers``). The core imports
this package when a device first needs it. A decomposition is written like a kernel: the core has
checked and normalized the arguments, records the operator itself, and copies the result to ``out=``
or to the tensor that the operator changes in place.

The files are named as the families of the catalogue.
"""

import importlib

from .registration import decomposes

for _module in (
    "unary", "hyperbolic", "binary", "comparison", "reduction", "scan", "joining", "indexing", "masks", "linalg",
    "convolution", "pooling", "loss", "random", "optimizer", "optimizer_adaptive", "fft", "special", "polynomials",
):  # fmt: skip
    importlib.import_module(f"{__name__}.{_module}")

__all__ = ["decomposes"]
