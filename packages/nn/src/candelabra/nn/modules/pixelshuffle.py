"""Provide layers that rearrange channels: pixel shuffle, its inverse, and channel shuffle."""

from __future__ import annotations

from candelabra import Tensor

from .. import functional as F
from .module import Module


class PixelShuffle(Module):
    """Rearrange (..., C * r^2, H, W) to (..., C, H * r, W * r), with r = `upscale_factor`.

    Source: Shi et al., 2016.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.PixelShuffle(2)(candelabra.arange(4.0).reshape(4, 1, 1))
    tensor([[[0., 1.],
             [2., 3.]]])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Invert `PixelShuffle`."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Interleave the channels of the groups.

    The result has the first channel of each group, then the second of each, and so on. Source:
    Zhang et al., 2017.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.ChannelShuffle(2)(candelabra.arange(4.0).reshape(1, 4, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


__all__ = ["ChannelShuffle", "PixelShuffle", "PixelUnshuffle"]
