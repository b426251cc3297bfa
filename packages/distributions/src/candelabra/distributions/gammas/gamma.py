"""The gamma distribution."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Size, Tensor, special

from .. import constraints
from ..exp_family import ExponentialFamily
from ..utils import broadcast_all
from .gamma_draws import log_gamma_draw


class Gamma(ExponentialFamily):
    """The gamma distribution with density ``rate^a x^(a-1) exp(-rate x) / Gamma(a)``.

    Parameters
    ----------
    concentration : Tensor or float
        The shape parameter a.
    rate : Tensor or float
        The rate, 1 / scale.

    Notes
    -----
    Draws are differentiable in both parameters, by implicit differentiation for the shape
    (Figurnov, Mohamed and Mnih, 2018).

    Examples
    --------
    >>> from candelabra.distributions import Gamma
    >>> Gamma(3.0, 2.0).mean
    tensor(1.5000)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _expandable = {"concentration": 0, "rate": 0}

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        log_draw = log_gamma_draw(self.concentration.expand(self._extended_shape(sample_shape)))
        value = log_draw.exp() / self.rate
        # Clamp draws to positive values, because the density can be infinite at 0.
        known, tiny = value.detach(), candelabra.finfo(value.dtype).tiny
        return value + candelabra.where(known < tiny, tiny - known, 0.0)

    def log_prob(self, value: Tensor) -> Tensor:
        value = candelabra.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        return (
            candelabra.xlogy(self.concentration, self.rate)
            + candelabra.xlogy(self.concentration - 1, value)
            - self.rate * value
            - candelabra.lgamma(self.concentration)
        )

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return special.gammainc(*broadcast_all(self.concentration, self.rate * value))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - candelabra.log(self.rate) + candelabra.lgamma(a) + (1.0 - a) * candelabra.digamma(a)

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return candelabra.lgamma(x + 1) + (x + 1) * candelabra.log(-y.reciprocal())
