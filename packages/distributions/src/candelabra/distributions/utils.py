"""Utilities as in ``torch.distributions.utils``: broadcasting, logits, triangular matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Number
from typing import Any

import candelabra
from candelabra import Tensor, enable_grad

#: The Euler–Mascheroni constant.
euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Broadcast tensors and numbers to tensors of the same shape.

    Numbers get the dtype and device of the first tensor, or the default dtype.

    Raises
    ------
    ValueError
        If a value is neither a tensor nor a number.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions.utils import broadcast_all
    >>> broadcast_all(candelabra.zeros(2), 1.0)
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    if not all(isinstance(value, Number) or hasattr(value, "__torch_function__") for value in values):
        raise ValueError("Input arguments must all be instances of Number or candelabra.Tensor.")
    tensors = [value for value in values if isinstance(value, Tensor)]
    if any(isinstance(value, Number) for value in values):
        if tensors:
            dtype, device = tensors[0].dtype, tensors[0].device
        else:
            dtype, device = candelabra.get_default_dtype(), None
        values = tuple(
            candelabra.tensor(value, dtype=dtype, device=device) if isinstance(value, Number) else value
            for value in values
        )
    return tuple(candelabra.broadcast_tensors(*values))


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """Sum over the last `dims` dimensions."""
    return value if dims == 0 else value.sum(tuple(range(-dims, 0)))


def standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Draw from the standard normal distribution."""
    return candelabra.randn(tuple(shape), dtype=dtype, device=device)


def open_uniform(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Draw from the uniform distribution on (0, 1), without its end points."""
    info = candelabra.finfo(dtype)
    return candelabra.rand(tuple(shape), dtype=dtype, device=device).clamp_(min=info.tiny, max=1 - info.eps)


def softplus(x: Tensor) -> Tensor:
    """Return ``log(1 + exp(x))``, without overflow for large x."""
    return candelabra.logaddexp(x, candelabra.zeros_like(x))


def log_sigmoid(x: Tensor) -> Tensor:
    """Return ``log(1 / (1 + exp(-x)))``."""
    return -softplus(-x)


def clamp_probs(probs: Tensor) -> Tensor:
    """Clamp probabilities to [eps, 1 - eps], so that their logits are finite."""
    eps = candelabra.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Convert logits to probabilities.

    Logits are log odds if `is_binary` is true, and unnormalized log probabilities otherwise.
    """
    return candelabra.sigmoid(logits) if is_binary else candelabra.softmax(logits, dim=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Convert probabilities to logits, the inverse of `logits_to_probs`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions.utils import probs_to_logits
    >>> probs_to_logits(candelabra.tensor([0.5]), is_binary=True)
    tensor([0.])
    """
    clamped = clamp_probs(probs)
    return candelabra.log(clamped) - candelabra.log1p(-clamped) if is_binary else candelabra.log(clamped)


def multivariate_gammaln(a: Tensor, p: int) -> Tensor:
    """Return the log of the `p`-dimensional gamma function.

    ``p(p-1)/4 log(pi) + sum of lgamma(a - i/2) for i < p``.
    """
    shifts = candelabra.arange(p, dtype=a.dtype, device=a.device) / 2
    return candelabra.lgamma(a.unsqueeze(-1) - shifts).sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


class lazy_property:
    """A property that is computed on first access and then stored as an instance attribute."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.__name__ = wrapped.__name__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return _LazyOfClass(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _LazyOfClass(property):
    """Class attribute of a lazy property, which identifies it and carries its docstring."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        super().__init__(wrapped)


def is_lazy(owner: type, name: str) -> bool:
    """Return whether an attribute of a class is a lazy property."""
    return isinstance(getattr(owner, name, None), _LazyOfClass)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Flatten lower triangles (..., D, D), up to diagonal `diag`, into vectors in row-major order.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions.utils import tril_matrix_to_vec
    >>> tril_matrix_to_vec(candelabra.tensor([[1.0, 0.0], [2.0, 3.0]]))
    tensor([1., 2., 3.])
    """
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside valid range ({-n}, {n - 1})")
    rows, columns = candelabra.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Convert vectors (..., N) to lower triangular matrices, the inverse of `tril_matrix_to_vec`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions.utils import vec_to_tril_matrix
    >>> vec_to_tril_matrix(candelabra.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    length = vec.shape[-1]
    # n(n + 1) / 2 elements on and below the main diagonal, corrected for the diagonals up to `diag`
    n = (-(1 + 2 * diag) + math.sqrt((1 + 2 * diag) ** 2 + 8 * length + 4 * abs(diag) * (diag + 1))) / 2
    if not round(n) - n == 0:
        raise ValueError(
            f"The size of last dimension is {length} which cannot be expressed as the lower triangular part of a square D x D matrix."
        )
    size = round(n)
    rows, columns = candelabra.tril_indices(size, size, diag, device=vec.device)
    places = candelabra.zeros(size * size, dtype=candelabra.int64, device=vec.device)
    inside = candelabra.zeros(size * size, dtype=candelabra.bool, device=vec.device)
    flat = rows * size + columns
    places[flat] = candelabra.arange(length, device=vec.device)
    inside[flat] = True
    spread = candelabra.where(inside, vec.index_select(-1, places), 0)
    return spread.reshape((*vec.shape[:-1], size, size))
