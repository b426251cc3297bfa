"""The categorical distribution over one-hot vectors."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Size, Tensor, no_grad

from .. import constraints
from ..distribution import Distribution
from .categorical import Categorical


class OneHotCategorical(Distribution):
    """The categorical distribution over one-hot vectors of length K.

    Parameters
    ----------
    probs : Tensor
        (..., K) class weights, which are normalized to sum to 1.
    logits : Tensor
        Unnormalized log probabilities. Exactly one of `probs` and `logits` is required.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import OneHotCategorical
    >>> OneHotCategorical(candelabra.tensor([0.0, 1.0])).sample()
    tensor([0., 1.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True
    _expandable = {}

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new._categorical = self._categorical.expand(batch_shape)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def probs(self) -> Tensor:
        """Probabilities of the classes."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Log probabilities of the classes."""
        return self._categorical.logits

    @property
    def mean(self) -> Tensor:
        return self._categorical.probs

    @property
    def mode(self) -> Tensor:
        return self._rows(self.probs.argmax(-1))

    @property
    def variance(self) -> Tensor:
        return self._categorical.probs * (1 - self._categorical.probs)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    def _rows(self, classes: Tensor) -> Tensor:
        """Return one-hot vectors of class indices, in the dtype of the probabilities."""
        count = self._event_shape[-1]
        return (classes.unsqueeze(-1) == candelabra.arange(count, device=classes.device)).to(self.probs.dtype)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            return self._rows(self._categorical.sample(Size(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self.event_shape[0]
        values = candelabra.eye(count, dtype=self._param.dtype, device=self._param.device)
        values = values.view((count,) + (1,) * len(self.batch_shape) + (count,))
        return values.expand((count, *self.batch_shape, count)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` with the straight-through gradient: draws have the gradient of `probs`.

    Source: Bengio, Léonard and Courville, 2013.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import OneHotCategoricalStraightThrough
    >>> OneHotCategoricalStraightThrough(candelabra.tensor([0.0, 1.0])).rsample()
    tensor([0., 1.])
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        probs = self._categorical.probs  # read once, because it is a lazy property
        return self.sample(sample_shape) + (probs - probs.detach())
