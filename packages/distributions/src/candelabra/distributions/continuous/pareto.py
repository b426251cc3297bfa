"""The Pareto distribution."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor, inf

from .. import constraints
from ..combined.transformed_distribution import TransformedDistribution
from ..transforms import AffineTransform, ExpTransform
from ..utils import broadcast_all
from .exponential import Exponential


class Pareto(TransformedDistribution):
    """The Pareto distribution of type 1, with survival function ``(scale / x)^alpha``.

    Parameters
    ----------
    scale : Tensor or float
        The minimum.
    alpha : Tensor or float
        The tail exponent.

    Examples
    --------
    >>> from candelabra.distributions import Pareto
    >>> Pareto(1.0, 3.0).mean
    tensor(1.5000)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    _expandable = {"scale": 0, "alpha": 0}

    def __init__(self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(loc=0, scale=self.scale)], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)  # the mean is infinite for alpha <= 1
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        finite = self.scale.pow(2) * self.alpha / ((self.alpha - 1).pow(2) * (self.alpha - 2))
        return candelabra.where(self.alpha > 2, finite, inf)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
