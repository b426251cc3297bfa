"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Size, Tensor, no_grad

from .. import constraints
from ..distribution import Distribution
from ..gammas.gamma import Gamma
from ..utils import broadcast_all, lazy_property, log_sigmoid
from .bernoulli import either
from .binary_parameter import BinaryParameter


class NegativeBinomial(BinaryParameter, Distribution):
    """The negative binomial distribution: the number of successes before `total_count` failures.

    Parameters
    ----------
    total_count : Tensor or float
        Number of failures at which to stop; any nonnegative number.
    probs : Tensor or float
        The probability of success, in [0, 1).
    logits : Tensor or float
        The log odds. Exactly one of `probs` and `logits` is required.

    Examples
    --------
    >>> from candelabra.distributions import NegativeBinomial
    >>> NegativeBinomial(3, 0.5).mean
    tensor(3.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _expandable = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(
        self,
        total_count: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if either(probs, logits):
            self.total_count, self.probs = broadcast_all(total_count, probs)
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * candelabra.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / candelabra.sigmoid(-self.logits)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.size()

    @lazy_property
    def _gamma(self) -> Gamma:
        # The count is a Poisson variable whose rate is a gamma variable.
        return Gamma(concentration=self.total_count, rate=candelabra.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            return candelabra.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        weights = n * log_sigmoid(-self.logits) + value * log_sigmoid(self.logits)
        ways = candelabra.lgamma(n + value) - candelabra.lgamma(1.0 + value) - candelabra.lgamma(n)
        return weights + ways.masked_fill(n + value == 0.0, 0.0)
