"""Gradients of views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import ops

from ..fitting import sum_to
from ..inplace import laid_out, look_at, overlaps, summed_overlapping
from ..table import derivative, part_derivative
from .parts import placed, zeros

if TYPE_CHECKING:
    from candelabra import Tensor

derivative("view", self=lambda grad, self_shape: grad.reshape(self_shape))
derivative("unflatten", self=lambda grad, self_shape: grad.reshape(self_shape))
derivative("squeeze", self=lambda grad, self_shape: grad.reshape(self_shape))
derivative("unsqueeze", self=lambda grad, self_shape: grad.reshape(self_shape))
derivative("expand", self=lambda grad, self_shape: grad if grad.shape == self_shape else sum_to(grad, self_shape))
derivative("alias", self=lambda grad: ops.alias(grad))


def _permute(grad: Tensor, dims: Any) -> Tensor:
    ndim = len(dims)
    back = [0] * ndim
    for at, dim in enumerate(dims):
        back[dim % ndim] = at
    return grad.permute(back)


derivative("permute", self=_permute)
derivative("transpose", self=lambda grad, dim0, dim1: grad.transpose(dim0, dim1))
derivative("t", self=lambda grad: grad.t())
derivative("movedim", self=lambda grad, source, destination: grad.movedim(destination, source))


def _selected(self_shape: tuple[int, ...], dim: int, index: int) -> tuple[int, int, int]:
    dim %= len(self_shape)
    index = int(index) % self_shape[dim]
    return dim, index, index + 1


def _sliced(
    self_shape: tuple[int, ...], dim: int, start: int | None, end: int | None, step: int
) -> tuple[int, int, int] | None:  # fmt: skip
    dim %= len(self_shape)
    first, last, _ = slice(start, end).indices(self_shape[dim])
    return (dim, first, max(first, last)) if step == 1 else None


def _narrowed(self_shape: tuple[int, ...], dim: int, start: int, length: int) -> tuple[int, int, int]:
    dim %= len(self_shape)
    first = int(start) + (self_shape[dim] if start < 0 else 0)
    return dim, first, first + length


part_derivative("select", lambda whole, dim, index: whole.select(dim, index), _selected)
part_derivative("slice", lambda whole, dim, start, end, step: ops.slice(whole, dim, start, end, step), _sliced)
part_derivative("narrow", lambda whole, dim, start, length: whole.narrow(dim, start, length), _narrowed)
part_derivative("diagonal", lambda whole, offset, dim1, dim2: whole.diagonal(offset, dim1, dim2))


def _unfold(grad: Tensor, dimension: int, size: int, step: int, self_shape: tuple[int, ...]) -> Tensor:
    if not self_shape:
        return grad.reshape(())
    dimension %= len(self_shape)
    length = self_shape[dimension]
    if step >= size:
        return placed(grad, self_shape, lambda whole: whole.unfold(dimension, size, step))
    positions = candelabra.arange(length, device=grad.device).unfold(0, size, step).reshape(-1)
    windows = grad.movedim(-1, dimension + 1)
    flat = windows.reshape((*windows.shape[:dimension], positions.numel(), *windows.shape[dimension + 2 :]))
    return zeros(self_shape, grad).index_add(dimension, positions, flat)


derivative("unfold", self=_unfold)


def _as_strided(
    grad: Tensor, size: Any, stride: Any, storage_offset: int | None, self_shape: tuple[int, ...], self_strides: tuple[int, ...],
    self_offset: int,
) -> Tensor:  # fmt: skip
    # First compute the gradient of the shared memory, then read it with the input's geometry.
    offset = self_offset if storage_offset is None else storage_offset
    size, stride = tuple(size), tuple(stride)
    if grad.numel() == 0:
        return zeros(self_shape, grad)
    first = min(offset, self_offset)
    extent = max(
        offset - first + sum((n - 1) * s for n, s in zip(size, stride, strict=True)),
        self_offset - first + sum((n - 1) * s for n, s in zip(self_shape, self_strides, strict=True) if n),
    ) + 1  # fmt: skip
    memory = zeros((extent,), grad)
    written = (size, stride, offset - first, "")
    if overlaps(written):
        memory = summed_overlapping(grad, memory, written)
    else:
        look_at(memory, written).copy_(grad)
    read = (tuple(self_shape), tuple(self_strides), self_offset - first, "")
    if overlaps(read):
        # Input elements that overlap in memory share its gradient.
        count = summed_overlapping(
            candelabra.ones(self_shape, dtype=grad.dtype, device=grad.device), zeros((extent,), grad), read
        )
        memory = memory / candelabra.where(count == 0, 1, count)
    return look_at(laid_out(memory, (extent,), (1,), copy=False), read)


derivative("as_strided", self=_as_strided)
derivative("view_as_real", self=lambda grad: candelabra.view_as_complex(grad.contiguous()))
derivative("view_as_complex", self=lambda grad: candelabra.view_as_real(grad))
