"""The shuffling of channels under the module name it has in PyTorch; see `pixelshuffle`."""

from .pixelshuffle import ChannelShuffle

__all__ = ["ChannelShuffle"]
