"""Elementwise functions of the array API standard 2024.12.

Each is an operator of Candelabra, behind the standard's promotion of data types. Where the standard
asks for other values than PyTorch gives (`floor_divide` and `remainder` of infinities and signed
zeros, `sign` of NaN, `round` of complex numbers), they are made here.
"""

from __future__ import annotations

import builtins
from typing import Any, Protocol

import candelabra
from candelabra import Tensor

from .array_object import Array, as_array, fresh
from .data_types import with_number

Number = builtins.bool | int | float | complex


class Unary(Protocol):
    """A function of one array."""

    def __call__(self, x: Array, /) -> Array: ...


class Binary(Protocol):
    """A function of two arrays, or of an array and a Python number."""

    def __call__(self, x1: Array | Number, x2: Array | Number, /) -> Array: ...


def promoted(name: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    """Bring two operands to one data type; a Python number on the right stays one, for it takes the
    array's.

    Raises
    ------
    TypeError
        If neither is an array, or one is neither an array nor a Python number.
    """
    if isinstance(x1, Tensor):
        if isinstance(x2, Tensor):
            if x1.dtype is not x2.dtype:
                dtype = candelabra.promote_types(x1.dtype, x2.dtype)
                return x1.to(dtype), x2.to(dtype)
            return x1, x2
        dtype = with_number(x1.dtype, x2, name)
        return (x1 if dtype is x1.dtype else x1.to(dtype)), candelabra.full((), x2, dtype=dtype, device=x1.device)
    if not isinstance(x2, Tensor):
        raise TypeError(
            f"{name}(): at least one of the arguments must be an array, got {type(x1).__name__} and {type(x2).__name__}"
        )
    dtype = with_number(x2.dtype, x1, name)
    return candelabra.full((), x1, dtype=dtype, device=x2.device), (x2 if dtype is x2.dtype else x2.to(dtype))


def _unary(name: str, function: Any, text: str, example: str) -> Unary:
    """Make a function of one array of an operator."""

    def unary(x: Array, /) -> Array:
        return as_array(function(x), x)

    return _documented(unary, name, text, example)


def _same_for_integers(name: str, function: Any, text: str, example: str) -> Unary:
    """Make a function that leaves integers as they are."""

    def unary(x: Array, /) -> Array:
        return fresh(function(x) if x.dtype.is_floating_point or x.dtype.is_complex else x.clone())

    return _documented(unary, name, text, example)


def _binary(name: str, function: Any, text: str, example: str) -> Binary:
    """Make a function of two arrays of an operator that takes operands of one data type."""
    takes_numbers = name in _TAKES_NUMBERS

    def binary(x1: Array | Number, x2: Array | Number, /) -> Array:
        # Python's numbers of the array's own kind need no array made of them.
        if takes_numbers and (kind := type(x2)) in _NUMBERS and isinstance(x1, Tensor) and _holds(x1.dtype, kind):
            return fresh(function(x1, x2))
        first, second = promoted(name, x1, x2)
        return fresh(function(first, second))

    return _documented(binary, name, text, example)


_NUMBERS = frozenset((int, float, complex))
#: Those whose operators take a Python number for the second operand; the others get an array of it.
_TAKES_NUMBERS = frozenset(
    ("add", "subtract", "multiply", "divide", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
)


def _holds(dtype: candelabra.dtype, kind: type) -> builtins.bool:
    if kind is int:
        return dtype is not candelabra.bool
    return dtype.is_complex or (kind is float and dtype.is_floating_point)


def _documented(function: Any, name: str, text: str, example: str) -> Any:
    code, result = example.split(" -> ")
    function.__name__ = function.__qualname__ = name
    function.__module__ = "candelabra.array_api"
    function.__doc__ = f"""{text}

    Special values, and the data type of the result, are those of the array API standard 2024.12, ``{name}``.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> {code}
    {result}
    """
    return function


def _sign(x: Tensor) -> Tensor:
    if x.dtype.is_complex:
        return candelabra.sgn(x)
    if x.dtype.is_floating_point:
        return candelabra.where(candelabra.isnan(x), x, candelabra.sign(x))
    return candelabra.sign(x) if x.dtype is not candelabra.bool else x.clone()


def _round(x: Tensor) -> Tensor:
    if x.dtype.is_complex:
        return candelabra.complex(candelabra.round(x.real), candelabra.round(x.imag))
    return candelabra.round(x)


def _expm1(x: Tensor) -> Tensor:
    result = candelabra.expm1(x)
    if not x.dtype.is_complex:
        return result
    # The standard says what infinities give, and candelabra.expm1 follows PyTorch.
    return candelabra.where(candelabra.isinf(x.real), candelabra.exp(x) - 1, result)


def _floor_divide(x1: Tensor, x2: Tensor) -> Tensor:
    """Quotient rounded down; the infinite cases are those of the exact quotient, which PyTorch's
    way over the remainder loses.
    """
    if not x1.dtype.is_floating_point:
        return candelabra.floor_divide(x1, x2)
    quotient = candelabra.true_divide(x1, x2)
    # By 0, by an infinity, and of an infinity: the quotient itself, with the sign that it has.
    exact = (x2 == 0) | candelabra.isinf(x2) | candelabra.isinf(x1) | (x1 == 0)
    return candelabra.where(exact, quotient, candelabra.floor_divide(x1, x2))


def _remainder(x1: Tensor, x2: Tensor) -> Tensor:
    """Remainder with the sign of the divisor, also where it is zero."""
    result = candelabra.remainder(x1, x2)
    if not x1.dtype.is_floating_point:
        return result
    # Of a finite dividend and an infinite divisor: the dividend where the signs agree, else the
    # divisor.
    far = candelabra.isinf(x2) & candelabra.isfinite(x1)
    agree = candelabra.signbit(x1) == candelabra.signbit(x2)
    result = candelabra.where(
        far, candelabra.where(agree | (x1 == 0), x1.expand(result.shape), x2.expand(result.shape)), result
    )
    return candelabra.where(result == 0, candelabra.copysign(result, x2), result)


abs = _unary("abs", candelabra.abs, "Absolute value.", "xp.abs(xp.asarray([-1.5, 2])) -> Array([1.5000, 2.0000])")
acos = _unary("acos", candelabra.acos, "Inverse cosine.", "xp.acos(xp.asarray([1.0])) -> Array([0.])")
acosh = _unary("acosh", candelabra.acosh, "Inverse hyperbolic cosine.", "xp.acosh(xp.asarray([1.0])) -> Array([0.])")
add = _binary("add", candelabra.add, "Sum of two arrays.", "xp.add(xp.asarray([1, 2]), 3) -> Array([4, 5])")
asin = _unary("asin", candelabra.asin, "Inverse sine.", "xp.asin(xp.asarray([0.0])) -> Array([0.])")
asinh = _unary("asinh", candelabra.asinh, "Inverse hyperbolic sine.", "xp.asinh(xp.asarray([0.0])) -> Array([0.])")
atan = _unary("atan", candelabra.atan, "Inverse tangent.", "xp.atan(xp.asarray([0.0])) -> Array([0.])")
atan2 = _binary(
    "atan2",
    candelabra.atan2,
    "Angle of the point (x2, x1), from -π to π.",
    "xp.atan2(xp.asarray([0.0]), 1.0) -> Array([0.])",
)
atanh = _unary("atanh", candelabra.atanh, "Inverse hyperbolic tangent.", "xp.atanh(xp.asarray([0.0])) -> Array([0.])")
bitwise_and = _binary(
    "bitwise_and",
    candelabra.bitwise_and,
    "Bits that both have set.",
    "xp.bitwise_and(xp.asarray([6, 3]), 5) -> Array([4, 1])",
)
bitwise_invert = _unary(
    "bitwise_invert",
    candelabra.bitwise_not,
    "All bits inverted.",
    "xp.bitwise_invert(xp.asarray([0, 5])) -> Array([-1, -6])",
)
bitwise_left_shift = _binary(
    "bitwise_left_shift",
    candelabra.bitwise_left_shift,
    "Bits shifted to the left, zeros coming in.",
    "xp.bitwise_left_shift(xp.asarray([1, 3]), 2) -> Array([ 4, 12])",
)
bitwise_or = _binary(
    "bitwise_or",
    candelabra.bitwise_or,
    "Bits that either has set.",
    "xp.bitwise_or(xp.asarray([6, 3]), 5) -> Array([7, 7])",
)
bitwise_right_shift = _binary(
    "bitwise_right_shift",
    candelabra.bitwise_right_shift,
    "Bits shifted to the right, the sign coming in.",
    "xp.bitwise_right_shift(xp.asarray([8, -8]), 2) -> Array([ 2, -2])",
)
bitwise_xor = _binary(
    "bitwise_xor",
    candelabra.bitwise_xor,
    "Bits that one of the two has set.",
    "xp.bitwise_xor(xp.asarray([6, 3]), 5) -> Array([3, 6])",
)
ceil = _same_for_integers(
    "ceil", candelabra.ceil, "Rounded up.", "xp.ceil(xp.asarray([1.2, -1.2])) -> Array([ 2., -1.])"
)
conj = _unary("conj", candelabra.conj, "Complex conjugate.", "xp.conj(xp.asarray([1 + 2j])) -> Array([1.-2.j])")
copysign = _binary(
    "copysign",
    candelabra.copysign,
    "Magnitude of the first with the sign of the second.",
    "xp.copysign(xp.asarray([1.0, -2.0]), -0.0) -> Array([-1., -2.])",
)
cos = _unary("cos", candelabra.cos, "Cosine.", "xp.cos(xp.asarray([0.0])) -> Array([1.])")
cosh = _unary("cosh", candelabra.cosh, "Hyperbolic cosine.", "xp.cosh(xp.asarray([0.0])) -> Array([1.])")
divide = _binary(
    "divide",
    candelabra.true_divide,
    "Quotient of two arrays.",
    "xp.divide(xp.asarray([1, 3]), 2) -> Array([0.5000, 1.5000])",
)
equal = _binary("equal", candelabra.eq, "Whether equal.", "xp.equal(xp.asarray([1, 2]), 2) -> Array([False,  True])")
exp = _unary("exp", candelabra.exp, "Exponential function.", "xp.exp(xp.asarray([0.0])) -> Array([1.])")
expm1 = _unary("expm1", _expm1, "exp(x) - 1, accurate near 0.", "xp.expm1(xp.asarray([0.0])) -> Array([0.])")
floor = _same_for_integers(
    "floor", candelabra.floor, "Rounded down.", "xp.floor(xp.asarray([1.2, -1.2])) -> Array([ 1., -2.])"
)
floor_divide = _binary(
    "floor_divide",
    _floor_divide,
    "Quotient rounded down; a quotient that is infinite or an infinity's part of a whole stays what it is.",
    "xp.floor_divide(xp.asarray([5.0, -5.0]), 2.0) -> Array([ 2., -3.])",
)
greater = _binary(
    "greater", candelabra.gt, "Whether greater.", "xp.greater(xp.asarray([1, 3]), 2) -> Array([False,  True])"
)
greater_equal = _binary(
    "greater_equal",
    candelabra.ge,
    "Whether greater or equal.",
    "xp.greater_equal(xp.asarray([1, 2]), 2) -> Array([False,  True])",
)
hypot = _binary(
    "hypot",
    candelabra.hypot,
    "Square root of the sum of squares, without overflow.",
    "xp.hypot(xp.asarray([3.0]), 4.0) -> Array([5.])",
)
imag = _unary(
    "imag", candelabra.imag, "Imaginary part of complex numbers.", "xp.imag(xp.asarray([1 + 2j])) -> Array([2.])"
)
isfinite = _unary(
    "isfinite",
    candelabra.isfinite,
    "Whether neither NaN nor infinite.",
    "xp.isfinite(xp.asarray([1.0, xp.inf])) -> Array([ True, False])",
)
isinf = _unary(
    "isinf", candelabra.isinf, "Whether infinite.", "xp.isinf(xp.asarray([1.0, -xp.inf])) -> Array([False,  True])"
)
isnan = _unary(
    "isnan", candelabra.isnan, "Whether NaN.", "xp.isnan(xp.asarray([1.0, xp.nan])) -> Array([False,  True])"
)
less = _binary("less", candelabra.lt, "Whether less.", "xp.less(xp.asarray([1, 3]), 2) -> Array([ True, False])")
less_equal = _binary(
    "less_equal",
    candelabra.le,
    "Whether less or equal.",
    "xp.less_equal(xp.asarray([2, 3]), 2) -> Array([ True, False])",
)
log = _unary("log", candelabra.log, "Natural logarithm.", "xp.log(xp.asarray([1.0])) -> Array([0.])")
log10 = _unary("log10", candelabra.log10, "Logarithm to base 10.", "xp.log10(xp.asarray([100.0])) -> Array([2.])")
log1p = _unary("log1p", candelabra.log1p, "log(1 + x), accurate near 0.", "xp.log1p(xp.asarray([0.0])) -> Array([0.])")
log2 = _unary("log2", candelabra.log2, "Logarithm to base 2.", "xp.log2(xp.asarray([8.0])) -> Array([3.])")
logaddexp = _binary(
    "logaddexp",
    candelabra.logaddexp,
    "log(exp(x1) + exp(x2)), without overflow.",
    "xp.logaddexp(xp.asarray([0.0]), 0.0) -> Array([0.6931])",
)
logical_and = _binary(
    "logical_and",
    candelabra.logical_and,
    "Whether both are true.",
    "xp.logical_and(xp.asarray([True, False]), True) -> Array([ True, False])",
)
logical_not = _unary(
    "logical_not",
    candelabra.logical_not,
    "Whether false.",
    "xp.logical_not(xp.asarray([True, False])) -> Array([False,  True])",
)
logical_or = _binary(
    "logical_or",
    candelabra.logical_or,
    "Whether either is true.",
    "xp.logical_or(xp.asarray([True, False]), False) -> Array([ True, False])",
)
logical_xor = _binary(
    "logical_xor",
    candelabra.logical_xor,
    "Whether one of the two is true.",
    "xp.logical_xor(xp.asarray([True, False]), True) -> Array([False,  True])",
)
maximum = _binary(
    "maximum",
    candelabra.maximum,
    "The greater of the two; NaN where either is.",
    "xp.maximum(xp.asarray([1, 5]), 3) -> Array([3, 5])",
)
minimum = _binary(
    "minimum",
    candelabra.minimum,
    "The smaller of the two; NaN where either is.",
    "xp.minimum(xp.asarray([1, 5]), 3) -> Array([1, 3])",
)
multiply = _binary(
    "multiply", candelabra.mul, "Product of two arrays.", "xp.multiply(xp.asarray([1, 2]), 3) -> Array([3, 6])"
)
negative = _unary(
    "negative", candelabra.neg, "The negative of each.", "xp.negative(xp.asarray([1, -2])) -> Array([-1,  2])"
)
nextafter = _binary(
    "nextafter",
    candelabra.nextafter,
    "The next number that can be represented, from the first towards the second.",
    "xp.nextafter(xp.asarray([0.0]), 1.0) > 0 -> Array([True])",
)
not_equal = _binary(
    "not_equal", candelabra.ne, "Whether different.", "xp.not_equal(xp.asarray([1, 2]), 2) -> Array([ True, False])"
)
positive = _unary(
    "positive", lambda x: x.clone(), "The same numbers, copied.", "xp.positive(xp.asarray([1, -2])) -> Array([ 1, -2])"
)
pow = _binary(
    "pow", candelabra.pow, "The first to the power of the second.", "xp.pow(xp.asarray([2, 3]), 2) -> Array([4, 9])"
)
real = _unary("real", lambda x: x.real, "Real part of complex numbers.", "xp.real(xp.asarray([1 + 2j])) -> Array([1.])")
reciprocal = _unary(
    "reciprocal", candelabra.reciprocal, "One over each.", "xp.reciprocal(xp.asarray([4.0])) -> Array([0.2500])"
)
remainder = _binary(
    "remainder",
    _remainder,
    "What floor_divide() leaves; it has the sign of the divisor.",
    "xp.remainder(xp.asarray([5.0, -5.0]), 3.0) -> Array([2., 1.])",
)
round = _same_for_integers(
    "round",
    _round,
    "Rounded to the nearest, halves to the even one.",
    "xp.round(xp.asarray([0.5, 1.5, 2.4])) -> Array([0., 2., 2.])",
)
sign = _unary(
    "sign",
    _sign,
    "-1, 0 or 1 by the sign; NaN of NaN; z / abs(z) of a complex z.",
    "xp.sign(xp.asarray([-3.0, 0.0, 2.0])) -> Array([-1.,  0.,  1.])",
)
signbit = _unary(
    "signbit",
    candelabra.signbit,
    "Whether the sign bit is set, as it is of -0.",
    "xp.signbit(xp.asarray([0.0, -0.0])) -> Array([False,  True])",
)
sin = _unary("sin", candelabra.sin, "Sine.", "xp.sin(xp.asarray([0.0])) -> Array([0.])")
sinh = _unary("sinh", candelabra.sinh, "Hyperbolic sine.", "xp.sinh(xp.asarray([0.0])) -> Array([0.])")
sqrt = _unary("sqrt", candelabra.sqrt, "Square root.", "xp.sqrt(xp.asarray([9.0])) -> Array([3.])")
square = _unary("square", candelabra.square, "Square.", "xp.square(xp.asarray([3, -2])) -> Array([9, 4])")
subtract = _binary(
    "subtract", candelabra.sub, "Difference of two arrays.", "xp.subtract(xp.asarray([1, 2]), 3) -> Array([-2, -1])"
)
tan = _unary("tan", candelabra.tan, "Tangent.", "xp.tan(xp.asarray([0.0])) -> Array([0.])")
tanh = _unary("tanh", candelabra.tanh, "Hyperbolic tangent.", "xp.tanh(xp.asarray([0.0])) -> Array([0.])")
trunc = _same_for_integers(
    "trunc", candelabra.trunc, "Rounded towards 0.", "xp.trunc(xp.asarray([1.7, -1.7])) -> Array([ 1., -1.])"
)


def clip(x: Array, /, min: Array | int | float | None = None, max: Array | int | float | None = None) -> Array:
    """Bring every element into the range from `min` to `max`.

    The result has the data type of `x`, and the shape that `x` broadcasts to with the limits. It is
    NaN where `x` or a limit is.

    Parameters
    ----------
    x : Array
        Of a real data type.
    min, max : Array, int or float, optional
        Limits; None for none.

    Raises
    ------
    TypeError
        If a limit is neither an array, a number nor None.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.clip(xp.asarray([1, 5, 9]), 2, 6)
    Array([2, 5, 6])
    """
    result: Tensor = x
    for limit, choose in ((min, candelabra.maximum), (max, candelabra.minimum)):
        if limit is None:
            continue
        if isinstance(limit, Tensor):
            bound = limit.to(x.dtype)
        elif isinstance(limit, (int, float)):
            bound = _limit(limit, x)
        else:
            raise TypeError(f"clip(): a limit must be an array, a number or None, not {type(limit).__name__}")
        result = choose(result, bound)
    return fresh(x.clone()) if result is x else fresh(result)


def _limit(limit: int | float, x: Tensor) -> Tensor:
    """A limit in the array's data type; one that an integer type cannot hold limits nothing more
    than the type does.
    """
    if not (x.dtype.is_floating_point or x.dtype is candelabra.bool):
        info = candelabra.iinfo(x.dtype)
        limit = builtins.min(builtins.max(limit, info.min), info.max)
    return candelabra.full((), limit, dtype=x.dtype, device=x.device)
