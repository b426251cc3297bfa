"""Fully sharded data parallelism, with PyTorch's names. See :doc:`sharding`."""

from __future__ import annotations

from .absent import FullyShardedDataParallel
from .module import FSDPModule, UnshardHandle, fully_shard, register_fsdp_forward_method
from .policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

__all__ = [
    "CPUOffloadPolicy",
    "FSDPModule",
    "FullyShardedDataParallel",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
]
