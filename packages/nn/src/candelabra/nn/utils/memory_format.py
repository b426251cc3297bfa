"""Convert the memory format of convolution weights."""

from __future__ import annotations

from typing import Any

from ..modules.convolution import _Convolution
from ..modules.module import Module


def _convert(module: Module, memory_format: Any, dims: int) -> Module:
    for part in module.modules():
        if isinstance(part, _Convolution) and len(part.kernel_size) == dims:
            part.weight.data = part.weight.detach().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Convert the weights of all 2-D convolutions of a module to a memory format.

    Values and shapes do not change.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> layer = nn.utils.convert_conv2d_weight_memory_format(nn.Conv2d(2, 2, 3), candelabra.channels_last)
    >>> layer.weight.is_contiguous(memory_format=candelabra.channels_last)
    True
    """
    return _convert(module, memory_format, 2)


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Convert the weights of all 3-D convolutions of a module to a memory format.

    Values and shapes do not change.
    """
    return _convert(module, memory_format, 3)


__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]
