"""Gradients of cumulative sums and products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import candelabra
from candelabra.composite.transformed import all_values

from ..table import derivative
from .parts import conj, to_dtype

if TYPE_CHECKING:
    from candelabra import Tensor


def summed_from_the_end(grad: Tensor, dim: int) -> Tensor:
    """Return the cumulative sum along `dim` from the end."""
    return grad if grad.ndim == 0 else grad.flip([dim]).cumsum(dim).flip([dim])


def _cumprod(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    x = to_dtype(self, grad.dtype)
    if x.ndim == 0 or x.numel() == 0:
        return to_dtype(grad, self.dtype)
    if bool((all_values(x) == 0).any()):
        made = _cumprod_with_zeros(grad, x, dim)
    else:
        made = summed_from_the_end(grad * conj(result), dim) / conj(x)
    return to_dtype(made, self.dtype)


def _cumprod_with_zeros(grad: Tensor, x: Tensor, dim: int) -> Tensor:
    """Return the gradient of cumprod() without division, so that `x` may contain zeros.

    Element k is the product of all elements before k, times the sum over j >= k of grad[j] times
    the product of the elements between k and j.
    """
    size = x.shape[dim]
    ones = candelabra.ones_like(x.narrow(dim, 0, 1))
    before = ones
    columns = []
    for k in range(size):
        following = (
            ones if k + 1 == size else candelabra.cat([ones, x.narrow(dim, k + 1, size - k - 1)], dim).cumprod(dim)
        )
        total = (grad.narrow(dim, k, size - k) * conj(following)).sum([dim], True)
        columns.append(conj(before) * total)
        before = before * x.narrow(dim, k, 1)
    return candelabra.cat(columns, dim)


def _cumsum(grad: Tensor, dim: int, self_dtype: Any) -> Tensor:
    return to_dtype(summed_from_the_end(grad, dim), self_dtype)


derivative("cumsum", self=_cumsum)
derivative("cumprod", self=_cumprod)
