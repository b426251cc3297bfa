"""What is made of operators: decompositions of the composite ones, and the functions and methods on top. By family, as the catalogue."""

import importlib

from .registration import ALIASES, FUNCTIONS, METHODS, PROPERTIES, decomposes, fallback, function, tensor_property

for _family in (
    "creation", "copying", "elementwise", "reduction", "scan", "sorting", "views", "joining", "indexing", "linalg", "einsum",
    "softmax", "normalization", "random", "tensor_protocol", "tape_methods",
):  # fmt: skip
    importlib.import_module(f"{__name__}.{_family}")

__all__ = ["FUNCTIONS", "METHODS", "PROPERTIES", "ALIASES", "decomposes", "fallback", "function", "tensor_property"]
