"""Elementwise operators of two and three arguments."""

from __future__ import annotations

import math

import candelabra

from .registration import decomposes, tensors, wide
from .unary import bits, signbit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra import Tensor
    from candelabra.types import Number

    Operand = Tensor | Number

where = candelabra.where


def _wide(*values: Operand) -> list[Any]:
    return [wide(value) for value in tensors(*values)]


@decomposes("floor_divide")
def floor_divide(self: Operand, other: Operand) -> Tensor:
    return candelabra.div(*tensors(self, other), rounding_mode="floor")


@decomposes("remainder")
def remainder(self: Operand, other: Operand) -> Tensor:
    a, b = tensors(self, other)
    rest = candelabra.fmod(a, b)
    return where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


@decomposes("fmax")
def fmax(self: Operand, other: Operand) -> Tensor:
    a, b = tensors(self, other)
    return where(a != a, b, where(b != b, a, candelabra.maximum(a, b)))


@decomposes("fmin")
def fmin(self: Operand, other: Operand) -> Tensor:
    a, b = tensors(self, other)
    return where(a != a, b, where(b != b, a, candelabra.minimum(a, b)))


@decomposes("hypot", real=True)
def hypot(self: Operand, other: Operand) -> Tensor:
    a, b = (x.abs() for x in _wide(self, other))
    large, small = candelabra.maximum(a, b), candelabra.minimum(a, b)
    ratio = small / where(large == 0, large.new_ones(()), large)
    # The magnitude with an infinite part is infinite, whatever the other part.
    return where((a == math.inf) | (b == math.inf), large.new_full((), math.inf), large * (1 + ratio * ratio).sqrt())


@decomposes("copysign", real=True)
def copysign(self: Operand, other: Operand) -> Tensor:
    a, b = tensors(self, other)
    return where(signbit(a) == signbit(b), a, -a)


@decomposes("nextafter", real=True)
def nextafter(self: Operand, other: Operand) -> Tensor:
    a, b = tensors(self, other)
    number = bits(a)
    # Away from zero is the next larger integer, for both signs.
    away = where((b > a) == (a > 0), number + 1, number - 1)
    least = where(b > 0, number.new_ones(()), number.new_full((), candelabra.iinfo(number.dtype).min + 1))
    stepped = where(a == 0, least, away).view(a.dtype)
    return where((a != a) | (b != b), a + b, where(a == b, b, stepped))


@decomposes("heaviside")
def heaviside(self: Tensor, values: Tensor) -> Tensor:
    x, at_zero = tensors(self, values)
    return where(x == 0, at_zero, (x > 0).to(x.dtype))


@decomposes("xlogy", real=True)
def xlogy(self: Operand, other: Operand) -> Tensor:
    a, b = _wide(self, other)
    return where((a == 0) & (b == b), a.new_zeros(()), a * b.log())


@decomposes("logaddexp", real=True)
def logaddexp(self: Operand, other: Operand) -> Tensor:
    a, b = _wide(self, other)
    # Equal arguments may be infinite.
    return where(a == b, a + math.log(2), candelabra.maximum(a, b) + (-(a - b).abs()).exp().log1p())


@decomposes("logaddexp2", real=True)
def logaddexp2(self: Operand, other: Operand) -> Tensor:
    a, b = _wide(self, other)
    smaller = (-(a - b).abs() * math.log(2)).exp().log1p() / math.log(2)
    return where(a == b, a + 1, candelabra.maximum(a, b) + smaller)


# ---- shifts


@decomposes("bitwise_left_shift")
def bitwise_left_shift(self: Operand, other: Operand) -> Tensor:
    a, b = tensors(self, other)
    width = a.element_size() * 8
    fits = (b >= 0) & (b < width)
    power = candelabra.pow(a.new_full((), 2), where(fits, b, b.new_zeros(())))
    return where(fits, a * power, a.new_zeros(()))


@decomposes("bitwise_right_shift")
def bitwise_right_shift(self: Operand, other: Operand) -> Tensor:
    a, b = tensors(self, other)
    last = a.element_size() * 8 - 1
    fits = (b >= 0) & (b < last)
    shifted = candelabra.div(
        a, candelabra.pow(a.new_full((), 2), where(fits, b, b.new_zeros(()))), rounding_mode="floor"
    )
    # A shift by all bits leaves the sign or, of unsigned integers, nothing.
    if a.dtype.is_signed:
        rest = where(a < 0, a.new_full((), -1), a.new_zeros(()))
    else:
        rest = ((b == last) & (a >= 2**last)).to(a.dtype)
    return where(fits, shifted, rest)


# ---- three arguments


@decomposes("clamp")
def clamp(self: Tensor, min: Operand | None, max: Operand | None) -> Tensor:
    x, low, high = tensors(self, min, max)
    if low is not None:
        x = candelabra.maximum(x, low)
    return x if high is None else candelabra.minimum(x, high)


@decomposes("lerp")
def lerp(self: Operand, end: Operand, weight: Operand) -> Tensor:
    a, b, w = _wide(self, end, weight)
    difference = b - a
    return where(w.abs() < 0.5, a + w * difference, b - difference * (1 - w))


@decomposes("addcmul")
def addcmul(self: Operand, tensor1: Operand, tensor2: Operand, value: Number) -> Any:
    a, b, c = _wide(self, tensor1, tensor2)
    return NotImplemented if a.dtype is candelabra.bool else candelabra.add(a, b * c, alpha=value)


@decomposes("addcdiv")
def addcdiv(self: Operand, tensor1: Operand, tensor2: Operand, value: Number) -> Tensor:
    a, b, c = _wide(self, tensor1, tensor2)
    return a + value * b / c
