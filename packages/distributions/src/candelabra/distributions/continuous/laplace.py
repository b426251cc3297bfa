"""The Laplace distribution."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Size, Tensor

from .. import constraints
from ..distribution import Distribution
from ..utils import broadcast_all


class Laplace(Distribution):
    """The Laplace (double exponential) distribution.

    Parameters
    ----------
    loc : Tensor or float
        The mean.
    scale : Tensor or float
        The scale, which is the mean absolute deviation.

    Examples
    --------
    >>> from candelabra.distributions import Laplace
    >>> Laplace(0.0, 1.0).variance
    tensor(2.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _expandable = {"loc": 0, "scale": 0}

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = candelabra.finfo(self.loc.dtype).eps
        u = candelabra.empty(shape, dtype=self.loc.dtype, device=self.loc.device).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * candelabra.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -candelabra.log(2 * self.scale) - candelabra.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = value - self.loc
        return 0.5 - 0.5 * distance.sign() * candelabra.expm1(-distance.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        side = value - 0.5
        return self.loc - self.scale * side.sign() * candelabra.log1p(-2 * side.abs())

    def entropy(self) -> Tensor:
        return 1 + candelabra.log(2 * self.scale)
