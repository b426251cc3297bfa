"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Size, Tensor, nan, no_grad

from .. import constraints
from ..exp_family import ExponentialFamily
from ..utils import broadcast_all, log_sigmoid
from .binary_parameter import BinaryParameter


def either(probs: Any, logits: Any) -> bool:
    """Return whether `probs` was given; raise ValueError unless exactly one of the two was."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return probs is not None


def binary_log_prob(logits: Tensor, value: Tensor) -> Tensor:
    """Return ``value * log p + (1 - value) * log(1 - p)`` for ``p = sigmoid(logits)``."""
    return log_sigmoid(logits) - (1 - value) * logits


class Bernoulli(BinaryParameter, ExponentialFamily):
    """The Bernoulli distribution: 1 with probability p, and 0 otherwise.

    Parameters
    ----------
    probs : Tensor or float
        The probability of 1.
    logits : Tensor or float
        The log odds. Exactly one of `probs` and `logits` is required.

    Raises
    ------
    ValueError
        If both or neither are given, or the probability is not from 0 to 1.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import Bernoulli
    >>> Bernoulli(0.25).variance
    tensor(0.1875)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _expandable = {"probs": 0, "logits": 0}

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if either(probs, logits):
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return candelabra.where(self.probs == 0.5, nan, (self.probs >= 0.5).to(self.probs.dtype))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.size()

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            return candelabra.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return binary_log_prob(logits, value)

    def entropy(self) -> Tensor:
        return -binary_log_prob(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(candelabra.arange(2, dtype=self._param.dtype, device=self._param.device), expand)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (candelabra.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return candelabra.log1p(candelabra.exp(x))
