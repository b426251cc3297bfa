"""The geometric distribution."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Size, Tensor, no_grad

from .. import constraints
from ..distribution import Distribution
from ..utils import broadcast_all, open_uniform
from .bernoulli import binary_log_prob, either
from .binary_parameter import BinaryParameter


class Geometric(BinaryParameter, Distribution):
    """The geometric distribution: failures before the first success, ``(1 - p)^k p`` for k >= 0.

    Parameters
    ----------
    probs : Tensor or float
        The probability of success, in (0, 1].
    logits : Tensor or float
        The log odds. Exactly one of `probs` and `logits` is required.

    Raises
    ------
    ValueError
        If both or neither are given, or the probability is not in (0, 1].

    Examples
    --------
    >>> from candelabra.distributions import Geometric
    >>> Geometric(0.25).mean
    tensor(3.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
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
        super().__init__((self.probs if probs is not None else self.logits).size(), validate_args=validate_args)
        if self._validate_args and probs is not None:
            value = self.probs
            if not bool((value > 0).all()):
                raise ValueError(
                    f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} to be "
                    f"positive but found invalid values:\n{value[~(value > 0)]}"
                )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return candelabra.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            u = open_uniform(self._extended_shape(sample_shape), self.probs.dtype, self.probs.device)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        # For p = 1 and k = 0, avoid 0 * -inf: the log probability is 0.
        certain = (probs == 1) & (value == 0)
        return value * (-probs.masked_fill(certain, 0)).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return -binary_log_prob(self.logits, self.probs) / self.probs
