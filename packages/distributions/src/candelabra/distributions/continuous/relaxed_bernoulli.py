"""The relaxed Bernoulli distribution on (0, 1)."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Size, Tensor

from .. import constraints
from ..combined.transformed_distribution import TransformedDistribution
from ..discrete.bernoulli import either
from ..discrete.binary_parameter import BinaryParameter
from ..distribution import Distribution
from ..transforms import SigmoidTransform
from ..utils import broadcast_all, clamp_probs, open_uniform


class LogitRelaxedBernoulli(BinaryParameter, Distribution):
    """The logits of a relaxed Bernoulli variable.

    Draws are logistic variables located at the logits, divided by the temperature.

    Sources: Maddison, Mnih and Teh, "The Concrete distribution", 2016; Jang, Gu and Poole,
    "Categorical reparameterization with Gumbel-softmax", 2016.

    Parameters
    ----------
    temperature : Tensor or float
        Temperature; draws approach 0 or 1 as it decreases.
    probs : Tensor or float
        The probability of 1.
    logits : Tensor or float
        The log odds. Exactly one of `probs` and `logits` is required.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions.continuous.relaxed_bernoulli import LogitRelaxedBernoulli
    >>> LogitRelaxedBernoulli(1.0, 0.5).log_prob(candelabra.tensor(0.0))
    tensor(-1.3863)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _expandable = {"probs": 0, "logits": 0}

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        if either(probs, logits):
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new.temperature = self.temperature

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.size()

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(open_uniform(shape, probs.dtype, probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value.mul(self.temperature)
        temperature = candelabra.as_tensor(self.temperature, dtype=logits.dtype, device=logits.device)
        return temperature.log() + difference - 2 * difference.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """The relaxed Bernoulli distribution on (0, 1), with differentiable draws.

    Parameters
    ----------
    temperature : Tensor or float
        Temperature; draws approach 0 or 1 as it decreases.
    probs : Tensor or float
        The probability of 1.
    logits : Tensor or float
        The log odds. Exactly one of `probs` and `logits` is required.

    Examples
    --------
    >>> from candelabra.distributions import RelaxedBernoulli
    >>> bool(0 < RelaxedBernoulli(1.0, 0.5).sample() < 1)
    True
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    base_dist: LogitRelaxedBernoulli
    _expandable = {}

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(
            LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args=validate_args
        )

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """Log odds of 1."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probability of 1."""
        return self.base_dist.probs
