"""The beta distribution."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Size, Tensor, special

from .. import constraints
from ..exp_family import ExponentialFamily
from ..utils import broadcast_all
from .dirichlet import Dirichlet


class Beta(ExponentialFamily):
    """The beta distribution, with density proportional to ``x^(a-1) (1-x)^(b-1)``.

    Parameters
    ----------
    concentration1 : Tensor or float
        The parameter a.
    concentration0 : Tensor or float
        The parameter b.

    Examples
    --------
    >>> from candelabra.distributions import Beta
    >>> Beta(1.0, 3.0).mean
    tensor(0.2500)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _expandable = {}

    def __init__(
        self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None
    ) -> None:
        both = candelabra.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new._dirichlet = self._dirichlet.expand(batch_shape)

    @property
    def concentration1(self) -> Tensor:
        """The exponent of x, plus 1."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """The exponent of 1 - x, plus 1."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return (
            candelabra.xlogy(a - 1, value)
            + special.xlog1py(b - 1, -value)
            + candelabra.lgamma(a + b)
            - candelabra.lgamma(a)
            - candelabra.lgamma(b)
        )

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _mean_carrier_measure(self) -> Tensor:
        return self._dirichlet._mean_carrier_measure

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return candelabra.lgamma(x) + candelabra.lgamma(y) - candelabra.lgamma(x + y)
