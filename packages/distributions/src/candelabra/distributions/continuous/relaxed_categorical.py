"""The relaxed one-hot categorical distribution on the simplex."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Size, Tensor

from .. import constraints
from ..combined.transformed_distribution import TransformedDistribution
from ..discrete.categorical import Categorical
from ..distribution import Distribution
from ..transforms import ExpTransform
from ..utils import broadcast_all, clamp_probs, open_uniform


class ExpRelaxedCategorical(Distribution):
    """The logarithms of a relaxed one-hot vector.

    Draws are Gumbel variables added to the logits, divided by the temperature and normalized.

    Sources: Maddison, Mnih and Teh, "The Concrete distribution", 2016, appendix C.3; Jang, Gu and
    Poole, 2016.

    Parameters
    ----------
    temperature : Tensor or float
        Temperature; draws approach one-hot vectors as it decreases.
    probs : Tensor
        (..., K) class weights, which are normalized to sum to 1.
    logits : Tensor
        Unnormalized log probabilities. Exactly one of `probs` and `logits` is required.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions.continuous.relaxed_categorical import ExpRelaxedCategorical
    >>> ExpRelaxedCategorical(1.0, candelabra.ones(3)).event_shape
    candelabra.Size([3])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True
    _expandable = {}

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(batch_shape)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        """Log probabilities of the classes."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """Probabilities of the classes."""
        return self._categorical.probs

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(open_uniform(shape, self.logits.dtype, self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        count = self._event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        temperature = candelabra.as_tensor(self.temperature, dtype=logits.dtype, device=logits.device)
        score = logits - value.mul(temperature)
        score = (score - score.logsumexp(-1, keepdim=True)).sum(-1)
        return score + (math.lgamma(count) + (count - 1) * temperature.log())


class RelaxedOneHotCategorical(TransformedDistribution):
    """The relaxed one-hot categorical distribution on the simplex, with differentiable draws.

    Parameters
    ----------
    temperature : Tensor or float
        Temperature; draws approach one-hot vectors as it decreases.
    probs : Tensor
        (..., K) class weights, which are normalized to sum to 1.
    logits : Tensor
        Unnormalized log probabilities. Exactly one of `probs` and `logits` is required.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import RelaxedOneHotCategorical
    >>> row = RelaxedOneHotCategorical(0.5, candelabra.ones(3)).sample()
    >>> bool(abs(row.sum() - 1) < 1e-5)
    True
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    base_dist: ExpRelaxedCategorical
    _expandable = {}

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """Log probabilities of the classes."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """Probabilities of the classes."""
        return self.base_dist.probs
