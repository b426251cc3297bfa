"""Random numbers: the same numbers from the same seed as the kernels (docs/random-numbers.md)."""

from __future__ import annotations

import candelabra

from .registration import decomposes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra import Tensor, device, dtype


def _generator(device: device, seed: int, offset: int) -> Any:
    """Return a generator that draws the numbers reserved for the call."""
    generator = candelabra.Generator(device)
    generator.manual_seed(seed)
    generator.set_offset(offset)
    return generator


def _uniform(like: Tensor, dtype: dtype, seed: int, offset: int) -> Tensor:
    """Return a number for each element, drawn in this dtype."""
    drawn = candelabra.empty(like.shape, dtype=dtype, device=like.device)
    return drawn.uniform_(0, 1, generator=_generator(like.device, seed, offset))


@decomposes("bernoulli_")
def bernoulli_(self: Tensor, p: float, *, seed: int, offset: int) -> Tensor:
    return _uniform(self, candelabra.float32, seed, offset) < p


@decomposes("bernoulli")
def bernoulli(self: Tensor, *, seed: int, offset: int) -> Tensor:
    return _uniform(self, candelabra.float32, seed, offset).to(self.dtype) < self


@decomposes("exponential_")
def exponential_(self: Tensor, lambd: float, *, seed: int, offset: int) -> Tensor:
    kind = candelabra.float64 if self.dtype is candelabra.float64 else candelabra.float32
    return -(1 - _uniform(self, kind, seed, offset)).log() / lambd


@decomposes("randperm")
def randperm(n: int, dtype: dtype, device: device, *, seed: int, offset: int) -> Tensor:
    order, lowest = list(range(n)), -(2**63)
    if n > 1:
        # All 64 bits of each draw, less 2**63.
        drawn = candelabra.empty(n, dtype=candelabra.int64, device=device)
        candelabra.ops.random_range_(drawn, lowest, -lowest - 1, generator=_generator(device, seed, offset))
        words = drawn.tolist()
        for i in range(n - 1, 0, -1):
            j = (words[i] - lowest) % (i + 1)
            order[i], order[j] = order[j], order[i]
    return candelabra.tensor(order, dtype=dtype, device=device)
