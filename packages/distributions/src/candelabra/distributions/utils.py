"""Parameters brought to one shape, probabilities and logits, triangular matrices and vectors: the
names of ``torch.distributions.utils``.
"""

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
    """Make tensors of one shape of numbers and tensors; numbers get dtype and device of the first
    tensor, or the default dtype.

    Raises
    ------
    ValueError
        For what is neither.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions.utils import broadcast_all
    >>> broadcast_all(candelabra.zeros(2), 1.0)
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    if not all(isinstance(value, Tensor | Number) for value in values):
        raise ValueError("Input arguments must all be instances of Number or candelabra.Tensor.")
    tensors = [value for value in values if isinstance(value, Tensor)]
    if len(tensors) != len(values):
        if tensors:
            dtype, device = tensors[0].dtype, tensors[0].device
        else:
            dtype, device = candelabra.get_default_dtype(), None
        values = tuple(
            value if isinstance(value, Tensor) else candelabra.tensor(value, dtype=dtype, device=device)
            for value in values
        )
    return tuple(candelabra.broadcast_tensors(*values))


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """Sum over the last `dims` dimensions."""
    return value if dims == 0 else value.sum(tuple(range(-dims, 0)))


def standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Draw from the normal distribution of mean 0 and variance 1."""
    return candelabra.randn(tuple(shape), dtype=dtype, device=device)


def open_uniform(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Draw uniformly from between 0 and 1, neither of which is met."""
    info = candelabra.finfo(dtype)
    return candelabra.rand(tuple(shape), dtype=dtype, device=device).clamp_(min=info.tiny, max=1 - info.eps)


def softplus(x: Tensor) -> Tensor:
    """``log(1 + exp(x))``, exact for large x."""
    return candelabra.logaddexp(x, candelabra.zeros_like(x))


def log_sigmoid(x: Tensor) -> Tensor:
    """``log(1 / (1 + exp(-x)))``."""
    return -softplus(-x)


def clamp_probs(probs: Tensor) -> Tensor:
    """Keep probabilities away from 0 and 1 by the precision of their dtype, so that their logits
    are finite.
    """
    eps = candelabra.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Make probabilities of logits: one each (log odds), or a row of them (log probabilities up to
    a constant).
    """
    return candelabra.sigmoid(logits) if is_binary else candelabra.softmax(logits, dim=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Make logits of probabilities, the other way of `logits_to_probs`.

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
    """The logarithm of the gamma function of `p` dimensions: ``p(p-1)/4 log(pi) + sum of lgamma(a -
    i/2) for i < p``.
    """
    shifts = candelabra.arange(p, dtype=a.dtype, device=a.device) / 2
    return candelabra.lgamma(a.unsqueeze(-1) - shifts).sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


class lazy_property:
    """A property that is computed when it is first asked for, and then is an ordinary attribute."""

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
    """What a class has under the name of a lazy property: known as one, and documented like one."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        super().__init__(wrapped)


def is_lazy(owner: type, name: str) -> bool:
    """Whether a class computes this attribute when it is first asked for."""
    return isinstance(getattr(owner, name, None), _LazyOfClass)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Put the elements of triangular matrices (..., D, D), up to diagonal number `diag`, into
    vectors in row-major order.

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
    """Put vectors (..., N) into triangular matrices, the other way of `tril_matrix_to_vec`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions.utils import vec_to_tril_matrix
    >>> vec_to_tril_matrix(candelabra.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    length = vec.shape[-1]
    # n(n + 1) / 2 elements on and below the main diagonal, and those between it and `diag`
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
