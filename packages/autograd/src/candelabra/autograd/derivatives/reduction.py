"""Gradients of reductions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import where
from candelabra.composite.transformed import all_values

from ..table import derivative
from .parts import conj, count_of, kept_dims, listed, masked, to_dtype, zeros

if TYPE_CHECKING:
    from candelabra import Tensor

# ---- sums


def _spread(grad: Tensor, dim: Any, keepdim: bool, shape: tuple[int, ...]) -> Tensor:
    return kept_dims(grad, dim, keepdim, shape).expand(shape)


def _sum(grad: Tensor, dim: Any, keepdim: bool, self_shape: tuple[int, ...], self_dtype: Any) -> Tensor:
    if dim is None:
        grad = grad.expand(self_shape)
        return grad if grad.dtype is self_dtype else to_dtype(grad, self_dtype)
    return to_dtype(_spread(grad, dim, keepdim, self_shape), self_dtype)


def _mean(grad: Tensor, dim: Any, keepdim: bool, self_shape: tuple[int, ...], self_dtype: Any) -> Tensor:
    count = count_of(self_shape, dim)
    return to_dtype(_spread(grad / count if count else grad, dim, keepdim, self_shape), self_dtype)


def _nan_sum(grad: Tensor, self: Tensor, dim: Any, keepdim: bool, self_dtype: Any) -> Tensor:
    return to_dtype(_spread(grad, dim, keepdim, self.shape), self_dtype).masked_fill(self.isnan(), 0)


derivative("sum", self=_sum)
derivative("_nansum", self=_nan_sum)
derivative("mean", self=_mean)


# ---- products


def _prod(grad: Tensor, self: Tensor, result: Tensor, dim: int | None, keepdim: bool, self_dtype: Any) -> Tensor:
    x = to_dtype(self, grad.dtype)
    if x.ndim == 0:
        return to_dtype(grad, self_dtype)
    if bool((all_values(x) == 0).any()):
        if dim is None:
            made = grad * conj(_product_of_others(x.reshape(-1), 0)).reshape(x.shape)
        else:
            made = kept_dims(grad, dim, keepdim, x.shape) * conj(_product_of_others(x, dim))
    else:
        made = kept_dims(grad * conj(result), dim, keepdim or dim is None, x.shape) / conj(x)
    return to_dtype(made, self_dtype)


def _product_of_others(x: Tensor, dim: int) -> Tensor:
    """Return, for each element, the product of all others along `dim`.

    Multiplies prefix and suffix products instead of dividing, so zeros are handled correctly.
    """
    size = x.shape[dim]
    if size == 1:
        return candelabra.ones_like(x)
    ones = candelabra.ones_like(x.narrow(dim, 0, 1))
    before = candelabra.cat([ones, x.narrow(dim, 0, size - 1)], dim).cumprod(dim)
    after = candelabra.cat([ones, x.narrow(dim, 1, size - 1).flip([dim])], dim).cumprod(dim).flip([dim])
    return before * after


derivative("prod", self=_prod)

# ---- maxima and minima: all elements equal to the result share the gradient


def _shared(grad: Tensor, self: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Tensor:
    where_equal = self == kept_dims(result, dim, keepdim, self.shape)
    reached = where_equal | (self.isnan() & kept_dims(result, dim, keepdim, self.shape).isnan())
    count = reached.to(grad.dtype).sum(listed(dim, self.ndim), True) if self.ndim else reached.to(grad.dtype)
    return reached.to(grad.dtype) * (kept_dims(grad, dim, keepdim, self.shape) / count)


derivative("amax", self=_shared)
derivative("amin", self=_shared)


def selected(grad: Tensor, indices: Tensor, dim: int, keepdim: bool, shape: tuple[int, ...]) -> Tensor:
    """Scatter gradients to the elements that were selected."""
    if not shape:
        return grad
    if not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return zeros(shape, grad).scatter_(dim, indices, grad)


for _name, _title in (("max_with_indices", "Max"), ("min_with_indices", "Min")):
    derivative(
        _name,
        title=_title,
        self=lambda grad, result1, dim, keepdim, self_shape: selected(grad, result1, dim, keepdim, self_shape),
    )

# ---- variance


def _var(grad: Tensor, self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    freedom = count_of(self.shape, dim) - (1 if correction is None else correction)
    if self.ndim == 0:
        centered = self - self
    else:
        centered = self - self.mean(listed(dim, self.ndim), True)
    grad = kept_dims(grad, dim, keepdim, self.shape)
    if freedom <= 0:
        # Without degrees of freedom the variance is infinite or undefined, and so is its gradient.
        return grad * where(centered == 0, math.nan, centered * math.inf)
    return (grad * (2 / freedom)) * centered


def _std(grad: Tensor, self: Tensor, result: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    zero = result == 0
    return _var(masked(grad / (2 * where(zero, 1, result)), ~zero), self, dim, correction, keepdim)


derivative("var", self=_var)
derivative("std", self=_std)

# ---- norms


def _vector_norm(grad: Tensor, self: Tensor, result: Tensor, ord: Any, dim: Any, keepdim: bool) -> Tensor:
    dtype = self.dtype
    real = grad.dtype
    x = self if self.is_complex() else to_dtype(self, real)
    grad = kept_dims(grad, dim, keepdim, x.shape)
    norm = kept_dims(result, dim, keepdim, x.shape)
    ord = float(ord)
    if ord == 0:
        made = candelabra.zeros_like(x) * grad
    elif ord == 1:
        made = x.sgn() * grad
    elif ord == 2:
        zero = norm == 0
        made = x * masked(grad / where(zero, 1, norm), ~zero)
    elif math.isinf(ord):
        # Recompute the extreme value: a backend's norm may differ from it in the last digit.
        size, dims = x.abs(), listed(dim, x.ndim)
        extreme = size.amax(dims, True) if ord > 0 else size.amin(dims, True)
        reached = (size == extreme).to(real)
        count = reached.sum(dims, True) if x.ndim else reached
        made = x.sgn() * (reached * (grad / count))
    else:
        # d norm / dx = sgn(x) (|x| / norm)^(ord-1), defined as 0 if x or the norm is 0.
        size = x.abs()
        zero = (size == 0) | (norm == 0)
        ratio = where(zero, 1, size) / where(norm == 0, 1, norm)
        made = x.sgn() * masked(ratio ** (ord - 1) * grad, ~zero)
    return to_dtype(made, dtype)


derivative("linalg_vector_norm", self=_vector_norm)


def _logsumexp(grad: Tensor, self: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Tensor:
    top = kept_dims(result, dim, keepdim, self.shape)
    # If all elements are -inf, so is the result; the weights must then be 0, not exp(nan).
    top = where(top == -math.inf, 0, top)
    return kept_dims(grad, dim, keepdim, self.shape) * conj((self - top).exp())


derivative("logsumexp", self=_logsumexp)
