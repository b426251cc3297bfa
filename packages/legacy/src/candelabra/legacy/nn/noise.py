"""Layers that draw random numbers while they train: `updateOutput` draws and keeps them."""

from __future__ import annotations

import candelabra
from candelabra import Tensor

from .module import Module


class Dropout(Module):
    """Set elements to zero with a probability, and divide the others by what remains.

    Parameters
    ----------
    p
        The probability.
    inplace
        Whether the output takes the place of the input.
    """

    _parameter_names = ()
    p = 0.5
    noise: Tensor
    #: Whether elements are divided while training. Files of older versions multiply in evaluation.
    v2 = True

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        self.setp(p)
        self.inplace = inplace
        self.v2 = type(self).v2
        self.noise = candelabra.empty(0)

    def setp(self, p: float) -> None:
        """Change the probability."""
        if not 0 <= p < 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, got {p}")
        self.p = p

    def _shape(self, input: Tensor) -> tuple[int, ...]:
        return tuple(input.shape)

    def _prepare(self, input: Tensor) -> None:
        if self.train and self.p > 0:
            kept = candelabra.empty(self._shape(input), dtype=input.dtype, device=input.device).bernoulli_(1 - self.p)
            self.noise = kept / (1 - self.p) if self.v2 else kept

    def _compute(self, input: Tensor, *parameters: Tensor) -> Tensor:
        if self.p > 0 and self.train:
            return input * self.noise
        # The same memory is no output of its own: what changes one would change the other.
        return input.clone() if self.v2 else input * (1 - self.p)

    def __repr__(self) -> str:
        return f"nn.{type(self).__name__}({self.p:.4f})"


class SpatialDropout(Dropout):
    """Set whole channels of images to zero; in evaluation, multiply all by what would remain."""

    v2 = False

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)

    def _shape(self, input: Tensor) -> tuple[int, ...]:
        return (*input.shape[:-2], 1, 1)


class VolumetricDropout(SpatialDropout):
    """Set whole channels of volumes to zero; in evaluation, multiply all by what would remain."""

    def _shape(self, input: Tensor) -> tuple[int, ...]:
        return (*input.shape[:-3], 1, 1, 1)


class RReLU(Module):
    """Compute `x` where positive, and a random multiple of `x` elsewhere.

    Parameters
    ----------
    lower, upper
        The factor's bounds. In evaluation it is their mean.
    inplace
        Whether the output takes the place of the input.
    """

    _parameter_names = ()
    lower, upper = 1 / 8, 1 / 3
    noise: Tensor

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= lower <= upper:
            raise ValueError(f"0 <= lower <= upper does not hold: {lower}, {upper}")
        self.lower, self.upper = lower, upper
        self.inplace = inplace
        self.noise = candelabra.empty(0)

    def _prepare(self, input: Tensor) -> None:
        if self.train:
            self.noise = candelabra.empty_like(input).uniform_(self.lower, self.upper)

    def _compute(self, input: Tensor, *parameters: Tensor) -> Tensor:
        factor = self.noise if self.train else (self.lower + self.upper) / 2
        return candelabra.where(input > 0, input, input * factor)
