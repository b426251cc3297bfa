"""Helpers shared by several formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import ops

from ..leaves import zeros_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from candelabra import Tensor


def conj(value: Any) -> Any:
    """Return the conjugate of a tensor or number; real values are returned unchanged."""
    kind = value.__class__
    if kind is float or kind is int or kind is bool:
        return value
    if kind is complex:
        return value.conjugate()
    return ops.conj_physical(value) if value.is_complex() else value


def zeros_like(grad: Tensor) -> Tensor:
    """Return a zero gradient, for results that are piecewise constant in the input."""
    return candelabra.zeros_like(grad)


def zeros(shape: tuple[int, ...], grad: Tensor) -> Tensor:
    """Return zeros of a given shape, with the dtype, device and class of `grad`."""
    return zeros_for(grad, shape)


def placed(grad: Tensor, shape: tuple[int, ...], view: Callable[[Tensor], Tensor]) -> Tensor:
    """Return zeros of a given shape, with `grad` written to the elements that `view` selects."""
    whole = zeros(shape, grad)
    view(whole).copy_(grad)
    return whole


def listed(dim: Any, ndim: int) -> tuple[int, ...]:
    """Return `dim` as a tuple of nonnegative dimensions; None or an empty list means all."""
    if dim is None:
        return tuple(range(ndim))
    if isinstance(dim, int):
        dim = (dim,)
    if not dim:
        return tuple(range(ndim))
    return tuple(entry + ndim if entry < 0 else entry for entry in dim) if ndim else ()


def kept_dims(value: Tensor, dim: Any, keepdim: bool, shape: tuple[int, ...]) -> Tensor:
    """Restore reduced dimensions of a result, with size 1."""
    if keepdim or not shape:
        return value
    reduced = set(listed(dim, len(shape)))
    return value.reshape(tuple(1 if at in reduced else size for at, size in enumerate(shape)))


def count_of(shape: tuple[int, ...], dim: Any) -> int:
    """Return the number of elements that are reduced to one."""
    count = 1
    for at in listed(dim, len(shape)):
        count *= shape[at]
    return count


def to_dtype(grad: Tensor, dtype: Any) -> Tensor:
    """Convert a gradient to the dtype of its input."""
    if grad.dtype is dtype:
        return grad
    if grad.is_complex() and not dtype.is_complex:
        grad = grad.real
    return grad.to(dtype)


def masked(grad: Tensor, mask: Tensor) -> Tensor:
    """Return the gradient where `mask` is true, and zero elsewhere."""
    return candelabra.where(mask, grad, 0)
