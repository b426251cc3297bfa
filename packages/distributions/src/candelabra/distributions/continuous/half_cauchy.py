"""The half-Cauchy distribution."""

from __future__ import annotations

import math

import candelabra
from candelabra import Tensor, inf

from .. import constraints
from ..combined.transformed_distribution import TransformedDistribution
from ..transforms import AbsTransform
from .cauchy import Cauchy


class HalfCauchy(TransformedDistribution):
    """The half-Cauchy distribution: ``|x|`` for a Cauchy variable x with location 0.

    Parameters
    ----------
    scale : Tensor or float
        The scale of x.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import HalfCauchy
    >>> HalfCauchy(1.0).cdf(candelabra.tensor(1.0))
    tensor(0.5000)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Cauchy
    _expandable = {}

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of x."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return candelabra.full(self._extended_shape(), inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def mode(self) -> Tensor:
        return candelabra.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value = candelabra.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return candelabra.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
