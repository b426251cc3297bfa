"""The inverse gamma distribution."""

from __future__ import annotations

import candelabra
from candelabra import Tensor, inf

from .. import constraints
from ..combined.transformed_distribution import TransformedDistribution
from ..gammas.gamma import Gamma
from ..transforms import PowerTransform
from ..utils import broadcast_all


class InverseGamma(TransformedDistribution):
    """The inverse gamma distribution: ``1 / x`` for a gamma variable x.

    Parameters
    ----------
    concentration, rate : Tensor or float
        Concentration and rate of x.

    Examples
    --------
    >>> from candelabra.distributions import InverseGamma
    >>> InverseGamma(3.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma
    _expandable = {}

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        concentration, rate = broadcast_all(concentration, rate)
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(
            base,
            PowerTransform(-candelabra.ones((), dtype=rate.dtype, device=rate.device)),
            validate_args=validate_args,
        )

    @property
    def concentration(self) -> Tensor:
        """The shape of x."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of x."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        result = self.rate / (self.concentration - 1)
        return candelabra.where(self.concentration > 1, result, inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        result = self.rate.square() / ((self.concentration - 1).square() * (self.concentration - 2))
        return candelabra.where(self.concentration > 2, result, inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
