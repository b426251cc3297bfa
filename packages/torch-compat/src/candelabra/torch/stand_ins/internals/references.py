"""``torch._refs``: reductions that differ from the operators of their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra
from candelabra import Tensor

__all__ = ["amax", "amin", "prod"]


def prod(
    a: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: candelabra.dtype | None = None
) -> Tensor:
    """Multiply elements along any number of dimensions."""
    listed = [dim] if isinstance(dim, int) else [*(dim or ())]
    places = [place if place >= 0 else place + a.ndim for place in listed] or [*range(a.ndim)]
    if len({*places}) != len(places):
        raise RuntimeError("duplicate value in the list of dims")
    if not places:
        return candelabra.prod(a, dtype=dtype)
    for place in sorted(places, reverse=True):
        a = candelabra.prod(a, place, keepdim, dtype=dtype)
    return a


def _extremum(function: Any, a: Tensor, dim: Any, keepdim: bool, out: Tensor | None) -> Tensor:
    dims = () if dim is None else dim
    try:
        return function(a, dims, keepdim, out=out)  # type: ignore[no-any-return]
    except (IndexError, RuntimeError) as error:
        if a.numel():
            raise
        raise RuntimeError("reducing over zero-size dimension for reduction operation without identity") from error


def amax(
    a: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Return the largest elements; RuntimeError where there are none."""
    return _extremum(candelabra.amax, a, dim, keepdim, out)


def amin(
    a: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Return the smallest elements; RuntimeError where there are none."""
    return _extremum(candelabra.amin, a, dim, keepdim, out)
