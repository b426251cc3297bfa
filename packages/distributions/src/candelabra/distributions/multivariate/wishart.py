"""The Wishart distribution."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

import candelabra
from candelabra import _C, Size, Tensor, nan

from .. import constraints
from ..exp_family import ExponentialFamily
from ..gammas.chi2 import Chi2
from ..utils import lazy_property, multivariate_gammaln, standard_normal
from .multivariate_normal import precision_to_scale_tril


def multivariate_digamma(a: Tensor, p: int) -> Tensor:
    """Return the derivative of the log of the `p`-dimensional gamma function."""
    shifts = candelabra.arange(p, dtype=a.dtype, device=a.device) / 2
    return candelabra.digamma(a.unsqueeze(-1) - shifts).sum(-1)


class Wishart(ExponentialFamily):
    """The Wishart distribution of the sum of `df` outer products of zero-mean normal vectors.

    Parameters
    ----------
    df : Tensor or float
        Degrees of freedom, greater than n - 1.
    covariance_matrix, precision_matrix, scale_tril : Tensor
        (..., n, n) covariance of the vectors, its inverse, or its lower Cholesky factor. Exactly
        one is required.

    Raises
    ------
    AssertionError
        If not exactly one matrix is given.
    ValueError
        If a matrix has too few dimensions or `df` is too low.

    Notes
    -----
    Draws use the Bartlett decomposition. Source: Odell and Feiveson, "A numerical procedure to
    generate a sample covariance matrix", 1966.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import Wishart
    >>> Wishart(candelabra.tensor(3.0), candelabra.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _expandable = {
        "df": 0, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2, "_unbroadcasted_scale_tril": 2,
    }  # fmt: skip

    @property
    def arg_constraints(self) -> dict[str, Any]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        matrices = {name: matrix for name, matrix in given.items() if matrix is not None}
        if len(matrices) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = matrices.items()
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if isinstance(df, Number):
            batch_shape = matrix.shape[:-2]
            self.df = candelabra.tensor(float(df), dtype=matrix.dtype, device=matrix.device).expand(batch_shape)  # type: ignore[arg-type]
        else:
            batch_shape = candelabra.broadcast_shapes(matrix.shape[:-2], df.shape)  # type: ignore[union-attr]
            self.df = df.expand(batch_shape)  # type: ignore[union-attr]
        event_shape = matrix.shape[-2:]
        if bool((self.df <= event_shape[-1] - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}.")
        setattr(self, name, matrix.expand(batch_shape + event_shape))
        if bool((self.df < event_shape[-1]).any()):
            _C.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
            )
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = candelabra.linalg.cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = precision_to_scale_tril(matrix)

    @lazy_property
    def _dist_chi2(self) -> Chi2:
        rows = candelabra.arange(self._event_shape[-1], dtype=self.df.dtype, device=self.df.device)
        return Chi2(self.df.unsqueeze(-1) - rows, validate_args=False)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix of the vectors."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        return candelabra.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._batch_shape + self._event_shape)

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[-1] - 1
        return factor.masked_fill(factor <= 0, nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (covariance.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett(self, sample_shape: Any) -> Tensor:
        """Draw samples by the Bartlett decomposition.

        The factor has square roots of chi-squared variables on the diagonal and normal variables
        below it.
        """
        tiny = candelabra.finfo(self.df.dtype).eps
        roots = self._dist_chi2.rsample(sample_shape).sqrt().clamp(min=tiny)
        shape = self._extended_shape(sample_shape)
        noise = standard_normal(shape, roots.dtype, roots.device).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (noise + candelabra.diag_embed(roots))
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = Size(), max_try_correction: int | None = None) -> Tensor:
        """Draw samples that are differentiable in the parameters.

        Parameters
        ----------
        sample_shape : sequence of int
            Shape of the sample.
        max_try_correction : int, optional
            Number of attempts to redraw matrices that are numerically singular. Defaults to 3, or
            to 10 if `df` is less than n.
        """
        if max_try_correction is None:
            max_try_correction = 3 if bool((self.df >= self._event_shape[-1]).all()) else 10
        sample = self._bartlett(sample_shape)
        singular = ~self.support.check(sample.detach())
        if bool(singular.any()):
            _C.warn("Singular sample detected.")
            for _ in range(max_try_correction):
                again = self._bartlett(sample_shape)
                sample = candelabra.where(singular[..., None, None], again, sample)
                singular = ~self.support.check(sample.detach())
                if not bool(singular.any()):
                    break
        return sample

    def _log_det(self) -> Tensor:
        """Return half the log determinant of twice the covariance."""
        factor = self._unbroadcasted_scale_tril
        return self._event_shape[-1] * math.log(2.0) / 2 + factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        p, half = self._event_shape[-1], self.df / 2
        trace = candelabra.cholesky_solve(value, self._unbroadcasted_scale_tril).diagonal(dim1=-2, dim2=-1).sum(-1)
        log_det = candelabra.linalg.slogdet(value)[1]
        return -self.df * self._log_det() - multivariate_gammaln(half, p) + (self.df - p - 1) / 2 * log_det - trace / 2

    def entropy(self) -> Tensor:
        p, half = self._event_shape[-1], self.df / 2
        return (
            (p + 1) * self._log_det()
            + multivariate_gammaln(half, p)
            - (self.df - p - 1) / 2 * multivariate_digamma(half, p)
            + self.df * p / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (-candelabra.linalg.slogdet(-2 * x)[1] + math.log(2.0) * p) + multivariate_gammaln(half, p)
