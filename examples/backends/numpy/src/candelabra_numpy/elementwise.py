"""Elementwise operators, copies and constants."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

import candelabra
from candelabra_numpy.kernels import KERNELS, array, kernel, store

Array = Any

for _name, _function in {
    "neg": np.negative, "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "square": np.square,
    "conj_physical": np.conjugate, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
    "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": special.erf, "erfc": special.erfc,
    "erfinv": special.erfinv, "lgamma": special.gammaln, "digamma": special.digamma, "abs": np.abs, "angle": np.angle,
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "isposinf": np.isposinf, "isneginf": np.isneginf,
    "signbit": np.signbit, "logical_not": np.logical_not, "bitwise_not": np.invert, "mul": np.multiply,
    "maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin, "atan2": np.arctan2, "hypot": np.hypot,
    "copysign": np.copysign, "logaddexp": np.logaddexp, "logaddexp2": np.logaddexp2, "nextafter": np.nextafter,
    "fmod": np.fmod, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "where": np.where,
}.items():  # fmt: skip
    kernel(_name)(_function)


def _nextafter(out: Any, a: Any, b: Any) -> None:
    if out.dtype is candelabra.bfloat16:
        raise NotImplementedError("the numpy backend has no nextafter of bfloat16, since NumPy has none; use float32")
    _of_floats(out, a, b)


_of_floats, KERNELS["nextafter"] = KERNELS["nextafter"], _nextafter


@kernel("sgn")
def sgn(a: Array) -> Array:
    if not np.iscomplexobj(a):
        return np.sign(a)
    size = np.abs(a)
    return np.where(size == 0, 0, a / np.where(size == 0, 1, size))


@kernel("frac")
def frac(a: Array) -> Array:
    return a - np.trunc(a)


@kernel("relu")
def relu(a: Array) -> Array:
    return np.maximum(a, 0)


@kernel("round")
def round_(a: Array, decimals: int) -> Array:
    return np.round(a, decimals)


@kernel("rsqrt")
def rsqrt(a: Array) -> Array:
    return 1 / np.sqrt(a)


@kernel("reciprocal")
def reciprocal(a: Array) -> Array:
    return 1 / a


@kernel("sigmoid")
def sigmoid(a: Array) -> Array:
    return 1 / (1 + np.exp(-a)) if np.iscomplexobj(a) else special.expit(a)


@kernel("nan_to_num")
def nan_to_num(a: Array, nan: float | None, posinf: float | None, neginf: float | None) -> Array:
    return np.nan_to_num(a, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


@kernel("heaviside")
def heaviside(a: Array, at_zero: Array) -> Array:
    return np.where(a == 0, at_zero, a > 0)


@kernel("complex")
def complex_(real: Array, imag: Array) -> Array:
    result = np.empty(real.shape, np.result_type(real, np.complex64))
    result.real, result.imag = real, imag  # real + 1j * imag would turn an infinite part into NaN
    return result


@kernel("polar")
def polar(size: Array, angle: Array) -> Array:
    return complex_(size * np.cos(angle), size * np.sin(angle))


@kernel("add")
def add(a: Array, b: Array, alpha: Any) -> Array:
    if np.result_type(a) == np.bool_:
        return np.logical_or(a, np.logical_and(b, bool(alpha)))
    return a + b if alpha == 1 else a + np.asarray(alpha, np.result_type(a)) * b


@kernel("sub")
def sub(a: Array, b: Array, alpha: Any) -> Array:
    return a - b if alpha == 1 else a - np.asarray(alpha, np.result_type(a)) * b


def _refuse_zero(b: Array) -> None:
    if np.issubdtype(np.result_type(b), np.integer) and np.any(np.equal(b, 0)):
        raise RuntimeError("ZeroDivisionError")


@kernel("div")
def div(a: Array, b: Array, rounding_mode: str | None) -> Array:
    if rounding_mode is None:
        return np.divide(a, b)
    _refuse_zero(b)
    if rounding_mode == "floor":
        return floor_divide(a, b)
    if np.issubdtype(np.result_type(a, b), np.integer):
        quotient = np.floor_divide(a, b)
        return quotient + ((np.remainder(a, b) != 0) & (quotient < 0))
    return np.trunc(np.divide(a, b))


@kernel("floor_divide")
def floor_divide(a: Array, b: Array) -> Array:
    _refuse_zero(b)
    if np.issubdtype(np.result_type(a, b), np.integer):
        return np.floor_divide(a, b)
    # a finite number over zero is infinite, as in PyTorch
    return np.where(np.equal(b, 0), np.divide(a, b), np.floor_divide(a, b))


@kernel("remainder")
def remainder(a: Array, b: Array) -> Array:
    _refuse_zero(b)
    return np.remainder(a, b)


@kernel("pow")
def pow_(a: Array, b: Array) -> Array:
    if not np.issubdtype(np.result_type(a, b), np.integer):
        return np.power(a, b)
    # a negative exponent keeps powers of 1 and -1; others become 0
    power = np.power(a, np.maximum(b, 0))
    odd = np.equal(np.remainder(b, 2), 1)
    inverse = np.where(np.equal(a, 1), 1, np.where(np.equal(a, -1), np.where(odd, -1, 1), 0))
    return np.where(np.less(b, 0), inverse, power)


@kernel("xlogy")
def xlogy(a: Array, b: Array) -> Array:
    return np.where(np.isnan(b), np.nan, special.xlogy(a, b))


@kernel("bitwise_left_shift")
def left_shift(a: Array, b: Array) -> Array:
    bits = np.result_type(a).itemsize * 8
    return np.where(np.less(b, 0) | np.greater_equal(b, bits), 0, np.left_shift(a, np.clip(b, 0, bits - 1)))


@kernel("bitwise_right_shift")
def right_shift(a: Array, b: Array) -> Array:
    bits = np.result_type(a).itemsize * 8
    return np.right_shift(a, np.where(np.less(b, 0) | np.greater_equal(b, bits), bits - 1, b))


@kernel("clamp")
def clamp(a: Array, low: Array, high: Array) -> Array:
    result = a if low is None else np.maximum(a, low)
    return result if high is None else np.minimum(result, high)


@kernel("lerp")
def lerp(a: Array, b: Array, weight: Array) -> Array:
    return np.where(np.less(np.abs(weight), 0.5), a + weight * (b - a), b - (b - a) * (1 - weight))


@kernel("addcmul")
def addcmul(a: Array, b: Array, c: Array, value: Any) -> Array:
    return a + np.asarray(value, a.dtype) * b * c


@kernel("addcdiv")
def addcdiv(a: Array, b: Array, c: Array, value: Any) -> Array:
    return a + np.asarray(value, a.dtype) * b / c


def _copy(out: Any, _: Any, source: Any, non_blocking: bool) -> None:
    values = array(source)
    if np.iscomplexobj(values) and not out.is_complex():
        values = values.real
    with np.errstate(all="ignore"):
        store(out, values.copy() if np.may_share_memory(array(out), values) else values)


KERNELS["copy_"] = _copy  # drop the imaginary part without NumPy's warning


@kernel("fill_")
def fill(_: Array, value: Any) -> Array:
    return value


@kernel("arange")
def arange(start: Any, end: Any, step: Any, dtype: Any, device: Any) -> Array:
    count = max(int(np.ceil((end - start) / step)), 0)
    return start + np.arange(count) * step


@kernel("linspace")
def linspace(start: Any, end: Any, steps: int, dtype: Any, device: Any) -> Array:
    return np.linspace(start, end, steps)


@kernel("cat")
def cat(tensors: tuple[Array, ...], dim: int) -> Array:
    return np.concatenate(tensors, axis=dim)


@kernel("flip")
def flip(a: Array, dims: tuple[int, ...]) -> Array:
    return np.flip(a, dims)


@kernel("tril")
def tril(a: Array, diagonal: int) -> Array:
    return np.tril(a, diagonal)


@kernel("triu")
def triu(a: Array, diagonal: int) -> Array:
    return np.triu(a, diagonal)
