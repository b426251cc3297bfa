"""Batch normalization under the module name it has in PyTorch; see `normalization`."""

from .normalization import BatchNorm1d, BatchNorm2d, _BatchNorm

__all__ = ["BatchNorm1d", "BatchNorm2d", "_BatchNorm"]
