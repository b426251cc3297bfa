"""Provide channel shuffling under PyTorch's module name; see `pixelshuffle`."""

from .pixelshuffle import ChannelShuffle

__all__ = ["ChannelShuffle"]
