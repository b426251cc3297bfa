"""Elementwise operators of one argument."""

from __future__ import annotations

import math

import candelabra

from .registration import decomposes, from_parts, parts, tensors, wide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra import Tensor

where = candelabra.where


def _is_float(x: Tensor) -> bool:
    return x.dtype.is_floating_point


@decomposes("square")
def square(self: Tensor) -> Tensor:
    return self * self


@decomposes("reciprocal")
def reciprocal(self: Tensor) -> Tensor:
    return 1 / wide(self)


@decomposes("rsqrt")
def rsqrt(self: Tensor) -> Tensor:
    return 1 / wide(self).sqrt()


@decomposes("sigmoid")
def sigmoid(self: Tensor) -> Tensor:
    x = wide(self)
    if x.dtype.is_complex:
        return 1 / (1 + (-x).exp())
    # Without overflow: the exponential is of a number that is not positive.
    power = (-x.abs()).exp()
    return where(x < 0, power, candelabra.ones_like(power)) / (1 + power)


@decomposes("relu")
def relu(self: Tensor) -> Tensor:
    return candelabra.maximum(*tensors(self, 0))


# ---- rounding


@decomposes("ceil")
def ceil(self: Tensor) -> Tensor:
    return -candelabra.floor(-self) if _is_float(self) else self


@decomposes("trunc")
def trunc(self: Tensor) -> Tensor:
    return where(self < 0, -candelabra.floor(-self), candelabra.floor(self)) if _is_float(self) else self


@decomposes("frac")
def frac(self: Tensor) -> Tensor:
    return self - trunc(self)


def _round_to_even(x: Tensor) -> Tensor:
    magnitude = x.abs()
    low = candelabra.floor(magnitude)
    rest = magnitude - low  # exact
    up = (rest > 0.5) | ((rest == 0.5) & (candelabra.fmod(low, 2) != 0))
    rounded = where(up, low + 1, low)
    # The product keeps the sign of a zero.
    return where(rounded == 0, x * 0, where(x < 0, -rounded, rounded))


@decomposes("round")
def round_(self: Tensor, decimals: int) -> Tensor:
    if not _is_float(self):
        return self
    if decimals == 0:
        return _round_to_even(self)
    x, scale = wide(self), 10.0 ** abs(decimals)
    return _round_to_even(x * scale) / scale if decimals > 0 else _round_to_even(x / scale) * scale


# ---- signs and parts


@decomposes("sign", "sgn")
def sign(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        size = self.abs()
        return where(size == 0, candelabra.zeros_like(self), self / size)
    if self.dtype is candelabra.bool:
        return self
    # Zeros and NaN are their own sign.
    positive = where(self > 0, self.new_ones(()), self)
    return where(self < 0, self.new_full((), -1), positive) if self.dtype.is_signed else positive


@decomposes("conj_physical")
def conj_physical(self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return self
    real, imaginary = parts(self)
    return from_parts(real, -imaginary)


@decomposes("angle")
def angle(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        real, imaginary = parts(self)
        return candelabra.atan2(imaginary, real)
    x = wide(self)
    return where(x < 0, x.new_full((), math.pi), where(x != x, x, candelabra.zeros_like(x)))


_INTEGERS_OF_SIZE = {2: candelabra.int16, 4: candelabra.int32, 8: candelabra.int64}


def bits(x: Tensor) -> Tensor:
    """Return the bits of floating-point numbers as integers."""
    return x.view(_INTEGERS_OF_SIZE[x.element_size()])


@decomposes("signbit")
def signbit(self: Tensor) -> Tensor:
    if _is_float(self):
        return bits(self) < 0
    return self < 0 if self.dtype.is_signed else candelabra.zeros_like(self, dtype=candelabra.bool)


@decomposes("bitwise_not")
def bitwise_not(self: Tensor) -> Tensor:
    if self.dtype is candelabra.bool:
        return self == 0
    ones = -1 if self.dtype.is_signed else candelabra.iinfo(self.dtype).max
    return candelabra.bitwise_xor(self, self.new_full((), ones))


# ---- NaN and infinities


@decomposes("isnan")
def isnan(self: Tensor) -> Tensor:
    return self != self


@decomposes("isinf")
def isinf(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        real, imaginary = parts(self)
        return isinf(real) | isinf(imaginary)
    return self.abs() == math.inf if _is_float(self) else candelabra.zeros_like(self, dtype=candelabra.bool)


@decomposes("isfinite")
def isfinite(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        real, imaginary = parts(self)
        return isfinite(real) & isfinite(imaginary)
    return self.abs() < math.inf if _is_float(self) else candelabra.ones_like(self, dtype=candelabra.bool)


@decomposes("isposinf")
def isposinf(self: Tensor) -> Tensor:
    return self == math.inf if _is_float(self) else candelabra.zeros_like(self, dtype=candelabra.bool)


@decomposes("isneginf")
def isneginf(self: Tensor) -> Tensor:
    return self == -math.inf if _is_float(self) else candelabra.zeros_like(self, dtype=candelabra.bool)


@decomposes("nan_to_num")
def nan_to_num(self: Tensor, nan: float | None, posinf: float | None, neginf: float | None) -> Any:
    if self.dtype.is_complex:
        return from_parts(*(nan_to_num(part, nan, posinf, neginf) for part in parts(self)))
    if not _is_float(self):
        return self
    limits = candelabra.finfo(self.dtype)
    result = where(self != self, self.new_full((), 0.0 if nan is None else nan), self)
    result = where(self == math.inf, self.new_full((), limits.max if posinf is None else posinf), result)
    return where(self == -math.inf, self.new_full((), limits.min if neginf is None else neginf), result)


# ---- exponentials and logarithms


@decomposes("exp2")
def exp2(self: Tensor) -> Tensor:
    x = wide(self)
    return candelabra.pow(x.new_full((), 2), x)


def _log_to_base(x: Tensor, base: int) -> Tensor:
    logarithm = wide(x).log()
    if not x.dtype.is_complex:
        return logarithm / math.log(base)
    # A quotient of complex numbers has NaN beside an infinite part.
    return from_parts(*(part / math.log(base) for part in parts(logarithm)))


@decomposes("log2")
def log2(self: Tensor) -> Tensor:
    return _log_to_base(self, 2)


@decomposes("log10")
def log10(self: Tensor) -> Tensor:
    return _log_to_base(self, 10)


# ---- numbers of two parts


@decomposes("complex")
def complex_(real: Tensor, imag: Tensor) -> Tensor:
    return from_parts(real, imag)


@decomposes("polar")
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    return from_parts(abs * angle.cos(), abs * angle.sin())
