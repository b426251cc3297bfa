"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Size, Tensor

from .. import constraints
from ..distribution import Distribution
from ..utils import lazy_property, standard_normal


def batch_mahalanobis(factor: Tensor, difference: Tensor) -> Tensor:
    """Return ``|L^-1 x|^2`` for L (..., n, n) and x (..., n) with batches that broadcast."""
    shape = candelabra.broadcast_shapes(factor.shape[:-2], difference.shape[:-1])
    if math.prod(factor.shape[:-2]) == 1:
        # A single factor: solve once, with all vectors as columns.
        columns = difference.reshape(-1, difference.shape[-1]).mT
        solved = candelabra.linalg.solve_triangular(factor.reshape(factor.shape[-2:]), columns, upper=False)
        return solved.pow(2).sum(0).reshape(difference.shape[:-1]).expand(shape)
    solved = candelabra.linalg.solve_triangular(
        factor.expand((*shape, *factor.shape[-2:])),
        difference.expand((*shape, difference.shape[-1])).unsqueeze(-1),
        upper=False,
    )
    return solved.squeeze(-1).pow(2).sum(-1)


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """Return the Cholesky factor of the inverse of a precision matrix.

    The Cholesky factor of P with reversed rows and columns, reversed and transposed, is the inverse
    of the result.
    """
    factor = candelabra.linalg.cholesky(candelabra.flip(precision, (-2, -1)))
    inverse = candelabra.flip(factor, (-2, -1)).mT
    identity = candelabra.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return candelabra.linalg.solve_triangular(inverse, identity.expand(precision.shape), upper=False)


class MultivariateNormal(Distribution):
    """The multivariate normal distribution.

    Parameters
    ----------
    loc : Tensor
        (..., n) mean.
    covariance_matrix, precision_matrix, scale_tril : Tensor
        (..., n, n) covariance, its inverse, or its lower Cholesky factor. Exactly one is required.
        `scale_tril` avoids a factorization.

    Raises
    ------
    ValueError
        If not exactly one matrix is given, or the shapes are incompatible.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import MultivariateNormal
    >>> MultivariateNormal(candelabra.zeros(2), candelabra.eye(2)).log_prob(candelabra.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _expandable = {"loc": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {"covariance_matrix": covariance_matrix, "scale_tril": scale_tril, "precision_matrix": precision_matrix}
        matrices = {name: matrix for name, matrix in given.items() if matrix is not None}
        if len(matrices) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = matrices.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = candelabra.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch_shape + matrix.shape[-2:]))
        self.loc = loc.expand(batch_shape + loc.shape[-1:])
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = candelabra.linalg.cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = precision_to_scale_tril(matrix)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril

    def _matrix_shape(self) -> Size:
        return Size((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        return candelabra.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._matrix_shape())

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        draws = standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ draws.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self) -> Tensor:
        result = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return result.expand(self._batch_shape)
