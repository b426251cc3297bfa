"""The LKJ distribution of Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Size, Tensor, no_grad

from .. import constraints
from ..distribution import Distribution
from ..gammas.beta import Beta
from ..utils import broadcast_all, multivariate_gammaln, standard_normal


class LKJCholesky(Distribution):
    """The LKJ distribution of Cholesky factors of correlation matrices.

    The density of the correlation matrix ``M = L L^T`` is proportional to ``det(M)^(concentration -
    1)``. Draws use the onion method. Source: Lewandowski, Kurowicka and Joe, "Generating random
    correlation matrices based on vines and extended onion method", 2009, sections 3.2 and 4.

    Parameters
    ----------
    dim : int
        Number of rows, at least 2.
    concentration : Tensor or float
        1 is uniform over correlation matrices. Larger values concentrate near the identity.

    Raises
    ------
    ValueError
        If `dim` is below 2.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import LKJCholesky
    >>> LKJCholesky(2, 1.0).log_prob(candelabra.eye(2))
    tensor(-0.6931)
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _expandable = {"concentration": 0}

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.size(), Size((dim, dim)), validate_args)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new.dim = self.dim

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            # Row i is a random direction of i numbers times the square root of a beta variable. The
            # diagonal element completes the row to norm 1.
            dtype, device = self.concentration.dtype, self.concentration.device
            before = candelabra.arange(self.dim - 1, dtype=dtype, device=device)
            marginal = self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 2)
            squares = Beta(
                0.5 * (before + 1) + candelabra.zeros_like(marginal), marginal - 0.5 * before, validate_args=False
            )
            square = squares.sample(sample_shape)
            square = candelabra.cat([square.new_zeros((*square.shape[:-1], 1)), square], -1)
            direction = standard_normal(self._extended_shape(sample_shape), dtype, device).tril(-1)
            length = candelabra.linalg.vector_norm(direction, dim=-1, keepdim=True)
            direction = direction / candelabra.where(length > 0, length, 1.0)
            below = square.sqrt().unsqueeze(-1) * direction
            left = (1 - below.pow(2).sum(-1)).clamp(min=candelabra.finfo(dtype).tiny)
            return below + candelabra.diag_embed(left.sqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # det(M) is the product of the squared diagonal. The Jacobian of L to M adds D - i to the
        # exponent of row i.
        diagonal = value.diagonal(dim1=-2, dim2=-1)[..., 1:]
        rows = candelabra.arange(2, self.dim + 1, dtype=self.concentration.dtype, device=self.concentration.device)
        exponents = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - rows
        density = (exponents * diagonal.log()).sum(-1)
        less = self.dim - 1
        alpha = self.concentration + 0.5 * less
        norm = (
            0.5 * less * math.log(math.pi) + multivariate_gammaln(alpha - 0.5, less) - candelabra.lgamma(alpha) * less
        )
        return density - norm
