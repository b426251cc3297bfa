"""Provide im2col and col2im as layers."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor

from .. import functional as F
from .module import Module


class Fold(Module):
    """Sum columns (N, C * kernel, L) into an image (N, C, H, W) of `output_size`.

    See `functional.fold`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.Fold((4, 5), (2, 3))(candelabra.randn(1, 3 * 2 * 3, 9)).shape
    candelabra.Size([1, 3, 4, 5])
    """

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Unfold(Module):
    """Return the sliding windows of an image (N, C, H, W) as columns (N, C * kernel, L).

    See `functional.unfold`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.Unfold((2, 3))(candelabra.randn(2, 5, 3, 4)).shape
    candelabra.Size([2, 30, 4])
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


__all__ = ["Fold", "Unfold"]
