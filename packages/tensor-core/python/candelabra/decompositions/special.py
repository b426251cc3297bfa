"""Special functions, and integer divisors."""

from __future__ import annotations

import math

import candelabra

from .registration import decomposes, tensors, wide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra import Tensor
    from candelabra.types import Number

    Operand = Tensor | Number

where = candelabra.where
_SQRT_HALF = math.sqrt(0.5)

# Press et al., "Numerical Recipes", 3rd edition, 6.2.2: Chebyshev coefficients of
# log(erfcx(z) / t) with t = 2 / (2 + z), in 4t - 2.
_ERFC = (
    -1.3026537197817094, 6.4196979235649026e-1, 1.9476473204185836e-2, -9.561514786808631e-3, -9.46595344482036e-4,
    3.66839497852761e-4, 4.2523324806907e-5, -2.0278578112534e-5, -1.624290004647e-6, 1.303655835580e-6,
    1.5626441722e-8, -8.5238095915e-8, 6.529054439e-9, 5.059343495e-9, -9.91364156e-10, -2.27365122e-10,
    9.6467911e-11, 2.394038e-12, -6.886027e-12, 8.94487e-13, 3.13092e-13, -1.12708e-13, 3.81e-16, 7.106e-15,
    -1.523e-15, -9.4e-17, 1.21e-16, -2.8e-17,
)  # fmt: skip
# Giles, "Approximating the erfinv function", 2010: single precision, for w below 5 and from there.
_ERFINV_MIDDLE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
    0.246640727, 1.50140941,
)  # fmt: skip
_ERFINV_TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
    1.00167406, 2.83297682,
)  # fmt: skip
# Stirling's series of lgamma, and its derivative's: in 1 / x**2, from the highest power.
_LGAMMA = (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
_DIGAMMA = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
#: From here on the series are accurate.
_STIRLING = 10


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    result = candelabra.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        result = result * x + coefficient
    return result


# ---- the error function


def _scaled_erfc(z: Tensor, with_power: bool) -> Tensor:
    """Return erfcx(z) or, with the power exp(-z**2), erfc(z), for z >= 0."""
    t = 2 / (2 + z)
    y = 4 * t - 2
    before, d = candelabra.zeros_like(t), candelabra.zeros_like(t)
    for coefficient in reversed(_ERFC[1:]):
        before, d = d, y * d - before + coefficient
    exponent = 0.5 * (_ERFC[0] + y * d) - before
    return t * ((exponent - z * z) if with_power else exponent).exp()


@decomposes("erfc", real=True)
def erfc(self: Tensor) -> Tensor:
    x = wide(self)
    upper = _scaled_erfc(x.abs(), True)
    return where(x.abs() < 0.5, 1 - x.erf(), where(x < 0, 2 - upper, upper))


@decomposes("special_erfcx", real=True)
def special_erfcx(self: Tensor) -> Tensor:
    x = wide(self)
    upper = _scaled_erfc(x.abs(), False)
    return where(x < 0, 2 * (x * x).exp() - upper, upper)


@decomposes("erfinv", real=True)
def erfinv(self: Tensor) -> Tensor:
    x = wide(self)
    rest = 1 - x.abs()
    w = -(rest * (1 + x.abs())).log()
    tail = (where(w < 5, w.new_full((), 5), w)).sqrt() - 3
    y = where(w < 5, _polynomial(w - 2.5, _ERFINV_MIDDLE), _polynomial(tail, _ERFINV_TAIL)) * x.abs()
    for _ in range(2):  # Newton's method, in the complement where that is the smaller
        difference = where(rest < 0.5, rest - erfc(y), y.erf() - x.abs())
        y = y - difference * (y * y).exp() * (math.sqrt(math.pi) / 2)
    y = where(rest == 0, y.new_full((), math.inf), y)
    return where(x < 0, -y, y)


@decomposes("special_ndtr", real=True)
def special_ndtr(self: Tensor) -> Tensor:
    return 0.5 * erfc(-wide(self) * _SQRT_HALF)


@decomposes("special_log_ndtr", real=True)
def special_log_ndtr(self: Tensor) -> Tensor:
    x = wide(self)
    z = x * _SQRT_HALF
    lower = (0.5 * special_erfcx(where(x < -1, -z, z.new_ones(())))).log() - z * z
    return where(x < -1, lower, (-0.5 * erfc(z)).log1p())


@decomposes("special_ndtri", real=True)
def special_ndtri(self: Tensor) -> Tensor:
    x = wide(self)
    p = where(x > 0.5, 1 - x, x)
    y = erfinv(2 * p - 1) * math.sqrt(2)
    for _ in range(2):
        y = where(y.abs() < math.inf, y - (special_ndtr(y) - p) * (0.5 * y * y).exp() * math.sqrt(2 * math.pi), y)
    return where(x > 0.5, -y, y)


# ---- the gamma function


def _log_gamma_above(x: Tensor) -> Tensor:
    """Return lgamma for x >= 0.5."""
    product = candelabra.ones_like(x)
    for _ in range(_STIRLING):
        low = x < _STIRLING
        product, x = where(low, product * x, product), where(low, x + 1, x)
    series = _polynomial(1 / (x * x), _LGAMMA) / x
    return where(x == math.inf, x, (x - 0.5) * x.log() - x + 0.5 * math.log(2 * math.pi) + series - product.log())


@decomposes("lgamma", real=True)
def lgamma(self: Tensor) -> Tensor:
    x = wide(self)
    above = _log_gamma_above(where(x < 0.5, 1 - x, x))
    # The sine has the period of the fraction.
    sine = ((x - candelabra.floor(x)) * math.pi).sin().abs()
    reflected = math.log(math.pi) - sine.log() - above
    result = where(x == -math.inf, -x, where(x < 0.5, reflected, above))
    return where((x == 1) | (x == 2), x.new_zeros(()), result)


@decomposes("digamma", real=True)
def digamma(self: Tensor) -> Tensor:
    x = wide(self)
    y = where(x < 0, 1 - x, x)
    added = candelabra.zeros_like(y)
    for _ in range(_STIRLING):
        low = y < _STIRLING
        added, y = where(low, added - 1 / y, added), where(low, y + 1, y)
    square = 1 / (y * y)
    above = added + y.log() - 0.5 / y - _polynomial(square, _DIGAMMA) * square
    above = where(y == math.inf, y, above)
    fraction = x - candelabra.floor(x)
    reflected = above - math.pi / candelabra.tan(fraction * math.pi)
    pole = where(fraction == 0, x.new_full((), math.nan), reflected)
    return where(x == 0, -1 / x, where(x < 0, pole, above))


# ---- products with logarithms


@decomposes("special_entr", real=True)
def special_entr(self: Tensor) -> Tensor:
    x = wide(self)
    return where(x == 0, x.new_zeros(()), where(x < 0, x.new_full((), -math.inf), -x * x.log()))


@decomposes("special_xlog1py", real=True)
def special_xlog1py(self: Operand, other: Operand) -> Tensor:
    a, b = (wide(value) for value in tensors(self, other))
    return where((a == 0) & (b == b), a.new_zeros(()), a * b.log1p())


@decomposes("special_spherical_bessel_j0", real=True)
def special_spherical_bessel_j0(self: Tensor) -> Tensor:
    x = wide(self)
    square = x * x
    near = 1 + square * (-1 / 6 + square * (1 / 120 + square * (-1 / 5040 + square * (1 / 362880))))
    far = where(x.abs() == math.inf, x.new_zeros(()), x.sin() / x)
    return where(x.abs() < 0.5, near - square**5 / 39916800, far)


# ---- integers and exponents


@decomposes("gcd", real=True)
def gcd(self: Operand, other: Operand) -> Tensor:
    a, b = candelabra.broadcast_tensors(*tensors(self, other))
    while bool((b != 0).any()):
        done = b == 0
        rest = candelabra.fmod(a, where(done, b.new_ones(()), b))
        a, b = where(done, a, b), where(done, b, rest)
    return a.abs() if a.dtype.is_signed else a


@decomposes("lcm", real=True)
def lcm(self: Operand, other: Operand) -> Tensor:
    a, b = tensors(self, other)
    divisor = gcd(a, b)
    quotient = candelabra.div(a, where(divisor == 0, divisor.new_ones(()), divisor), rounding_mode="trunc")
    return (quotient * b).abs() if a.dtype.is_signed else quotient * b


#: The integers that hold the bits, the bits of the fraction, and the exponent of 1 as stored.
_FORMATS = {candelabra.float32: (candelabra.int32, 23, 127), candelabra.float64: (candelabra.int64, 52, 1023)}


@decomposes("frexp", real=True)
def frexp(self: Tensor) -> tuple[Tensor, Tensor]:
    x = wide(self)
    integers, fraction, bias = _FORMATS[x.dtype]
    is_small = x.abs() < candelabra.finfo(x.dtype).tiny
    number = where(is_small, x * 2.0**fraction, x).view(integers)
    exponents = (2 * bias + 1) << fraction
    stored = candelabra.bitwise_right_shift(number & exponents, fraction)
    power = stored - where(is_small, stored.new_full((), bias - 1 + fraction), stored.new_full((), bias - 1))
    mantissa = ((number & ~exponents) | ((bias - 1) << fraction)).view(x.dtype)
    is_plain = (x == 0) | (x.abs() == math.inf) | (x != x)
    return where(is_plain, x, mantissa), where(is_plain, power.new_zeros(()), power)
