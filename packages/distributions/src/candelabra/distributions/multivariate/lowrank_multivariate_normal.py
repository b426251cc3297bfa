"""The multivariate normal distribution with a low-rank plus diagonal covariance."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Size, Tensor

from .. import constraints
from ..distribution import Distribution
from ..utils import lazy_property, standard_normal
from .multivariate_normal import batch_mahalanobis


def capacitance_tril(factor: Tensor, diag: Tensor) -> Tensor:
    """Return the Cholesky factor of the capacitance matrix ``1 + W^T D^-1 W``."""
    small = factor.mT @ (factor / diag.unsqueeze(-1))
    return candelabra.linalg.cholesky(small + candelabra.eye(factor.shape[-1], dtype=small.dtype, device=small.device))


def lowrank_logdet(diag: Tensor, capacitance: Tensor) -> Tensor:
    """Return ``log det(W W^T + D)``, by the matrix determinant lemma."""
    return 2 * capacitance.diagonal(dim1=-2, dim2=-1).log().sum(-1) + diag.log().sum(-1)


def lowrank_mahalanobis(factor: Tensor, diag: Tensor, difference: Tensor, capacitance: Tensor) -> Tensor:
    """Return ``x^T (W W^T + D)^-1 x``, by the Woodbury identity."""
    weighted = difference / diag
    projected = (factor.mT @ weighted.unsqueeze(-1)).squeeze(-1)
    return (difference * weighted).sum(-1) - batch_mahalanobis(capacitance, projected)


class LowRankMultivariateNormal(Distribution):
    """The multivariate normal distribution with covariance ``W W^T + D``.

    It is efficient if W has few columns.

    Parameters
    ----------
    loc : Tensor
        (..., n) mean.
    cov_factor : Tensor
        (..., n, r) matrix W.
    cov_diag : Tensor
        (..., n) positive diagonal of D.

    Raises
    ------
    ValueError
        If the shapes are incompatible.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import LowRankMultivariateNormal
    >>> LowRankMultivariateNormal(candelabra.zeros(2), candelabra.ones(2, 1), candelabra.ones(2)).variance
    tensor([2., 2.])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _expandable = {
        "loc": 1, "cov_factor": 2, "cov_diag": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2,
    }  # fmt: skip

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {tuple(event_shape)}")
        try:
            batch_shape = candelabra.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as problem:
            raise ValueError(
                f"Incompatible batch shapes: loc {tuple(loc.shape)}, cov_factor {tuple(cov_factor.shape)}, cov_diag {tuple(cov_diag.shape)}"
            ) from problem
        self.loc = loc.expand(batch_shape + event_shape)
        self.cov_factor = cov_factor.expand(batch_shape + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch_shape + event_shape)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = capacitance_tril(cov_factor, cov_diag)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))

    def _matrix_shape(self) -> Size:
        return Size((*self._batch_shape, *self._event_shape, *self._event_shape))

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        sums = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return sums.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        # Factor D^(1/2) (1 + D^(-1/2) W W^T D^(-1/2)) D^(1/2), whose middle factor is well
        # conditioned.
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        middle = scaled @ scaled.mT
        middle = middle + candelabra.eye(middle.shape[-1], dtype=middle.dtype, device=middle.device)
        return (root * candelabra.linalg.cholesky(middle)).expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        factor = self._unbroadcasted_cov_factor
        return (factor @ factor.mT + candelabra.diag_embed(self._unbroadcasted_cov_diag)).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix, by the Woodbury identity."""
        weighted = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        shape = candelabra.broadcast_shapes(self._capacitance_tril.shape[:-2], weighted.shape[:-2])
        half = candelabra.linalg.solve_triangular(
            self._capacitance_tril.expand((*shape, *self._capacitance_tril.shape[-2:])),
            weighted.expand((*shape, *weighted.shape[-2:])),
            upper=False,
        )
        return (candelabra.diag_embed(self._unbroadcasted_cov_diag.reciprocal()) - half.mT @ half).expand(
            self._matrix_shape()
        )

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        narrow = standard_normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc.dtype, self.loc.device)
        wide = standard_normal(shape, self.loc.dtype, self.loc.device)
        moved = (self._unbroadcasted_cov_factor @ narrow.unsqueeze(-1)).squeeze(-1)
        return self.loc + moved + self._unbroadcasted_cov_diag.sqrt() * wide

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = lowrank_mahalanobis(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, value - self.loc, self._capacitance_tril
        )
        log_det = lowrank_logdet(self._unbroadcasted_cov_diag, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + distance)

    def entropy(self) -> Tensor:
        log_det = lowrank_logdet(self._unbroadcasted_cov_diag, self._capacitance_tril)
        return (0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det)).expand(self._batch_shape)
