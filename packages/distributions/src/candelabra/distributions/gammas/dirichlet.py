"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Size, Tensor

from .. import constraints
from ..exp_family import ExponentialFamily
from .gamma_draws import log_gamma_draw


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution over vectors of K numbers that sum to 1.

    Parameters
    ----------
    concentration : Tensor
        (..., K) positive concentrations.

    Notes
    -----
    A draw is a vector of gamma variables divided by their sum. Its gradient is that of `Gamma`
    draws.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import Dirichlet
    >>> Dirichlet(candelabra.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _expandable = {"concentration": 1}

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        draw = candelabra.softmax(log_gamma_draw(self.concentration.expand(self._extended_shape(sample_shape))), -1)
        # The density may be infinite at 0 and at 1: the nearest numbers stand for them.
        limits = candelabra.finfo(draw.dtype)
        return draw.clamp(limits.tiny, 1 - limits.eps / 2)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return candelabra.xlogy(a - 1.0, value).sum(-1) + candelabra.lgamma(a.sum(-1)) - candelabra.lgamma(a).sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        inside = above / above.sum(-1, True)
        # If all concentrations are below 1, the density is unbounded at the corners.
        places = candelabra.arange(self.concentration.shape[-1], device=self.concentration.device)
        corner = (self.concentration.argmax(-1, keepdim=True) == places).to(inside.dtype)
        return candelabra.where((self.concentration < 1).all(-1, keepdim=True), corner, inside)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        a = self.concentration
        count, total = a.shape[-1], a.sum(-1)
        return (
            candelabra.lgamma(a).sum(-1)
            - candelabra.lgamma(total)
            - (count - total) * candelabra.digamma(total)
            - ((a - 1.0) * candelabra.digamma(a)).sum(-1)
        )

    @property
    def _mean_carrier_measure(self) -> Tensor:
        # The carrier measure is minus the sum of the logarithms.
        a = self.concentration
        return (candelabra.digamma(a.sum(-1, keepdim=True)) - candelabra.digamma(a)).sum(-1)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma().sum(-1) - candelabra.lgamma(x.sum(-1))
