"""Gradients of reading and writing at positions."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor, ops, where

from ..fitting import sum_to
from ..table import derivative
from .parts import conj, masked, zeros

# ---- along one dimension

derivative("gather", self=lambda grad, dim, index, self_shape: zeros(self_shape, grad).scatter_add_(dim, index, grad))
derivative(
    "scatter",
    self=lambda grad, dim, index: grad.scatter(dim, index, 0),
    src=lambda grad, dim, index, src_shape: _read(grad, dim, index, src_shape),
)
derivative("scatter_add", self=lambda grad: grad, src=lambda grad, dim, index, src_shape: _read(grad, dim, index, src_shape))


def _read(grad: Tensor, dim: int, index: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Gather the gradient of a source, of which the part that `index` covers was used."""
    part = grad.gather(dim, index)
    if part.shape == shape:
        return part
    whole = zeros(shape, grad)
    covered = whole
    for at, size in enumerate(index.shape):
        covered = covered.narrow(at, 0, size)
    covered.copy_(part)
    return whole


derivative(
    "index_select",
    self=lambda grad, dim, index, self_shape: zeros(self_shape, grad).index_add_(dim, index.reshape(-1), _lined(grad, dim)),
)


def _lined(grad: Tensor, dim: int) -> Tensor:
    return grad.reshape(1) if grad.ndim == 0 else grad


def _index_add_source(grad: Tensor, dim: int, index: Tensor, alpha: Any, source_shape: tuple[int, ...]) -> Tensor:
    part = grad.index_select(dim, index).reshape(source_shape) if grad.ndim else grad.expand(source_shape)
    return part if alpha == 1 else part * conj(alpha)


derivative("index_add", self=lambda grad: grad, source=_index_add_source)
derivative(
    "index_copy",
    self=lambda grad, dim, index: grad.index_fill(dim, index, 0),
    source=lambda grad, dim, index, source_shape: _index_add_source(grad, dim, index, 1, source_shape),
)
derivative("index_fill", self=lambda grad, dim, index: grad.index_fill(dim, index, 0))

# ---- with several indices

derivative("index", self=lambda grad, indices, self_shape: zeros(self_shape, grad).index_put_(indices, grad, True))


def _index_put_self(grad: Tensor, indices: Any, accumulate: bool) -> Tensor:
    return grad if accumulate else grad.index_put(indices, candelabra.zeros((), dtype=grad.dtype, device=grad.device))


def _index_put_values(grad: Tensor, indices: Any, values_shape: tuple[int, ...]) -> Tensor:
    part = ops.index(grad, indices)
    return part if part.shape == values_shape else sum_to(part, values_shape)


derivative("index_put", self=_index_put_self, values=_index_put_values)


def _take(grad: Tensor, index: Tensor, self_shape: tuple[int, ...]) -> Tensor:
    count = 1
    for size in self_shape:
        count *= size
    positions = where(index < 0, index + count, index)
    return zeros((count,), grad).index_add_(0, positions.reshape(-1), grad.reshape(-1)).reshape(self_shape)


derivative("take", self=_take)

# ---- with masks

derivative(
    "masked_fill", broadcast=True,
    self=lambda grad, mask: grad.masked_fill(mask, 0),
    value=lambda grad, mask: masked(grad, mask),
)  # fmt: skip


def _masked_scatter_source(grad: Tensor, mask: Tensor, source_shape: tuple[int, ...]) -> Tensor:
    used = grad.masked_select(mask)
    whole = zeros(source_shape, grad).reshape(-1)
    if used.numel() < whole.numel():
        used = candelabra.cat([used, whole.narrow(0, 0, whole.numel() - used.numel())])
    return used.reshape(source_shape)


derivative(
    "masked_scatter",
    self=lambda grad, mask, self_shape: _summed(grad.masked_fill(mask, 0), self_shape),
    source=_masked_scatter_source,
)


def _summed(grad: Tensor, shape: tuple[int, ...]) -> Tensor:
    return grad if grad.shape == shape else sum_to(grad, shape)


def _masked_select(grad: Tensor, mask: Tensor, self_shape: tuple[int, ...]) -> Tensor:
    shape = candelabra.broadcast_shapes(tuple(self_shape), tuple(mask.shape))
    return _summed(zeros(shape, grad).masked_scatter(mask, grad), self_shape)


derivative("masked_select", self=_masked_select)

# ---- embedding

derivative(
    "embedding",
    weight=lambda grad, indices, padding_idx, weight_shape: ops.embedding_backward(grad, indices, weight_shape[0], padding_idx),
)


def _embedding_backward(upper: Tensor, indices: Tensor, padding_idx: int) -> Tensor:
    rows = ops.embedding(upper, indices, padding_idx)
    return rows if padding_idx < 0 else rows.masked_fill((indices == padding_idx).unsqueeze(-1), 0)


derivative("embedding_backward", grad=_embedding_backward)
