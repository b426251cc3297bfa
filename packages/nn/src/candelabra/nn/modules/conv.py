"""Convolutions under the module name they have in PyTorch; see `convolution`."""

from .convolution import Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d

__all__ = ["Conv1d", "Conv2d", "ConvTranspose1d", "ConvTranspose2d"]
