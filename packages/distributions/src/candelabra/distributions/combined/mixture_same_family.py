"""Mixtures of distributions of the same class."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Size, Tensor, no_grad

from .. import constraints
from ..constraints import MixtureSameFamilyConstraint
from ..discrete.categorical import Categorical
from ..distribution import Distribution


class MixtureSameFamily(Distribution):
    """A mixture of distributions of the same class.

    Parameters
    ----------
    mixture_distribution : Categorical
        Distribution over the components.
    component_distribution : Distribution
        The components, along the last batch dimension.

    Raises
    ------
    ValueError
        If the two distributions are incompatible.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import Categorical, MixtureSameFamily, Normal
    >>> components = Normal(candelabra.tensor([-1.0, 3.0]), candelabra.ones(2))
    >>> MixtureSameFamily(Categorical(candelabra.ones(2)), components).mean
    tensor(1.)
    """

    arg_constraints: dict[str, Any] = {}
    has_rsample = False
    _expandable = {}

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The Mixture distribution needs to be an instance of candelabra.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of candelabra.distributions.Distribution"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        mixtures, components = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for one, two in zip(reversed(mixtures), reversed(components), strict=False):
            if one != 1 and two != 1 and one != two:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({tuple(mixtures)}) is not compatible with "
                    f"`component_distribution.batch_shape`({tuple(components)})"
                )
        count, have = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if count != have:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` ({have})"
            )
        self._num_component = count
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(components, component_distribution.event_shape, validate_args=validate_args)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        new._component_distribution = self._component_distribution.expand(batch_shape + (self._num_component,))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)

    @constraints.dependent_property
    def support(self) -> Any:
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution over the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _weights(self) -> Tensor:
        """Return the mixture weights, with trailing dimensions for the event."""
        probs = self._mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self._component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        # Law of total variance: mean of the variances plus variance of the means.
        dim = -1 - self._event_ndims
        within = (self._weights() * self._component_distribution.variance).sum(dim)
        between = (self._weights() * (self._component_distribution.mean - self._pad(self.mean)).pow(2.0)).sum(dim)
        return within + between

    def cdf(self, x: Tensor) -> Tensor:
        return (self._component_distribution.cdf(self._pad(x)) * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(x)
        log_probs = self._component_distribution.log_prob(self._pad(x))
        return (log_probs + candelabra.log_softmax(self._mixture_distribution.logits, dim=-1)).logsumexp(-1)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            sample_shape = Size(sample_shape)
            dim = len(sample_shape) + len(self._batch_shape)
            which = self._mixture_distribution.sample(sample_shape)
            draws = self._component_distribution.sample(sample_shape)
            if which.ndim < dim:  # a shared component index would correlate the batch
                shape = sample_shape + self._batch_shape
                which = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape).reshape(shape)
            which = which.reshape(which.shape + (1,) * (1 + self._event_ndims))
            which = which.expand(sample_shape + self._batch_shape + (1,) + self._event_shape)
            return draws.gather(dim, which).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
