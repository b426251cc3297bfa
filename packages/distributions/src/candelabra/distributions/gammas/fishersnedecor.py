"""The Fisher–Snedecor distribution."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Size, Tensor, nan

from .. import constraints
from ..distribution import Distribution
from ..utils import broadcast_all
from .gamma import Gamma


class FisherSnedecor(Distribution):
    """The F distribution of the ratio of two chi-squared variables.

    Each variable is divided by its degrees of freedom.

    Parameters
    ----------
    df1, df2 : Tensor or float
        Degrees of freedom of the numerator and the denominator.

    Examples
    --------
    >>> from candelabra.distributions import FisherSnedecor
    >>> FisherSnedecor(2.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _expandable = {"df1": 0, "df2": 0}

    def __init__(self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new._gamma1 = self._gamma1.expand(batch_shape)
        new._gamma2 = self._gamma2.expand(batch_shape)

    @property
    def mean(self) -> Tensor:
        return self.df2.masked_fill(self.df2 <= 2, nan) / (self.df2 - 2)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, nan)

    @property
    def variance(self) -> Tensor:
        df2 = self.df2.masked_fill(self.df2 <= 4, nan)
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        above = self._gamma1.rsample(sample_shape).view(shape)
        below = self._gamma2.rsample(sample_shape).view(shape)
        tiny = candelabra.finfo(below.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        return (
            candelabra.lgamma(half1 + half2)
            - candelabra.lgamma(half1)
            - candelabra.lgamma(half2)
            + half1 * ratio.log()
            + (half1 - 1) * candelabra.log(value)
            - (half1 + half2) * candelabra.log1p(ratio * value)
        )
