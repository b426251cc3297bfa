"""Instance normalization under the module name it has in PyTorch; see `normalization`."""

from .normalization import InstanceNorm1d, InstanceNorm2d

__all__ = ["InstanceNorm1d", "InstanceNorm2d"]
