"""Tensor parallelism: the layers of a module compute on parts of its parameters. See
:doc:`/sharding`.
"""

from __future__ import annotations

from .loss import loss_parallel
from .plan import parallelize_module
from .preparing import PrepareModuleInput, PrepareModuleInputOutput, PrepareModuleOutput
from .styles import ColwiseParallel, ParallelStyle, RowwiseParallel, SequenceParallel

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
    "loss_parallel",
    "parallelize_module",
]
