"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Size, Tensor, no_grad, special

from .. import constraints
from ..distribution import Distribution
from ..utils import broadcast_all, lazy_property


class VonMises(Distribution):
    """The von Mises distribution of angles with density ``exp(k cos(x - loc)) / (2 pi I0(k))``.

    Parameters
    ----------
    loc : Tensor or float
        The mean angle.
    concentration : Tensor or float
        The concentration k; 0 gives the uniform distribution.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import VonMises
    >>> VonMises(0.0, 1.0).log_prob(candelabra.tensor(0.0))
    tensor(-1.0738)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    _expandable = {"loc": 0, "concentration": 0}

    def __init__(self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        log_i0 = special.i0e(k).log() + k
        return k * candelabra.cos(value - self.loc) - math.log(2 * math.pi) - log_i0

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance: 1 minus the mean resultant length."""
        return 1 - special.i1e(self.concentration) / special.i0e(self.concentration)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        """Draw samples by rejection from a wrapped Cauchy distribution.

        Source: Best and Fisher, 1979.
        """
        with no_grad():
            shape = self._extended_shape(sample_shape)
            given = self.concentration.detach().to(candelabra.float64).expand(shape).reshape(-1)
            k = given.clamp(min=1e-290)  # uniform, without an infinite 1 / k
            tau = 1 + (1 + 4 * k * k).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            # For small k, use the series, because the difference above cancels.
            r = candelabra.where(k < 1e-5, 1 / k + k, (1 + rho * rho) / (2 * rho))
            # No draw would be accepted for a point mass and for what is no concentration.
            angle = candelabra.where(given == candelabra.inf, 0.0, candelabra.nan).to(k.dtype)
            places = ((given >= 0) & given.isfinite()).nonzero().squeeze(-1)
            while places.numel():
                u, v, side = candelabra.rand((3, places.numel()), dtype=k.dtype, device=k.device)
                z = candelabra.cos(math.pi * u)
                wide, here = r[places], k[places]
                f = (1 + wide * z) / (wide + z)
                c = here * (wide - f)
                accepted = (c * (2 - c) - v > 0) | ((c / v).log() + 1 - c >= 0)
                signed = (side - 0.5).sign() * f.clamp(min=-1, max=1).acos()
                angle[places[accepted]] = signed[accepted]
                places = places[~accepted]
            value = angle.reshape(shape) + self.loc.to(candelabra.float64)
            # wrap to [-pi, pi)
            return ((value + math.pi) % (2 * math.pi) - math.pi).to(self.loc.dtype)
