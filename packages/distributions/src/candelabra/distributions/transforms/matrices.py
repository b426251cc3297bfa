"""Transforms onto triangular and positive definite matrices."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Size, Tensor

from .. import constraints
from ..utils import softplus, tril_matrix_to_vec, vec_to_tril_matrix
from .base import Transform


class LowerCholeskyTransform(Transform):
    """Map square matrices to lower triangular matrices with a positive diagonal.

    Takes the exponential of the diagonal, and sets elements above it to zero.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import LowerCholeskyTransform
    >>> LowerCholeskyTransform()(candelabra.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Map square matrices to positive definite ones, with `LowerCholeskyTransform` and ``L L^T``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import PositiveDefiniteTransform
    >>> PositiveDefiniteTransform()(candelabra.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        inverse: Tensor = LowerCholeskyTransform().inv(candelabra.linalg.cholesky(y))
        return inverse


class CorrCholeskyTransform(Transform):
    """Map D(D-1)/2 numbers to the Cholesky factor of a correlation matrix, with rows of norm 1.

    Element (i, j) below the diagonal is ``r_ij = tanh(x_ij)`` times the remaining norm of row i
    after its previous elements. The diagonal is the norm that remains at the end. Source:
    Lewandowski, Kurowicka and Joe, 2009 (canonical partial correlations), as in the Stan Reference
    Manual.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import CorrCholeskyTransform
    >>> CorrCholeskyTransform()(candelabra.zeros(1))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = candelabra.finfo(x.dtype).eps
        r = vec_to_tril_matrix(candelabra.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r * r).sqrt().cumprod(-1)
        before = candelabra.cat([left.new_ones((*left.shape[:-1], 1)), left[..., :-1]], -1)
        return (r + candelabra.eye(r.shape[-1], dtype=r.dtype, device=r.device)) * before

    def _inverse(self, y: Tensor) -> Tensor:
        left = 1 - (y * y).cumsum(-1)
        before = candelabra.cat([left.new_ones((*left.shape[:-1], 1)), left[..., :-1]], -1)
        r = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(before, diag=-1).sqrt()
        return candelabra.atanh(r)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # Below the diagonal, each element is r times the square root of 1 minus the squares before
        # it.
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        slopes = 2 * (math.log(2.0) - x - softplus(-2 * x))
        return 0.5 * left.log().sum(-1) + slopes.sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        count = shape[-1]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size(shape[:-1]) + Size((size, size))

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return Size(shape[:-2]) + Size((shape[-1] * (shape[-1] - 1) // 2,))
