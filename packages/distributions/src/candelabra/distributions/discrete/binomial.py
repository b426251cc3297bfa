"""The binomial distribution."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Size, Tensor, no_grad

from .. import constraints
from ..distribution import Distribution
from ..utils import broadcast_all, softplus
from .bernoulli import either
from .binary_parameter import BinaryParameter


class Binomial(BinaryParameter, Distribution):
    """The binomial distribution: the number of successes in `total_count` trials.

    Parameters
    ----------
    total_count : int or Tensor
        The number of trials.
    probs : Tensor or float
        The probability of success.
    logits : Tensor or float
        The log odds. Exactly one of `probs` and `logits` is required.

    Examples
    --------
    >>> from candelabra.distributions import Binomial
    >>> Binomial(4, 0.25).mean
    tensor(1.)
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _expandable = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(
        self,
        total_count: Tensor | int = 1,
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

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return candelabra.minimum(((self.total_count + 1) * self.probs).floor(), self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.size()

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            shape = self._extended_shape(sample_shape)
            return candelabra.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        ways = candelabra.lgamma(n + 1) - candelabra.lgamma(value + 1) - candelabra.lgamma(n - value + 1)
        return ways + value * self.logits - n * softplus(self.logits)

    def entropy(self) -> Tensor:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._one_count("enumerate_support")
        return self._enumerated(
            candelabra.arange(1 + count, dtype=self._param.dtype, device=self._param.device), expand
        )

    def _one_count(self, what: str) -> int:
        count = int(self.total_count.max())
        if not bool((self.total_count == count).all()):
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return count
