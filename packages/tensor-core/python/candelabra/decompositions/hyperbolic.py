"""Trigonometric and hyperbolic functions and their inverses.

Of complex numbers, the inverses are those of Kahan, "Branch Cuts for Complex Elementary Functions",
1987, in the form that is accurate away from the ends of the cuts.
"""

from __future__ import annotations

import math

import candelabra

from .registration import decomposes, from_parts, parts, wide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra import Tensor

where = candelabra.where
_LN2 = math.log(2)
#: From here on, sinh and cosh are half of an exponential in double precision too.
_LARGE = 20.0
#: From here on, the logarithm of 2x stands for the inverses of sinh and cosh.
_HUGE = 1e8


def _times(x: Tensor, factor: Tensor) -> Tensor:
    """Return a product in which zero times infinity is zero."""
    return where(factor == 0, factor, x * factor)


def _with_sign_of(x: Tensor, magnitude: Tensor) -> Tensor:
    return where(x < 0, -magnitude, magnitude)


@decomposes("tan")
def tan(self: Tensor) -> Tensor:
    x = wide(self)
    if not x.dtype.is_complex:
        return x.sin() / x.cos()
    real, imaginary = parts(x)
    turned_real, turned_imaginary = parts(from_parts(-imaginary, real).tanh())  # tanh(ix)
    return from_parts(turned_imaginary, -turned_real)


@decomposes("sinh")
def sinh(self: Tensor) -> Tensor:
    x = wide(self)
    if x.dtype.is_complex:
        a, b = parts(x)
        return from_parts(sinh(a) * b.cos(), _times(cosh(a), b.sin()))
    magnitude = x.abs()
    grown = magnitude.expm1()
    small = 0.5 * (grown + grown / (grown + 1))
    return _with_sign_of(x, where(magnitude < _LARGE, small, (magnitude - _LN2).exp()))


@decomposes("cosh")
def cosh(self: Tensor) -> Tensor:
    x = wide(self)
    if x.dtype.is_complex:
        a, b = parts(x)
        return from_parts(cosh(a) * b.cos(), _times(sinh(a), b.sin()))
    magnitude = x.abs()
    power = magnitude.exp()
    return where(magnitude < _LARGE, 0.5 * (power + 1 / power), (magnitude - _LN2).exp())


@decomposes("asinh")
def asinh(self: Tensor) -> Tensor:
    x = wide(self)
    if x.dtype.is_complex:
        return _times_i(asin(_times_i(x)), -1)
    magnitude = x.abs()
    near = where(magnitude < _HUGE, magnitude, candelabra.ones_like(x))
    square = near * near
    small = (near + square / (1 + (square + 1).sqrt())).log1p()
    return _with_sign_of(x, where(magnitude < _HUGE, small, magnitude.log() + _LN2))


@decomposes("acosh")
def acosh(self: Tensor) -> Tensor:
    x = wide(self)
    if x.dtype.is_complex:
        real, imaginary = parts(x)
        (a, b), (c, d) = _root(real - 1, imaginary), _root(1 + real, imaginary)
        return from_parts(asinh(a * c + b * d), 2 * candelabra.atan2(b, c))
    above = x - 1
    small = (above + (above * (above + 2)).sqrt()).log1p()
    return where(x < _HUGE, small, x.log() + _LN2)


@decomposes("atanh")
def atanh(self: Tensor) -> Tensor:
    x = wide(self)
    if x.dtype.is_complex:
        a, b = parts(x)
        # The argument of (1 + x) / (1 - x), and the logarithm of its magnitude.
        square = b * b
        real = 0.25 * (4 * a / ((1 - a) * (1 - a) + square)).log1p()
        imaginary = 0.5 * (candelabra.atan2(b, 1 + a) - candelabra.atan2(-b, 1 - a))
        return from_parts(real, imaginary)
    magnitude = x.abs()
    return _with_sign_of(x, 0.5 * (2 * magnitude / (1 - magnitude)).log1p())


def _times_i(x: Tensor, sign: int = 1) -> Tensor:
    real, imaginary = parts(x)
    return from_parts(-sign * imaginary, sign * real)


def _root(real: Tensor, imaginary: Tensor) -> tuple[Tensor, Tensor]:
    """Return the parts of a square root. The sign of a zero decides about the side of the cut."""
    return parts(from_parts(real, imaginary).sqrt())


@decomposes("asin")
def asin(self: Tensor) -> Tensor:
    x = wide(self)
    if not x.dtype.is_complex:
        return candelabra.atan2(x, ((1 - x) * (1 + x)).sqrt())
    real, imaginary = parts(x)
    (a, b), (c, d) = _root(1 - real, -imaginary), _root(1 + real, imaginary)
    return from_parts(candelabra.atan2(real, a * c - b * d), asinh(a * d - b * c))


@decomposes("acos")
def acos(self: Tensor) -> Tensor:
    x = wide(self)
    if not x.dtype.is_complex:
        return candelabra.atan2(((1 - x) * (1 + x)).sqrt(), x)
    real, imaginary = parts(x)
    (a, b), (c, d) = _root(1 - real, -imaginary), _root(1 + real, imaginary)
    return from_parts(2 * candelabra.atan2(a, c), asinh(b * c - a * d))


@decomposes("atan")
def atan(self: Tensor) -> Tensor:
    x = wide(self)
    return _times_i(atanh(_times_i(x)), -1) if x.dtype.is_complex else candelabra.atan2(x, candelabra.ones_like(x))
