"""Tensors of which each rank of a mesh holds a part, with PyTorch's names. See :doc:`/sharding`."""

from __future__ import annotations

from ..device_mesh import DeviceMesh, init_device_mesh
from . import dispatch as _dispatch  # noqa: F401  (sets what computes operators)
from .distribution import distribute_module, distribute_tensor
from .dtensor import DTensor
from .factories import empty, full, ones, rand, randn, zeros
from .placements import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "init_device_mesh",
    "ones",
    "rand",
    "randn",
    "zeros",
]
