"""Gradients of indexed reads and writes."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor, ops, where

from ..fitting import sum_to
from ..table import derivative, joint_derivative
from .parts import conj, masked, zeros

# ---- along one dimension

derivative("gather", self=lambda grad, dim, index, self_shape: zeros(self_shape, grad).scatter_add_(dim, index, grad))
derivative(
    "scatter",
    self=lambda grad, dim, index: grad.scatter(dim, index, 0),
    src=lambda grad, dim, index, src_shape: _read(grad, dim, index, src_shape),
)
derivative(
    "scatter_add", self=lambda grad: grad, src=lambda grad, dim, index, src_shape: _read(grad, dim, index, src_shape)
)


def _read(grad: Tensor, dim: int, index: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Gather the gradient of a source of which only the part covered by `index` was used."""
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
    self=lambda grad, dim, index, self_shape: zeros(self_shape, grad).index_add_(
        dim, index.reshape(-1), _lined(grad, dim)
    ),
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

# ---- several index tensors

derivative("index", self=lambda grad, indices, self_shape: zeros(self_shape, grad).index_put_(indices, grad, True))


def _index_put_self(grad: Tensor, indices: Any, accumulate: bool) -> Tensor:
    return grad if accumulate else grad.index_put(indices, candelabra.zeros((), dtype=grad.dtype, device=grad.device))


def _index_put_values(grad: Tensor, indices: Any, values_shape: tuple[int, ...]) -> Tensor:
    part = ops.index(grad, indices)
    if part.shape == values_shape:
        return part
    ones_in_front = max(0, len(values_shape) - part.ndim)  # extra leading dimensions, all of size 1
    return sum_to(part, values_shape[ones_in_front:]).reshape(values_shape)


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
    weight=lambda grad, indices, padding_idx, weight_shape: ops.embedding_backward(
        grad, indices, weight_shape[0], padding_idx
    ),
)


def _embedding_backward(upper: Tensor, indices: Tensor, padding_idx: int) -> Tensor:
    rows = ops.embedding(upper, indices, padding_idx)
    return rows if padding_idx < 0 else rows.masked_fill((indices == padding_idx).unsqueeze(-1), 0)


derivative("embedding_backward", grad=_embedding_backward)


def _bags(
    grad: Tensor,
    weight: Tensor,
    indices: Tensor,
    mode: str,
    per_sample_weights: Any,
    scale_grad_by_freq: bool,
    padding_idx: int,
    result1: Tensor,
    result2: Tensor,
    result3: Tensor,
    needs: tuple[bool, bool],
) -> tuple[Any, Any]:
    of_weight = of_factors = None
    if needs[0]:
        of_weight = ops._embedding_bag_backward(
            grad,
            indices,
            result1,
            result2,
            result3,
            weight.shape[0],
            mode,
            per_sample_weights,
            scale_grad_by_freq,
            padding_idx,
        )
    if needs[1]:
        # The dot product of each row with the gradient of its bag; zero for rows in no bag.
        unused = (result1 < 0) | (indices == padding_idx)
        rows = weight.index_select(0, indices) * grad.index_select(0, result1.clamp(min=0))
        of_factors = rows.sum(1).masked_fill(unused, 0).to(per_sample_weights.dtype)
    return of_weight, of_factors


joint_derivative("_embedding_bag", ("weight", "per_sample_weights"), _bags)

# ---- scatter reductions


def _others_of_prod(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool, result: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of `self` and `src` for a product.

    The gradient of a factor is the product of all other factors, which must also be correct if
    factors are zero.
    """
    rest = self.masked_fill(self == 0, 1)
    of_self = grad * conj(ops.scatter_reduce(rest, dim, index, src, "prod", include_self=include_self) / rest)
    zero = src == 0
    zeros_there = candelabra.zeros_like(self).scatter_add(dim, index, zero.to(self.dtype)).gather(dim, index)
    single = zero & (zeros_there == 1)
    without = ops.scatter_reduce(self, dim, index, src.masked_fill(single, 1), "prod", include_self=include_self)
    of_src = where(
        single,
        (grad * conj(without)).gather(dim, index),
        (grad * conj(result)).gather(dim, index) / conj(src.masked_fill(zero, 1)),
    )
    return of_self, of_src


def _shared_extremum(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, result: Tensor
) -> tuple[Tensor, Tensor]:
    """Share the gradient of a maximum or minimum among all equal elements."""
    is_self = (self == result).to(grad.dtype)
    is_src = (src == result.gather(dim, index)).to(grad.dtype)
    share = grad / is_self.scatter_add(dim, index, is_src).clamp(min=1)
    return is_self * share, is_src * share.gather(dim, index)


def _scatter_reduce(
    grad: Tensor,
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    include_self: bool,
    result: Tensor,
    needs: tuple[bool, bool],
) -> tuple[Any, Any]:
    if index.numel() == 0:
        return grad, candelabra.zeros_like(src)
    used = src
    for at, size in enumerate(index.shape if index.shape != src.shape else ()):
        used = used.narrow(at, 0, size)
    if reduce == "sum":
        of_self, of_used = grad, grad.gather(dim, index)
    elif reduce == "mean":
        base = candelabra.ones_like(grad) if include_self else candelabra.zeros_like(grad)
        counts = base.scatter_add(dim, index, candelabra.ones(index.shape, dtype=grad.dtype, device=grad.device))
        of_self = grad / counts.masked_fill(counts == 0, 1)
        of_used = of_self.gather(dim, index)
    elif reduce == "prod":
        of_self, of_used = _others_of_prod(grad, self, dim, index, used, include_self, result)
    else:
        of_self, of_used = _shared_extremum(grad, self, dim, index, used, result)
    if not include_self:
        of_self = of_self.scatter(dim, index, 0)
    if needs[1] and used.shape != src.shape:
        whole = zeros(src.shape, grad)
        covered = whole
        for at, size in enumerate(index.shape):
            covered = covered.narrow(at, 0, size)
        covered.copy_(of_used)
        of_used = whole
    return of_self if needs[0] else None, of_used if needs[1] else None


joint_derivative("scatter_reduce", ("self", "src"), _scatter_reduce)
