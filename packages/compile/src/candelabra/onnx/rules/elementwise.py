"""Rules of elementwise arithmetic, comparisons and choices."""

from __future__ import annotations

import math
from typing import Any

import candelabra

from ..builder import FLOAT, Builder, Value
from .dtypes import apply, computed_in, promoted
from .table import rule

_UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh", "ceil": "Ceil",
    "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor", "log": "Log", "neg": "Neg", "reciprocal": "Reciprocal",
    "sgn": "Sign", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
_BINARY = {"maximum": "Max", "minimum": "Min", "mul": "Mul", "pow": "Pow"}
_COMPARISONS = {"eq": "Equal", "ge": "GreaterOrEqual", "gt": "Greater", "le": "LessOrEqual", "lt": "Less"}
_LOGICAL = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
_BITWISE = {"and": "And", "or": "Or", "xor": "Xor"}


def _unary(kind: str) -> Any:
    return lambda b, self: apply(b, kind, self)


def _binary(kind: str) -> Any:
    return lambda b, self, other: apply(b, kind, self, other)


for _operator, _kind in _UNARY.items():
    rule(_operator)(_unary(_kind))
for _operator, _kind in _BINARY.items():
    rule(_operator, sizes="self other exponent")(_binary(_kind))


def _compared(b: Builder, kind: str, self: Any, other: Any) -> str:
    dtype = computed_in(promoted(self, other))
    return b.op(kind, b.as_dtype(self, dtype), b.as_dtype(other, dtype))


def _comparison(kind: str) -> Any:
    return lambda b, self, other: b.cast(_compared(b, kind, self, other), b.result.dtype, candelabra.bool)


for _operator, _kind in _COMPARISONS.items():
    rule(_operator, sizes="self other")(_comparison(_kind))


@rule("ne", sizes="self other")
def _ne(b: Builder, self: Any, other: Any) -> str:
    return b.cast(b.op("Not", _compared(b, "Equal", self, other)), b.result.dtype, candelabra.bool)


def _logical(kind: str) -> Any:
    def function(b: Builder, self: Any, other: Any) -> str:
        found = b.op(kind, b.as_dtype(self, candelabra.bool), b.as_dtype(other, candelabra.bool))
        return b.cast(found, b.result.dtype, candelabra.bool)

    return function


for _operator, _kind in _LOGICAL.items():
    rule(_operator)(_logical(_kind))


def _bitwise(kind: str) -> Any:
    def function(b: Builder, self: Any, other: Any) -> str:
        dtype = b.result.dtype
        prefix = "" if dtype is candelabra.bool else "Bitwise"
        return b.op(prefix + kind, b.as_dtype(self, dtype), b.as_dtype(other, dtype))

    return function


for _operator, _kind in _BITWISE.items():
    rule(f"bitwise_{_operator}")(_bitwise(_kind))


@rule("bitwise_not")
def _bitwise_not(b: Builder, self: Value) -> str:
    return b.op("Not" if self.dtype is candelabra.bool else "BitwiseNot", self)


@rule("logical_not")
def _logical_not(b: Builder, self: Value) -> str:
    return b.cast(b.op("Not", b.cast(self, candelabra.bool)), b.result.dtype, candelabra.bool)


# ---- arithmetic


def _scaled(b: Builder, value: Any, alpha: Any) -> str:
    name = b.as_dtype(value, computed_in(b.result.dtype))
    return name if alpha == 1 else b.op("Mul", name, b.constant(alpha, computed_in(b.result.dtype)))


def _sum(b: Builder, kind: str, first: str, second: str) -> str:
    return b.cast(b.op(kind, first, second), b.result.dtype, computed_in(b.result.dtype))


@rule("add", sizes="self other")
def _add(b: Builder, self: Any, other: Any, *, alpha: Any = 1) -> str:
    return _sum(b, "Add", _scaled(b, self, 1), _scaled(b, other, alpha))


@rule("sub", sizes="self other")
def _sub(b: Builder, self: Any, other: Any, *, alpha: Any = 1) -> str:
    return _sum(b, "Sub", _scaled(b, self, 1), _scaled(b, other, alpha))


@rule("rsub", sizes="self other")
def _rsub(b: Builder, self: Any, other: Any, *, alpha: Any = 1) -> str:
    return _sum(b, "Sub", _scaled(b, other, 1), _scaled(b, self, alpha))


def _floor_quotient(b: Builder, self: Any, other: Any) -> str:
    dtype = b.result.dtype
    inner = computed_in(dtype)
    x, y = b.as_dtype(self, inner), b.as_dtype(other, inner)
    if dtype.is_floating_point:
        return b.op("Floor", b.op("Div", x, y))
    # The quotient of integers is rounded to zero; the remainder has the sign of the divisor.
    return b.cast(b.op("Div", b.op("Sub", x, b.op("Mod", x, y)), y), dtype, inner)


@rule("div", sizes="self other")
def _div(b: Builder, self: Any, other: Any, *, rounding_mode: str | None = None) -> str:
    if rounding_mode == "floor":
        return _floor_quotient(b, self, other)
    found = apply(b, "Div", self, other)
    return _truncated(b, found) if rounding_mode == "trunc" and b.result.dtype.is_floating_point else found


