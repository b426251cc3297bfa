"""The Kumaraswamy distribution."""

from __future__ import annotations

import candelabra
from candelabra import Tensor, nan

from .. import constraints
from ..combined.transformed_distribution import TransformedDistribution
from ..transforms import AffineTransform, PowerTransform
from ..utils import broadcast_all, euler_constant
from .uniform import Uniform


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution on (0, 1), with CDF ``1 - (1 - x^a)^b``.

    Parameters
    ----------
    concentration1 : Tensor or float
        The parameter a.
    concentration0 : Tensor or float
        The parameter b.

    Examples
    --------
    >>> from candelabra.distributions import Kumaraswamy
    >>> Kumaraswamy(1.0, 1.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _expandable = {"concentration1": 0, "concentration0": 0}

    def __init__(
        self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            candelabra.zeros_like(self.concentration0),
            candelabra.ones_like(self.concentration0),
            validate_args=validate_args,
        )
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        """Return the moment ``E[x^n] = b B(1 + n / a, b)``."""
        a, b = self.concentration1, self.concentration0
        first = 1 + n / a
        return b * (candelabra.lgamma(first) + candelabra.lgamma(b) - candelabra.lgamma(first + b)).exp()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -candelabra.expm1(self.concentration0 * candelabra.log1p(-value.pow(self.concentration1)))

    def icdf(self, value: Tensor) -> Tensor:
        return (-candelabra.expm1(candelabra.log1p(-value) / self.concentration0)).pow(self.concentration1.reciprocal())

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        log_mode = a.reciprocal() * ((a - 1).log() - (a * b - 1).log())
        return log_mode.exp().masked_fill((b < 1) | (a < 1), nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = candelabra.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
