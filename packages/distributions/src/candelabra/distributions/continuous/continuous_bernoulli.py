"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Size, Tensor

from .. import constraints
from ..discrete.bernoulli import binary_log_prob, either
from ..discrete.binary_parameter import BinaryParameter
from ..exp_family import ExponentialFamily
from ..utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs


class ContinuousBernoulli(BinaryParameter, ExponentialFamily):
    """The continuous Bernoulli distribution with density ``C p^x (1 - p)^(1 - x)`` on [0, 1].

    Source: Loaiza-Ganem and Cunningham, 2019.

    Parameters
    ----------
    probs : Tensor or float
        The parameter p, in (0, 1).
    logits : Tensor or float
        The log odds. Exactly one of `probs` and `logits` is required.
    lims : tuple of float
        Interval of p around 1/2 in which series are used, because the formulas divide by almost 0.

    Examples
    --------
    >>> from candelabra.distributions import ContinuousBernoulli
    >>> ContinuousBernoulli(0.5).mean
    tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _expandable = {"probs": 0, "logits": 0}

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        if either(probs, logits):
            (self.probs,) = broadcast_all(probs)
            # Validate before clamping, because the stored value is clamped away from 0 and 1.
            if (
                validate_args is not None
                and validate_args
                and not bool(constraints.unit_interval.check(self.probs).all())
            ):
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new._lims = self._lims

    def _outside(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _safe(self) -> Tensor:
        """Return the probabilities, with those near 1/2 replaced by the lower limit."""
        return candelabra.where(self._outside(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Tensor:
        """Return log C, the log of ``2 atanh(1 - 2p) / (1 - 2p)``, by its series near 1/2."""
        p = self._safe()
        log_norm = (candelabra.log1p(-p) - p.log()).abs().log() - (1 - 2 * p).abs().log()
        x = (self.probs - 0.5).pow(2)
        return candelabra.where(self._outside(), log_norm, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        p = self._safe()
        x = self.probs - 0.5
        exact = p / (2.0 * p - 1.0) + 1.0 / (candelabra.log1p(-p) - p.log())
        return candelabra.where(self._outside(), exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    @property
    def variance(self) -> Tensor:
        p = self._safe()
        x = (self.probs - 0.5).pow(2)
        exact = p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + 1.0 / (candelabra.log1p(-p) - p.log()).pow(2)
        return candelabra.where(self._outside(), exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    @lazy_property
    def probs(self) -> Tensor:
        """The parameter p, clamped away from 0 and 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.size()

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(candelabra.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return binary_log_prob(logits, value) + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        p = self._safe()
        inside = (p.pow(value) * (1.0 - p).pow(1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inside = candelabra.where(self._outside(), inside, value)
        return candelabra.where(value <= 0.0, 0.0, candelabra.where(value >= 1.0, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        p = self._safe()
        exact = (candelabra.log1p(-p + value * (2.0 * p - 1.0)) - candelabra.log1p(-p)) / (
            p.log() - candelabra.log1p(-p)
        )
        return candelabra.where(self._outside(), exact, value)

    def entropy(self) -> Tensor:
        against, in_favour = candelabra.log1p(-self.probs), candelabra.log(self.probs)
        return self.mean * (against - in_favour) - self._cont_bern_log_norm() - against

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        near = x.abs() < 1e-3
        safe = candelabra.where(near, 1.0, x)
        exact = (safe.exp() - 1).abs().log() - safe.abs().log()
        return candelabra.where(near, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0, exact)
