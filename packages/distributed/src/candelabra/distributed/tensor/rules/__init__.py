"""How operators compute on the parts of distributed tensors: one rule for each class of
operators.
"""

from . import batch_norm, indexing, losses, matmul, networks, optimizers, pointwise, randomness, reductions, views
from .table import RULES, Call, Row, Rule, call_with

__all__ = [
    "RULES",
    "Call",
    "Row",
    "Rule",
    "batch_norm",
    "call_with",
    "indexing",
    "losses",
    "matmul",
    "networks",
    "optimizers",
    "pointwise",
    "randomness",
    "reductions",
    "views",
]
