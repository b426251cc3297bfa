"""Gradients that are reduced together, as communication hooks see them."""

from __future__ import annotations

from candelabra import Tensor


class GradBucket:
    """The gradients of several parameters in one tensor.

    Parameters
    ----------
    index : int
        The number of the bucket, in the order in which they are reduced.
    buffer : Tensor
        The gradients, one after the other.
    parameters : list of Tensor
        The parameters.
    is_last : bool
        Whether it is the last bucket of the backward pass.
    """

    def __init__(self, index: int, buffer: Tensor, parameters: list[Tensor], is_last: bool) -> None:
        self._index = index
        self._buffer = buffer
        self._parameters = parameters
        self._is_last = is_last

    def index(self) -> int:
        """Return the number of the bucket."""
        return self._index

    def buffer(self) -> Tensor:
        """Return the gradients as one flat tensor."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Replace the gradients by another flat tensor."""
        self._buffer = buffer

    def parameters(self) -> list[Tensor]:
        """Return the parameters."""
        return self._parameters

    def gradients(self) -> list[Tensor]:
        """Return the gradient of each parameter, a view of the buffer."""
        pieces = self._buffer.split([parameter.numel() for parameter in self._parameters])
        return [piece.view(each.shape) for piece, each in zip(pieces, self._parameters, strict=True)]

    def is_last(self) -> bool:
        """Return whether it is the last bucket of the backward pass."""
        return self._is_last
