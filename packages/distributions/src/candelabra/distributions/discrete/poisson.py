"""The Poisson distribution."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Size, Tensor, no_grad

from .. import constraints
from ..exp_family import ExponentialFamily
from ..utils import broadcast_all


class Poisson(ExponentialFamily):
    """The Poisson distribution with probabilities ``rate^k exp(-rate) / k!``.

    Parameters
    ----------
    rate : Tensor or float
        The mean, which must not be negative.

    Examples
    --------
    >>> from candelabra.distributions import Poisson
    >>> Poisson(4.0).variance
    tensor(4.)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _expandable = {"rate": 0}

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            return candelabra.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return candelabra.xlogy(value, rate) - rate - candelabra.lgamma(value + 1)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (candelabra.log(self.rate),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return candelabra.exp(x)