@rule("floor_divide", sizes="self other")
def _floor_divide(b: Builder, self: Any, other: Any) -> str:
    return _floor_quotient(b, self, other)


@rule("remainder", sizes="self other")
def _remainder(b: Builder, self: Any, other: Any) -> str:
    dtype = b.result.dtype
    if not dtype.is_floating_point:
        return apply(b, "Mod", self, other)
    x, y = b.as_dtype(self, dtype), b.as_dtype(other, dtype)
    return b.op("Sub", x, b.op("Mul", b.op("Floor", b.op("Div", x, y)), y))


@rule("fmod")
def _fmod(b: Builder, self: Any, other: Any) -> str:
    return apply(b, "Mod", self, other, fmod=1)


@rule("addcmul")
def _addcmul(b: Builder, self: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> str:
    return _sum(b, "Add", _scaled(b, self, 1), b.op("Mul", _scaled(b, tensor1, value), _scaled(b, tensor2, 1)))


@rule("addcdiv")
def _addcdiv(b: Builder, self: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> str:
    return b.op("Add", _scaled(b, self, 1), b.op("Div", _scaled(b, tensor1, value), _scaled(b, tensor2, 1)))


@rule("lerp")
def _lerp(b: Builder, self: Any, end: Any, weight: Any) -> str:
    x, y, w = (_scaled(b, one, 1) for one in (self, end, weight))
    return b.op("Add", x, b.op("Mul", w, b.op("Sub", y, x)))


def _float(b: Builder, value: Any) -> str:
    return b.as_dtype(value, b.result.dtype)


def _number(b: Builder, value: float) -> str:
    return b.constant(value, b.result.dtype)


@rule("rsqrt")
def _rsqrt(b: Builder, self: Value) -> str:
    return b.op("Reciprocal", b.op("Sqrt", _float(b, self)))


@rule("square")
def _square(b: Builder, self: Value) -> str:
    return apply(b, "Mul", self, self)


@rule("exp2")
def _exp2(b: Builder, self: Value) -> str:
    return b.op("Pow", _number(b, 2), _float(b, self))


@rule("expm1")
def _expm1(b: Builder, self: Value) -> str:
    return b.op("Sub", b.op("Exp", _float(b, self)), _number(b, 1))


@rule("log1p")
def _log1p(b: Builder, self: Value) -> str:
    return b.op("Log", b.op("Add", _float(b, self), _number(b, 1)))


@rule("log2")
def _log2(b: Builder, self: Value) -> str:
    return b.op("Div", b.op("Log", _float(b, self)), _number(b, math.log(2)))


@rule("log10")
def _log10(b: Builder, self: Value) -> str:
    return b.op("Div", b.op("Log", _float(b, self)), _number(b, math.log(10)))


@rule("erfc")
def _erfc(b: Builder, self: Value) -> str:
    return b.op("Sub", _number(b, 1), b.op("Erf", _float(b, self)))


def _truncated(b: Builder, name: str) -> str:
    return b.op("Mul", b.op("Sign", name), b.op("Floor", b.op("Abs", name)))


@rule("trunc")
def _trunc(b: Builder, self: Value) -> str:
    return _truncated(b, b.name(self)) if self.dtype.is_floating_point else b.name(self)


@rule("frac")
def _frac(b: Builder, self: Value) -> str:
    return b.op("Sub", self, _truncated(b, b.name(self)))


@rule("round")
def _round(b: Builder, self: Value, *, decimals: int = 0) -> str:
    if not self.dtype.is_floating_point:
        return b.name(self)
    if decimals == 0:
        return b.op("Round", self)
    power = _number(b, 10.0 ** abs(decimals))
    there, back = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
    return b.op(back, b.op("Round", b.op(there, self, power)), power)


@rule("logit")
def _logit(b: Builder, self: Value, eps: float | None = None) -> str:
    x = _float(b, self)
    if eps is not None:
        x = b.op("Clip", x, _number(b, eps), _number(b, 1 - eps))
    return b.op("Log", b.op("Div", x, b.op("Sub", _number(b, 1), x)))


@rule("hypot")
def _hypot(b: Builder, self: Any, other: Any) -> str:
    x, y = _float(b, self), _float(b, other)
    return b.op("Sqrt", b.op("Add", b.op("Mul", x, x), b.op("Mul", y, y)))


@rule("atan2")
def _atan2(b: Builder, self: Any, other: Any) -> str:
    y, x = _float(b, self), _float(b, other)
    zero, pi = _number(b, 0), _number(b, math.pi)
    turn = b.op("Where", b.op("Less", y, zero), b.op("Neg", pi), pi)
    angle = b.op("Atan", b.op("Div", y, x))
    angle = b.op("Where", b.op("Less", x, zero), b.op("Add", angle, turn), angle)
    both = b.op("And", b.op("Equal", x, zero), b.op("Equal", y, zero))
    return b.op("Where", both, zero, angle)


@rule("logaddexp")
def _logaddexp(b: Builder, self: Any, other: Any) -> str:
    x, y = _float(b, self), _float(b, other)
    gap = b.op("Neg", b.op("Abs", b.op("Sub", x, y)))
    return b.op("Add", b.op("Max", x, y), b.op("Softplus", gap))


@rule("xlogy")
def _xlogy(b: Builder, self: Any, other: Any) -> str:
    x, y = _float(b, self), _float(b, other)
    zero = _number(b, 0)
    return b.op("Where", b.op("Equal", x, zero), zero, b.op("Mul", x, b.op("Log", y)))


@rule("copysign")
def _copysign(b: Builder, self: Any, other: Any) -> str:
    size, sign, zero = b.op("Abs", _float(b, self)), _float(b, other), _number(b, 0)
    # The reciprocal tells the two zeros apart.
    is_negative = b.op("Or", b.op("Less", sign, zero), b.op("Less", b.op("Reciprocal", sign), zero))
    return b.op("Where", is_negative, b.op("Neg", size), size)


@rule("heaviside")
def _heaviside(b: Builder, self: Value, values: Value) -> str:
    x, zero = _float(b, self), _number(b, 0)
    step = b.op("Where", b.op("Less", x, zero), zero, _number(b, 1))
    return b.op("Where", b.op("Equal", x, zero), _float(b, values), step)


# ---- questions and choices


@rule("isnan")
def _isnan(b: Builder, self: Value) -> str:
    return b.op("IsNaN", _as_float(b, self))


def _as_float(b: Builder, self: Value) -> str:
    return b.name(self) if self.dtype.is_floating_point else b.cast(self, FLOAT)


@rule("isinf")
def _isinf(b: Builder, self: Value) -> str:
    return b.op("IsInf", b.cast(self, FLOAT))


@rule("isposinf")
def _isposinf(b: Builder, self: Value) -> str:
    return b.op("IsInf", b.cast(self, FLOAT), detect_negative=0)


@rule("isneginf")
def _isneginf(b: Builder, self: Value) -> str:
    return b.op("IsInf", b.cast(self, FLOAT), detect_positive=0)


@rule("isfinite")
def _isfinite(b: Builder, self: Value) -> str:
    x = b.cast(self, FLOAT)
    return b.op("Not", b.op("Or", b.op("IsNaN", x), b.op("IsInf", x)))


@rule("fmax")
def _fmax(b: Builder, self: Any, other: Any) -> str:
    return _ignoring_nan(b, "Max", self, other)


@rule("fmin")
def _fmin(b: Builder, self: Any, other: Any) -> str:
    return _ignoring_nan(b, "Min", self, other)


def _ignoring_nan(b: Builder, kind: str, self: Any, other: Any) -> str:
    if not b.result.dtype.is_floating_point:
        return apply(b, kind, self, other)
    x, y = _float(b, self), _float(b, other)
    of_both = b.op("Where", b.op("IsNaN", y), x, b.op(kind, x, y))
    return b.op("Where", b.op("IsNaN", x), y, of_both)


@rule("clamp", sizes="min max")
def _clamp(b: Builder, self: Value, min: Any = None, max: Any = None) -> str:
    inner = computed_in(b.result.dtype)
    name = b.as_dtype(self, inner)
    if min is not None:
        name = b.op("Max", name, b.as_dtype(min, inner))
    if max is not None:
        name = b.op("Min", name, b.as_dtype(max, inner))
    return b.cast(name, b.result.dtype, inner)


@rule("nan_to_num")
def _nan_to_num(
    b: Builder, self: Value, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> str:
    if not self.dtype.is_floating_point:
        return b.name(self)
    limits = candelabra.finfo(self.dtype)
    name = b.op("Where", b.op("IsNaN", self), _number(b, nan or 0.0), self)
    infinite = b.op("IsInf", b.cast(name, FLOAT, self.dtype), detect_negative=0)
    name = b.op("Where", infinite, _number(b, limits.max if posinf is None else posinf), name)
    infinite = b.op("IsInf", b.cast(name, FLOAT, self.dtype), detect_positive=0)
    return b.op("Where", infinite, _number(b, limits.min if neginf is None else neginf), name)


@rule("where", sizes="input other")
def _where(b: Builder, condition: Value, input: Any, other: Any) -> str:
    dtype = b.result.dtype
    return b.op("Where", b.cast(condition, candelabra.bool), b.as_dtype(input, dtype), b.as_dtype(other, dtype))


@rule("masked_fill", sizes="value")
def _masked_fill(b: Builder, self: Value, mask: Value, value: Any) -> str:
    return b.op("Where", b.cast(mask, candelabra.bool), b.as_dtype(value, b.result.dtype), self)


@rule("to", "_to_copy")
def _to(b: Builder, self: Value, *arguments: Any, **options: Any) -> str:
    return b.cast(self, b.result.dtype)


@rule("alias", "clone", "contiguous", "detach")
def _same(b: Builder, self: Value) -> str:
    return b.name(self)
