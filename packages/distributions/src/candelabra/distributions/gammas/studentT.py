"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Size, Tensor, inf, nan

from .. import constraints
from ..distribution import Distribution
from ..utils import broadcast_all, standard_normal
from .chi2 import Chi2


class StudentT(Distribution):
    """Student's t distribution with location and scale.

    Parameters
    ----------
    df : Tensor or float
        Degrees of freedom.
    loc : Tensor or float
        The location.
    scale : Tensor or float
        The scale.

    Examples
    --------
    >>> from candelabra.distributions import StudentT
    >>> StudentT(4.0).variance
    tensor(2.)
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _expandable = {"df": 0, "loc": 0, "scale": 0}

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new._chi2 = self._chi2.expand(batch_shape)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        return finite.masked_fill(self.df <= 2, inf).masked_fill(self.df <= 1, nan)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = standard_normal(shape, self.df.dtype, self.df.device)
        return self.loc + self.scale * x * candelabra.rsqrt(self._chi2.rsample(sample_shape) / self.df)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        norm = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + candelabra.lgamma(0.5 * self.df)
            - candelabra.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * candelabra.log1p(y**2.0 / self.df) - norm

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = candelabra.lgamma(half) + math.lgamma(0.5) - candelabra.lgamma(more)
        return (
            self.scale.log()
            + more * (candelabra.digamma(more) - candelabra.digamma(half))
            + 0.5 * self.df.log()
            + log_beta
        )
