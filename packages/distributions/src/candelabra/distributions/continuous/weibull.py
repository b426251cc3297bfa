"""The Weibull distribution."""

from __future__ import annotations

import candelabra
from candelabra import Tensor

from .. import constraints
from ..combined.transformed_distribution import TransformedDistribution
from ..transforms import AffineTransform, PowerTransform
from ..utils import broadcast_all, euler_constant
from .exponential import Exponential


class Weibull(TransformedDistribution):
    """The Weibull distribution, with survival function ``exp(-(x / scale)^k)``.

    Parameters
    ----------
    scale : Tensor or float
    concentration : Tensor or float
        The shape k: the failure rate decreases with time for k < 1, and increases for k > 1.

    Examples
    --------
    >>> from candelabra.distributions import Weibull
    >>> Weibull(2.0, 1.0).mean
    tensor(2.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _expandable = {"scale": 0, "concentration": 0, "concentration_reciprocal": 0}

    def __init__(self, scale: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(candelabra.ones_like(self.scale), validate_args=validate_args)
        transforms = [PowerTransform(exponent=self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * candelabra.exp(candelabra.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Tensor:
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self) -> Tensor:
        first = candelabra.lgamma(1 + self.concentration_reciprocal)
        second = candelabra.lgamma(1 + 2 * self.concentration_reciprocal)
        return self.scale.pow(2) * (second.exp() - (2 * first).exp())

    def entropy(self) -> Tensor:
        rate = self.concentration_reciprocal
        return euler_constant * (1 - rate) + candelabra.log(self.scale * rate) + 1
