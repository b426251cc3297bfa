"""Reductions. Lists of dimensions name every reduced one."""

from __future__ import annotations

import math

import candelabra

from .registration import decomposes, wide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra import Tensor, dtype

    Dims = tuple[int, ...]


def _count(x: Tensor, dims: Dims) -> int:
    return math.prod(x.shape[d] for d in dims)


def _sum(x: Tensor, dims: Dims, keepdim: bool) -> Tensor:
    return candelabra.sum(x, dims, keepdim) if dims or x.ndim == 0 else x


@decomposes("mean")
def mean(self: Tensor, dim: Dims, keepdim: bool, dtype: dtype | None) -> Tensor:
    return _sum(wide(self), dim, keepdim) / _count(self, dim)


@decomposes("var")
def var(self: Tensor, dim: Dims, correction: float, keepdim: bool) -> Tensor:
    x, count = wide(self), _count(self, dim)
    distance = (x - _sum(x, dim, True) / count).abs()
    return _sum(distance * distance, dim, keepdim) / max(count - correction, 0)


@decomposes("std")
def std(self: Tensor, dim: Dims, correction: float, keepdim: bool) -> Tensor:
    return var(self, dim, correction, keepdim).sqrt()


@decomposes("linalg_vector_norm")
def linalg_vector_norm(self: Tensor, ord: float, dim: Dims, keepdim: bool, dtype: dtype | None) -> Tensor:
    sizes = wide(self).abs()
    if math.isinf(ord):
        if ord > 0:
            # The norm of no elements is 0.
            return candelabra.amax(sizes, dim, keepdim) if _count(self, dim) else _sum(sizes, dim, keepdim)
        return candelabra.amin(sizes, dim, keepdim)
    if ord == 0:
        return _sum((sizes != 0).to(sizes.dtype), dim, keepdim)
    if ord == 1:
        return _sum(sizes, dim, keepdim)
    if ord == 2:
        return _sum(sizes * sizes, dim, keepdim).sqrt()
    return candelabra.pow(_sum(candelabra.pow(sizes, ord), dim, keepdim), 1 / ord)


@decomposes("any")
def any_(self: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    truths = self != 0
    return _sum(truths, dim, keepdim) != 0


@decomposes("all")
def all_(self: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    falsehoods = self == 0
    return _sum(falsehoods, dim, keepdim) == 0


@decomposes("argmin")
def argmin(self: Tensor, dim: int, keepdim: bool) -> Tensor:
    # Both keep the order but reverse it: the complement has no overflow.
    reversed_order = -self if self.dtype.is_floating_point else candelabra.bitwise_not(self)
    return candelabra.argmax(reversed_order, dim, keepdim)


def _at(self: Tensor, indices: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    values = candelabra.gather(self, dim, indices)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def _ordered(self: Tensor) -> Tensor:
    return self.to(candelabra.uint8) if self.dtype is candelabra.bool else self


@decomposes("max_with_indices")
def max_with_indices(self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    return _at(self, candelabra.argmax(_ordered(self), dim, True), dim, keepdim)


@decomposes("min_with_indices")
def min_with_indices(self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    return _at(self, candelabra.argmin(_ordered(self), dim, True), dim, keepdim)
