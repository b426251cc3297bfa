"""The exponential distribution."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Size, Tensor

from .. import constraints
from ..exp_family import ExponentialFamily
from ..utils import broadcast_all


class Exponential(ExponentialFamily):
    """The exponential distribution with density ``rate * exp(-rate x)``.

    Parameters
    ----------
    rate : Tensor or float
        The rate, 1 / mean.

    Examples
    --------
    >>> from candelabra.distributions import Exponential
    >>> Exponential(4.0).mean
    tensor(0.2500)
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _expandable = {"rate": 0}

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return candelabra.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return candelabra.empty(shape, dtype=self.rate.dtype, device=self.rate.device).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -candelabra.expm1(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -candelabra.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - candelabra.log(self.rate)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (-self.rate,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return -candelabra.log(-x)
