"""What is made of operators: decompositions of the composite ones, and the functions and methods on top.

The files are named as the families of the catalogue; what grew large has files of its own (einsum, ranges, splitting, …)."""

import importlib

from . import out_rules
from .registration import ALIASES, FUNCTIONS, METHODS, PROPERTIES, decomposes, fallback, function, tensor_property

for _module in (
    "creation", "from_data", "like", "ranges", "copying", "elementwise", "activation", "comparison", "reduction", "hashing", "order_statistics", "scan", "gradient",
    "sorting", "views", "splitting", "view_copies", "broadcasting", "diagonals", "joining", "indexing", "linalg", "linalg_distances", "solving", "matrix_exp", "low_rank", "special", "einsum", "softmax", "histograms",
    "normalization", "attention", "recurrent", "recurrent_stack", "resampling", "embedding_bags", "random", "spectrum", "tensor_protocol", "array_namespace", "tape_methods",
    "legacy_types", "symbolic", "control_flow", "other_layouts", "old_methods", "storage_methods", "mapped_files", "binomial", "poisson", "convolution", "names", "pooling", "loss",
):  # fmt: skip
    importlib.import_module(f"{__name__}.{_module}")

__all__ = ["FUNCTIONS", "METHODS", "PROPERTIES", "ALIASES", "decomposes", "fallback", "function", "out_rules", "tensor_property"]
