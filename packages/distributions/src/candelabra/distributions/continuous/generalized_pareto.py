"""The generalized Pareto distribution."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Size, Tensor, inf, nan

from .. import constraints
from ..distribution import Distribution
from ..utils import broadcast_all


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution of exceedances over a threshold.

    Its survival function is ``(1 + c z)^(-1 / c)`` with ``z = (x - loc) / scale``.

    Parameters
    ----------
    loc : Tensor or float
        The threshold.
    scale : Tensor or float
    concentration : Tensor or float
        The shape c: 0 gives the exponential distribution, -1 the uniform one, and c > 0 heavy
        tails.

    Examples
    --------
    >>> from candelabra.distributions import GeneralizedPareto
    >>> GeneralizedPareto(0.0, 1.0, 0.5).mean
    tensor(2.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True
    _expandable = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(
            self.loc, candelabra.where(self.concentration < 0, self.loc - self.scale / self.concentration, inf)
        )

    def _zero(self) -> Tensor:
        return candelabra.isclose(self.concentration, candelabra.zeros_like(self.concentration))

    def _safe(self) -> Tensor:
        return candelabra.where(self._zero(), 1.0, self.concentration)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(candelabra.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        power = 1 / self._safe() + candelabra.ones_like(z)
        heavy = candelabra.where(power == 0, power, power * candelabra.log1p(self._safe() * z))
        return -self.scale.log() - candelabra.where(self._zero(), z, heavy)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return the log probability of exceeding `value`."""
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return candelabra.where(self._zero(), -z, -candelabra.log1p(self._safe() * z) / self._safe())

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return the log of the cumulative distribution function at `value`."""
        return candelabra.log1p(-candelabra.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return -candelabra.expm1(self.log_survival_function(value))

    def icdf(self, value: Tensor) -> Tensor:
        log_left = candelabra.log1p(-value)
        heavy = self.loc + self.scale / self._safe() * candelabra.expm1(-self._safe() * log_left)
        return candelabra.where(self._zero(), self.loc - self.scale * log_left, heavy)

    @property
    def mean(self) -> Tensor:
        exists = self.concentration < 1
        safe = candelabra.where(exists, self.concentration, 0.5)
        return candelabra.where(exists, self.loc + self.scale / (1 - safe), nan)

    @property
    def variance(self) -> Tensor:
        exists = self.concentration < 0.5
        safe = candelabra.where(exists, self.concentration, 0.25)
        return candelabra.where(exists, self.scale**2 / ((1 - safe) ** 2 * (1 - 2 * safe)), nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def entropy(self) -> Tensor:
        return (candelabra.log(self.scale) + self.concentration + 1).expand(self._batch_shape)
