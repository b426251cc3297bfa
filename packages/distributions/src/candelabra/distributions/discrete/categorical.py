"""The categorical distribution."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Size, Tensor, nan, no_grad

from .. import constraints
from ..distribution import Distribution
from ..utils import lazy_property, logits_to_probs, probs_to_logits
from .bernoulli import either


class Categorical(Distribution):
    """The categorical distribution over the classes 0 to K - 1.

    Parameters
    ----------
    probs : Tensor
        (..., K) class weights, which are normalized to sum to 1.
    logits : Tensor
        Unnormalized log probabilities. Exactly one of `probs` and `logits` is required.

    Raises
    ------
    ValueError
        If both or neither are given, the parameter has no dimension, or a weight is negative.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import Categorical
    >>> Categorical(candelabra.tensor([1.0, 3.0])).probs
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _expandable = {"probs": 1, "logits": 1}

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        if either(probs, logits):
            assert probs is not None
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            assert logits is not None
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        self._num_events = self._param.shape[-1]
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new._num_events = self._num_events

    @property
    def _param(self) -> Tensor:
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]  # type: ignore[no-any-return]

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        """Log probabilities of the classes."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities of the classes."""
        return logits_to_probs(self.logits)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.size()

    @property
    def mean(self) -> Tensor:
        return candelabra.full(self._extended_shape(), nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            shape = Size(sample_shape)
            count = shape.numel()
            if count == 0:
                return candelabra.empty(self._extended_shape(shape), dtype=candelabra.int64, device=self.probs.device)
            rows = self.probs.reshape(-1, self._num_events)
            return candelabra.multinomial(rows, count, True).T.reshape(self._extended_shape(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        shape = candelabra.broadcast_shapes(value.shape, self._batch_shape)
        places = value.long().expand(shape).unsqueeze(-1)
        return self.logits.expand(shape + (self._num_events,)).gather(-1, places).squeeze(-1)

    def entropy(self) -> Tensor:
        lowest = candelabra.finfo(self.logits.dtype).min
        return -(self.logits.clamp(min=lowest) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(
            candelabra.arange(self._num_events, dtype=candelabra.int64, device=self._param.device), expand
        )
