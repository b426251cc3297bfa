"""Elementwise transforms."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

import candelabra
from candelabra import Tensor

from .. import constraints
from ..utils import softplus, sum_rightmost
from .base import Transform


class _Plain(Transform):
    """A transform without parameters; instances of the same class are equal."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = object.__hash__


class ExpTransform(_Plain):
    """``y = exp(x)``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import ExpTransform
    >>> ExpTransform()(candelabra.zeros(1))
    tensor([1.])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """``y = x ^ exponent`` for positive numbers.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import PowerTransform
    >>> PowerTransform(candelabra.tensor(2.0))(candelabra.tensor([3.0]))
    tensor([9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Tensor | float, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.exponent = exponent if isinstance(exponent, Tensor) else candelabra.tensor(float(exponent))

    def with_cache(self, cache_size: int = 1) -> Any:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size=cache_size)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all())

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return candelabra.broadcast_shapes(shape, self.exponent.shape)

    def inverse_shape(self, shape: Any) -> Any:
        return candelabra.broadcast_shapes(shape, self.exponent.shape)


class SigmoidTransform(_Plain):
    """``y = 1 / (1 + exp(-x))``, clamped away from 0 and 1 by the precision of the dtype."""

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        info = candelabra.finfo(x.dtype)
        return candelabra.sigmoid(x).clamp(min=info.tiny, max=1.0 - info.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        info = candelabra.finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1.0 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_Plain):
    """``y = log(1 + exp(x))``."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(_Plain):
    """``y = tanh(x)``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import TanhTransform
    >>> TanhTransform()(candelabra.zeros(1))
    tensor([0.])
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        # Not clamped: if y was rounded to 1, x is infinite. Use the cache for exact inverses.
        return candelabra.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # log(1 - tanh(x)^2) in a form that does not underflow
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(_Plain):
    """``y = |x|``; the inverse returns the nonnegative preimage."""

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """``y = loc + scale * x``.

    Parameters
    ----------
    loc, scale : Tensor or float
    event_dim : int
        Number of event dimensions.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import AffineTransform
    >>> AffineTransform(1.0, 2.0)(candelabra.ones(1))
    tensor([3.])
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and _same(self.loc, other.loc) and _same(self.scale, other.scale)

    __hash__ = object.__hash__

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            result = self.scale.abs().log()
        else:
            result = candelabra.full_like(x, math.log(abs(self.scale)) if self.scale else -math.inf)
        shape: Any = x.shape
        if self.event_dim:
            result = sum_rightmost(result.expand(candelabra.broadcast_shapes(result.shape, shape)), self.event_dim)
            shape = shape[: -self.event_dim]
        return result.expand(candelabra.broadcast_shapes(result.shape, shape))

    def forward_shape(self, shape: Any) -> Any:
        return candelabra.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    def inverse_shape(self, shape: Any) -> Any:
        return self.forward_shape(shape)


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, Number) and isinstance(two, Number):
        return one == two
    return bool(candelabra.as_tensor(one == two).all())


class CumulativeDistributionTransform(Transform):
    """``y = F(x)`` for the cumulative distribution function F of a distribution.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import CumulativeDistributionTransform, Normal
    >>> CumulativeDistributionTransform(Normal(0.0, 1.0))(candelabra.zeros(1))
    tensor([0.5000])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return self.distribution.support

    def with_cache(self, cache_size: int = 1) -> Any:
        return (
            self
            if self._cache_size == cache_size
            else CumulativeDistributionTransform(self.distribution, cache_size=cache_size)
        )

    def _call(self, x: Tensor) -> Tensor:
        image: Tensor = self.distribution.cdf(x)
        return image

    def _inverse(self, y: Tensor) -> Tensor:
        value: Tensor = self.distribution.icdf(y)
        return value

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        density: Tensor = self.distribution.log_prob(x)
        return density
