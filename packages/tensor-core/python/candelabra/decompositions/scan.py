"""Scans and selection along one dimension."""

from __future__ import annotations

import candelabra

from .registration import decomposes, wide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra import Tensor, dtype


@decomposes("cumprod")
def cumprod(self: Tensor, dim: int, dtype: dtype | None) -> Tensor:
    x, step = wide(self), 1
    size = x.shape[dim]
    # After each round, element i is the product of the last 2 * step elements (Hillis and Steele).
    while step < size:
        x = candelabra.cat(
            (x.narrow(dim, 0, step), x.narrow(dim, step, size - step) * x.narrow(dim, 0, size - step)), dim
        )
        step *= 2
    return x


@decomposes("topk")
def topk(self: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Tensor, Tensor]:
    values, indices = candelabra.sort(self, dim=dim, descending=largest, stable=True)
    return values.narrow(dim, 0, k), indices.narrow(dim, 0, k)
