"""The operator catalogue: every operator, declared once, by family. The same family names hold in
every package.
"""

import importlib

from .declaration import FACTS, FAMILIES, OPERATORS, declare_family, operator

for _family in (
    "creation", "copying", "elementwise", "reduction", "scan", "sorting", "views", "joining", "indexing", "linalg", "factorization", "spectral",
    "solving", "fft", "special", "softmax",
    "loss", "attention", "recurrent", "convolution", "pooling", "resampling", "normalization", "random", "optimizer",
):  # fmt: skip
    _first = len(OPERATORS)
    importlib.import_module(f"{__name__}.{_family}")
    declare_family(_family, _first)

__all__ = ["FACTS", "FAMILIES", "OPERATORS", "operator"]
