"""Joining and rearranging, and regular sequences."""

from __future__ import annotations

import candelabra

from .registration import decomposes, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra import Tensor, device, dtype
    from candelabra.types import Number

where = candelabra.where


@decomposes("cat")
def cat(tensors: tuple[Tensor, ...], dim: int) -> Any:
    first, sizes = tensors[0], list(tensors[0].shape)
    sizes[dim] = sum(tensor.shape[dim] for tensor in tensors)
    result, begin = first.new_empty(sizes), 0
    for tensor in tensors:
        write(result.narrow(dim, begin, tensor.shape[dim]), tensor)
        begin += tensor.shape[dim]
    return result


@decomposes("flip")
def flip(self: Tensor, dims: tuple[int, ...]) -> Tensor:
    for dim in dims:
        if self.shape[dim] > 1:
            backwards = candelabra.arange(self.shape[dim] - 1, -1, -1, device=self.device)
            self = candelabra.index_select(self, dim, backwards)
    return self


def _diagonals(x: Tensor) -> Tensor:
    """Return the number of each element's diagonal."""
    rows, columns = (candelabra.arange(x.shape[d], device=x.device) for d in (-2, -1))
    return columns - rows.unsqueeze(-1)


@decomposes("tril")
def tril(self: Tensor, diagonal: int) -> Tensor:
    return where(_diagonals(self) <= diagonal, self, self.new_zeros(()))


@decomposes("triu")
def triu(self: Tensor, diagonal: int) -> Tensor:
    return where(_diagonals(self) >= diagonal, self, self.new_zeros(()))


@decomposes("linspace")
def linspace(start: Number, end: Number, steps: int, dtype: dtype, device: device) -> Tensor:
    computed = candelabra.float64 if not (dtype.is_floating_point or dtype.is_complex) else dtype
    if computed in (candelabra.float16, candelabra.bfloat16):
        computed = candelabra.float32
    places = candelabra.arange(steps, device=device)
    step = (end - start) / (steps - 1) if steps > 1 else 0
    # From both ends to the middle, so that both ends are exact.
    middle = 1 if steps == 1 else steps // 2
    forwards = places.to(computed) * step + start
    return where(places < middle, forwards, (places - (steps - 1)).to(computed) * step + end)
