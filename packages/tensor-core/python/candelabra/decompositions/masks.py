"""Masks: filling, selecting, and the indices of what is not zero."""

from __future__ import annotations

import candelabra

from .registration import decomposes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra import Tensor
    from candelabra.types import Number

where = candelabra.where


@decomposes("masked_fill")
def masked_fill(self: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor:
    return where(mask, value if isinstance(value, candelabra.Tensor) else self.new_full((), value), self)


@decomposes("masked_scatter")
def masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    chosen = mask.reshape(-1)
    count, given = int(chosen.sum()), source.numel()
    if count > given:
        raise RuntimeError(f"masked_scatter: the mask selects {count} elements, but source has only {given}")
    if count == 0:
        return self
    order = where(chosen, candelabra.cumsum(chosen, 0) - 1, chosen.new_zeros((), dtype=candelabra.int64))
    return where(mask, candelabra.gather(source.reshape(-1), 0, order).reshape(mask.shape), self)


def _true_places(mask: Tensor) -> Tensor:
    """Return the row-major positions of what is true. This waits for the device."""
    chosen = mask.reshape(-1)
    count = int(chosen.sum())
    # What is not chosen goes to one more element, behind the others.
    targets = where(chosen, candelabra.cumsum(chosen, 0) - 1, chosen.new_full((), count, dtype=candelabra.int64))
    places = candelabra.arange(chosen.numel(), device=mask.device)
    return candelabra.scatter(places.new_zeros((count + 1,)), 0, targets, places).narrow(0, 0, count)


@decomposes("nonzero")
def nonzero(self: Tensor) -> Tensor:
    places, columns = _true_places(self != 0), []
    for size in reversed(self.shape):
        columns.append(candelabra.fmod(places, max(size, 1)))
        places = candelabra.div(places, max(size, 1), rounding_mode="floor")
    return candelabra.stack(columns[::-1], 1) if columns else places.reshape(-1, 1).narrow(1, 0, 0)


@decomposes("masked_select")
def masked_select(self: Tensor, mask: Tensor) -> Tensor:
    return candelabra.gather(self.reshape(-1), 0, _true_places(mask))
