"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Size, Tensor, inf, no_grad

from .. import constraints
from ..distribution import Distribution
from ..utils import broadcast_all
from .binomial import Binomial
from .categorical import Categorical


class Multinomial(Distribution):
    """The multinomial distribution: counts of K classes in `total_count` draws.

    Parameters
    ----------
    total_count : int
        The number of draws.
    probs : Tensor
        (..., K) class weights, which are normalized to sum to 1.
    logits : Tensor
        Unnormalized log probabilities. Exactly one of `probs` and `logits` is required.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import Multinomial
    >>> Multinomial(4, candelabra.tensor([1.0, 3.0])).mean
    tensor([1., 3.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int
    _expandable = {}

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        new._binomial = self._binomial.expand(batch_shape + self._event_shape)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def logits(self) -> Tensor:
        """Log probabilities of the classes."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """Probabilities of the classes."""
        return self._categorical.probs

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            sample_shape = Size(sample_shape)
            draws = self._categorical.sample(Size((self.total_count,)) + sample_shape)
            draws = draws.movedim(0, -1)
            counts = self._categorical._param.new_zeros(self._extended_shape(sample_shape))
            counts.scatter_add_(-1, draws, candelabra.ones_like(draws).to(counts.dtype))
            return counts

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -inf), 0)
        ways = candelabra.lgamma(value.sum(-1) + 1) - candelabra.lgamma(value + 1).sum(-1)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        # n times the entropy of a single draw, minus the mean log multinomial coefficient, from the
        # binomial marginals.
        n = self._categorical._param.new_tensor(float(self.total_count))
        counts = self._binomial.enumerate_support(expand=False)[1:]
        weights = candelabra.exp(self._binomial.log_prob(counts)) * candelabra.lgamma(counts + 1)
        return n * self._categorical.entropy() - candelabra.lgamma(n + 1) + weights.sum((0, -1))
