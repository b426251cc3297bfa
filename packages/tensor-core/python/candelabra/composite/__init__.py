"""Operators composed of others: decompositions, and functions and methods built on operators. Files
are named after the catalogue's families; large topics have files of their own (einsum, ranges,
splitting, …).

The files are named as the families of the catalogue; what grew large has files of its own (einsum,
ranges, splitting, …).
"""

import importlib

from .registration import ALIASES, FUNCTIONS, METHODS, PROPERTIES, decomposes, fallback, function, tensor_property

for _module in (
    "creation.creation", "creation.from_data", "creation.like", "creation.ranges", "movement.copying",
    "elementwise.elementwise", "elementwise.activation", "elementwise.comparison",
    "elementwise.deprecated_signatures",
    "reduction.reduction", "reduction.hashing", "reduction.order_statistics", "reduction.scan",
    "reduction.covariance", "reduction.gradient", "movement.sorting", "movement.views", "movement.splitting",
    "movement.view_copies", "movement.broadcasting", "movement.diagonals", "movement.joining",
    "movement.indexing", "linalg.linalg", "linalg.cdist", "linalg.solving", "linalg.matrix_exp", "linalg.scaled_mm",
    "linalg.low_rank", "elementwise.special", "linalg.einsum", "reduction.softmax",
    "reduction.histograms", "nn.normalization", "nn.attention", "nn.recurrent", "nn.recurrent_stack",
    "nn.resampling", "movement.embedding_bag", "creation.random", "creation.multinomial", "linalg.spectrum",
    "methods.tensor_protocol", "methods.resizing", "methods.array_namespace", "methods.tape_methods", "methods.view_methods",
    "creation.legacy_types", "methods.symbolic", "methods.control_flow", "methods.other_layouts",
    "methods.old_methods", "methods.storage_methods", "methods.generator_methods", "methods.mapped_files", "creation.binomial",
    "creation.poisson", "nn.convolution", "methods.names", "nn.pooling", "nn.loss",
):  # fmt: skip
    importlib.import_module(f"{__name__}.{_module}")

__all__ = [
    "FUNCTIONS",
    "METHODS",
    "PROPERTIES",
    "ALIASES",
    "decomposes",
    "fallback",
    "function",
    "tensor_property",
]
