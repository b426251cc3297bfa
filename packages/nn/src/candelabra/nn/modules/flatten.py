"""Provide layers that merge and split dimensions."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor

from .module import Module


class Flatten(Module):
    """Merge the dimensions from `start_dim` to `end_dim` into one.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.Flatten()(candelabra.randn(32, 1, 5, 5)).shape
    candelabra.Size([32, 25])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split dimension `dim` into dimensions of the sizes `unflattened_size`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.Unflatten(1, (2, 5, 5))(candelabra.randn(2, 50)).shape
    candelabra.Size([2, 2, 5, 5])
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(
                f"unflatten dim must be an int, as named dimensions are not supported, but found type {type(dim).__name__}"
            )
        if not isinstance(unflattened_size, tuple | list):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}"
            )
        for position, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} at pos {position}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


__all__ = ["Flatten", "Unflatten"]
