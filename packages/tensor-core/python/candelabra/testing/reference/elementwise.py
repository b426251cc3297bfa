"""References of the elementwise operators. Inputs are float64, complex128, int64 or bool, with
values that the tested dtype represents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import special

from candelabra.testing.sampling import (
    ALL,
    BOOLEAN,
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMBERS,
    REAL,
    Input,
    Reference,
    Sample,
    Samples,
    layouts,
    numbers,
    pairs,
    special_values,
)

Array = np.ndarray
REFERENCES: dict[str, Reference] = {}


def one(low: float = -4, high: float = 4, special_ones: bool = True, **keywords: Any) -> Samples:
    """Yield calls with one tensor."""

    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for a in layouts(rng, dtype, low, high):
            yield Sample((a,), keywords)
        if special_ones:
            for a in special_values(dtype):
                yield Sample((a,), keywords)

    return samples


def two(low: float = -4, high: float = 4, number: Any = 2, **keywords: Any) -> Samples:
    """Yield calls with two tensors, and with a number as the second argument."""

    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for a, b in pairs(rng, dtype, low, high):
            yield Sample((a, b), keywords)
        if number is not None:
            yield Sample(
                (Input(numbers(rng, dtype, (3, 4), low, high), dtype), True if dtype == "bool" else number), keywords
            )
        if keywords == {} and dtype in FLOATS:
            odd = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0, -2.0])
            yield Sample((Input(odd[:, None].repeat(6, 1), dtype), Input(odd, dtype)))

    return samples


def unary(
    name: str, function: Callable[..., Any], dtypes: tuple[str, ...] = NUMBERS, tolerance: float = 1.0, **how: Any
) -> None:
    REFERENCES[name] = Reference(function, one(**how), dtypes, tolerance)


def binary(
    name: str, function: Callable[..., Any], dtypes: tuple[str, ...] = NUMBERS, tolerance: float = 1.0, **how: Any
) -> None:
    REFERENCES[name] = Reference(function, two(**how), dtypes, tolerance)


def sgn(a: Array) -> Array:
    size = np.abs(a)
    return np.where(size == 0, 0, a / np.where(size == 0, 1, size)) if np.iscomplexobj(a) else np.sign(a)


# ---- one argument

unary("neg", np.negative)
unary("sign", np.sign, REAL, special_ones=False)
unary("sgn", sgn, NUMBERS, special_ones=False)
unary("floor", np.floor, REAL)
unary("ceil", np.ceil, REAL)
unary("trunc", np.trunc, REAL)
unary("round", lambda a, decimals=0: np.round(a, decimals), REAL)
unary("frac", lambda a: a - np.trunc(a), FLOATS, special_ones=False)
unary("square", np.square)
unary("conj_physical", np.conjugate, special_ones=False)
unary("relu", lambda a: np.maximum(a, 0), REAL)
unary("bitwise_not", np.invert, (*BOOLEAN, "int8", "int16", "int32", "int64"))
unary("nan_to_num", lambda a, **k: np.nan_to_num(a, **k), ("float64",), nan=0.5, posinf=2.0, neginf=-3.0)
unary("abs", np.abs)
unary("angle", np.angle, ("float32", "float64", *COMPLEX), special_ones=False)

_FLOAT_RESULTS = ("float32", "float64", "bfloat16", "float16", "int32", "uint8")
for _name, _function, _low, _high in (
    ("exp", np.exp, -4, 4), ("exp2", np.exp2, -4, 4), ("expm1", np.expm1, -4, 4), ("sin", np.sin, -4, 4), ("cos", np.cos, -4, 4),
    ("tanh", np.tanh, -4, 4), ("sinh", np.sinh, -4, 4), ("cosh", np.cosh, -4, 4), ("atan", np.arctan, -4, 4),
    ("asinh", np.arcsinh, -4, 4), ("sqrt", np.sqrt, 0, 9), ("log", np.log, 0.1, 9), ("log2", np.log2, 0.1, 9),
    ("log10", np.log10, 0.1, 9), ("log1p", np.log1p, 0.1, 9), ("rsqrt", lambda a: 1 / np.sqrt(a), 0.2, 9),
    ("tan", np.tan, -1.2, 1.2), ("asin", np.arcsin, -1, 1), ("acos", np.arccos, -1, 1), ("atanh", np.arctanh, -0.8, 0.8),
    ("acosh", np.arccosh, 1.1, 9), ("reciprocal", lambda a: 1 / a, 0.5, 4), ("sigmoid", special.expit, -4, 4),
    ("erf", special.erf, -3, 3), ("erfc", special.erfc, -3, 3), ("erfinv", special.erfinv, -0.9, 0.9),
    ("lgamma", special.gammaln, 0.3, 9), ("digamma", special.digamma, 2, 9),
):  # fmt: skip
    unary(_name, _function, _FLOAT_RESULTS, 10, low=_low, high=_high, special_ones=_name not in ("lgamma", "digamma"))

for _name, _function in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)):
    unary(_name, _function, NUMBERS)
for _name, _function in (("isposinf", np.isposinf), ("isneginf", np.isneginf), ("signbit", np.signbit)):
    unary(_name, _function, FLOATS)
unary("logical_not", np.logical_not, ALL)


def complex_(real: Array, imag: Array) -> Array:
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), np.complex128)
    result.real, result.imag = real, imag  # real + 1j * imag would turn an infinite part into NaN
    return result


REFERENCES["complex"] = Reference(complex_, two(number=None), ("float32", "float64"))
REFERENCES["polar"] = Reference(
    lambda r, a: complex_(r * np.cos(a), r * np.sin(a)), two(number=None, low=0.5), ("float32", "float64"), 5
)

# ---- two arguments

binary("add", lambda a, b, alpha=1: np.add(a, alpha * b), alpha=2)
binary("sub", lambda a, b, alpha=1: np.subtract(a, alpha * b), ("int32", "int64", *FLOATS, *COMPLEX))
binary("rsub", lambda a, b, alpha=1: np.subtract(b, alpha * a), ("int32", "int64", *FLOATS, *COMPLEX))
binary("mul", np.multiply, ALL)


def divide(a: Array, b: Any, rounding_mode: str | None = None) -> Array:
    exact = np.divide(a, b)
    return exact if rounding_mode is None else np.floor(exact) if rounding_mode == "floor" else np.trunc(exact)


def _divisions(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for mode in (None, "floor", "trunc"):
        if mode and dtype in COMPLEX:
            continue
        for a, b in pairs(rng, dtype, -9, 9):
            b.values = np.where(np.abs(b.values) < 0.5, 2, b.values)
            if mode:  # a quotient just at a whole number would round either way
                a.values, b.values = (
                    np.trunc(a.values).astype(b.values.dtype),
                    np.trunc(b.values) + (np.trunc(b.values) == 0),
                )
            yield Sample((a, b), {"rounding_mode": mode})
    if dtype in FLOATS:
        yield Sample(
            (
                Input(np.array([1.0, -1.0, 0.0, np.inf, np.nan]), dtype),
                Input(np.array([0.0, 0.0, 0.0, np.inf, 1.0]), dtype),
            )
        )


REFERENCES["div"] = Reference(divide, _divisions, ("int32", "int64", "float32", "float64", "bfloat16", *COMPLEX))


def _whole_quotients(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a, b in pairs(rng, dtype, -9, 9):
        a.values, b.values = np.trunc(a.values), np.trunc(b.values)
        b.values = np.where(b.values == 0, 3, b.values)
        if dtype in INTEGERS:
            a.values, b.values = a.values.astype(np.int64), b.values.astype(np.int64)
        yield Sample((a, b))
    yield Sample((Input(np.arange(5) if dtype in INTEGERS else np.arange(5.0), dtype), 3))


for _name, _function in (("floor_divide", np.floor_divide), ("remainder", np.remainder), ("fmod", np.fmod)):
    REFERENCES[_name] = Reference(_function, _whole_quotients, ("int8", "int32", "int64", *FLOATS))
binary("pow", np.power, ("float32", "float64", "bfloat16"), 20, low=0.3, high=3, number=2)
for _name, _function in (("maximum", np.maximum), ("minimum", np.minimum), ("fmax", np.fmax), ("fmin", np.fmin)):
    binary(_name, _function, (*BOOLEAN, *REAL), number=None)
for _name, _function in (
    ("atan2", np.arctan2), ("hypot", np.hypot), ("copysign", np.copysign), ("logaddexp", np.logaddexp), ("logaddexp2", np.logaddexp2),
):  # fmt: skip
    binary(_name, _function, ("float32", "float64"), 10, number=None)
binary(
    "xlogy",
    lambda a, b: np.where(np.isnan(b), np.nan, special.xlogy(a, b)),
    ("float32", "float64"),
    10,
    number=None,
    low=0.1,
)
binary("nextafter", np.nextafter, ("float64",), number=None)
binary("heaviside", lambda a, b: np.where(a == 0, b, a > 0), FLOATS, number=None)

_BITS = (*BOOLEAN, *INTEGERS)
for _name, _function in (
    ("bitwise_and", np.bitwise_and),
    ("bitwise_or", np.bitwise_or),
    ("bitwise_xor", np.bitwise_xor),
):
    binary(_name, _function, _BITS, number=3)
binary("bitwise_left_shift", np.left_shift, ("int32", "int64"), low=0, high=5)
binary("bitwise_right_shift", np.right_shift, INTEGERS, low=0, high=5)
for _name, _function in (
    ("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor),
):  # fmt: skip
    binary(_name, _function, ALL, number=None, low=-2, high=2)
for _name, _function in (("eq", np.equal), ("ne", np.not_equal)):
    binary(_name, _function, ALL, low=-2, high=2)
for _name, _function in (("lt", np.less), ("le", np.less_equal), ("gt", np.greater), ("ge", np.greater_equal)):
    binary(_name, _function, (*BOOLEAN, *REAL), low=-2, high=2)

# ---- three arguments


def _choices(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a, b in pairs(rng, dtype):
        shape = np.broadcast_shapes(a.values.shape, b.values.shape)
        yield Sample((Input(numbers(rng, "bool", shape), "bool"), a, b))
    yield Sample(
        (
            Input(numbers(rng, "bool", (4, 1)), "bool"),
            Input(numbers(rng, dtype, (4, 3)), dtype),
            True if dtype == "bool" else 1,
        )
    )


REFERENCES["where"] = Reference(np.where, _choices, ALL)


def _bounds(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a in layouts(rng, dtype):
        yield Sample((a, 1, 2))
        yield Sample((a,), {"min": 1})
        yield Sample((a,), {"max": 2})
    for a, b in pairs(rng, dtype):
        yield Sample((a, b))


def clamp(a: Array, min: Any = None, max: Any = None) -> Array:
    low = a if min is None else np.maximum(a, min)
    return low if max is None else np.minimum(low, max)


REFERENCES["clamp"] = Reference(clamp, _bounds, REAL)


def _triples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a, b in pairs(rng, dtype, 0.5, 3):
        shape = np.broadcast_shapes(a.values.shape, b.values.shape)
        yield Sample((a, b, Input(numbers(rng, dtype, shape, 0.5, 3), dtype)))


REFERENCES["lerp"] = Reference(lambda a, b, w: a + w * (b - a), _triples, ("float32", "float64"), 10)
REFERENCES["addcmul"] = Reference(
    lambda a, b, c, value=1: a + value * b * c, _triples, ("float32", "float64", "int32"), 10
)
REFERENCES["addcdiv"] = Reference(lambda a, b, c, value=1: a + value * b / c, _triples, ("float32", "float64"), 10)

# ---- activations


def _normal_cdf(a: Array) -> Array:
    return 0.5 * (1 + special.erf(a / np.sqrt(2)))


def gelu(a: Array, approximate: str = "none") -> Array:
    if approximate == "none":
        return a * _normal_cdf(a)
    return 0.5 * a * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3)))


def gelu_slope(grad: Array, a: Array, approximate: str = "none") -> Array:
    if approximate == "none":
        return grad * (_normal_cdf(a) + a * np.exp(-0.5 * a * a) / np.sqrt(2 * np.pi))
    inner = np.sqrt(2 / np.pi) * (a + 0.044715 * a**3)
    slope = np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * a**2)
    return grad * (0.5 * (1 + np.tanh(inner)) + 0.5 * a * (1 - np.tanh(inner) ** 2) * slope)


def softplus(a: Array, beta: float = 1, threshold: float = 20) -> Array:
    return np.where(a * beta > threshold, a, np.log1p(np.exp(np.minimum(a * beta, threshold))) / beta)


def _same_shape(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a in layouts(rng, dtype):
        yield Sample((Input(numbers(rng, dtype, a.values.shape), dtype), a))


_ACTIVATED = ("float32", "float64", "bfloat16")
unary("gelu", gelu, _ACTIVATED, 20, special_ones=False)
unary("silu", lambda a: a * special.expit(a), _ACTIVATED, 10, special_ones=False)
unary("mish", lambda a: a * np.tanh(softplus(a)), _ACTIVATED, 20, special_ones=False)
unary("log_sigmoid", special.log_expit, _ACTIVATED, 20, special_ones=False)
unary("softplus", softplus, _ACTIVATED, 20, special_ones=False)
unary("elu", lambda a: np.where(a > 0, a, np.expm1(np.minimum(a, 0))), _ACTIVATED, 20, special_ones=False)
unary("logit", special.logit, _ACTIVATED, 10, low=0.01, high=0.99, special_ones=False)
unary("leaky_relu", lambda a: np.where(a > 0, a, 0.01 * a), _ACTIVATED, 5, special_ones=False)
REFERENCES["gelu_backward"] = Reference(gelu_slope, _same_shape, _ACTIVATED, 20)
REFERENCES["silu_backward"] = Reference(
    lambda g, a: g * special.expit(a) * (1 + a * (1 - special.expit(a))), _same_shape, _ACTIVATED, 20
)
REFERENCES["sigmoid_backward"] = Reference(lambda g, y: g * y * (1 - y), _same_shape, _ACTIVATED, 20)
REFERENCES["tanh_backward"] = Reference(lambda g, y: g * (1 - y * y), _same_shape, _ACTIVATED, 20)


def _thresholds(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for sample in _same_shape(rng, dtype):
        yield Sample((*sample.arguments, 0))


REFERENCES["threshold_backward"] = Reference(lambda g, a, t: np.where(a > t, g, 0), _thresholds, _ACTIVATED)


def _with(*numbers_: Any) -> Samples:
    """Yield calls with one tensor and numbers."""

    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for a in layouts(rng, dtype):
            yield Sample((a, *numbers_))

    return samples


def _pair_with(*numbers_: Any) -> Samples:
    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for sample in _same_shape(rng, dtype):
            yield Sample((*sample.arguments, *numbers_))

    return samples


def _cut(a: Array, low: float = -1, high: float = 1) -> Array:
    return np.clip(a, low, high)


def _tanh_softplus(a: Array) -> Array:
    return np.tanh(np.logaddexp(0, a))


REFERENCES["hardtanh"] = Reference(_cut, _with(-1.5, 2), _ACTIVATED)
REFERENCES["hardswish"] = Reference(lambda a: a * _cut(a + 3, 0, 6) / 6, _with(), _ACTIVATED, 10)
REFERENCES["hardsigmoid"] = Reference(lambda a: _cut(a + 3, 0, 6) / 6, _with(), _ACTIVATED, 10)
REFERENCES["hardshrink"] = Reference(lambda a, limit: np.where(np.abs(a) <= limit, 0, a), _with(0.75), _ACTIVATED)
REFERENCES["softshrink"] = Reference(
    lambda a, limit: np.sign(a) * np.maximum(np.abs(a) - limit, 0), _with(0.75), _ACTIVATED, 10
)
REFERENCES["threshold"] = Reference(lambda a, limit, value: np.where(a <= limit, value, a), _with(0.5, 8.0), _ACTIVATED)
REFERENCES["prelu"] = Reference(lambda a, w: np.where(a > 0, a, w * a), two(number=None), _ACTIVATED, 5)
REFERENCES["hardtanh_backward"] = Reference(
    lambda g, a, low, high: np.where((a <= low) | (a >= high), 0, g), _pair_with(-1.5, 2), _ACTIVATED
)
REFERENCES["hardswish_backward"] = Reference(
    lambda g, a: g * np.where(a <= -3, 0, np.where(a < 3, a / 3 + 0.5, 1)), _pair_with(), _ACTIVATED, 20
)
REFERENCES["hardsigmoid_backward"] = Reference(
    lambda g, a: np.where((a > -3) & (a < 3), g / 6, 0), _pair_with(), _ACTIVATED, 5
)
REFERENCES["shrink_backward"] = Reference(
    lambda g, a, limit: np.where(np.abs(a) <= limit, 0, g), _pair_with(0.75), _ACTIVATED
)
REFERENCES["leaky_relu_backward"] = Reference(
    lambda g, a, slope: np.where(a > 0, g, g * slope), _pair_with(0.25), _ACTIVATED, 5
)
REFERENCES["elu_backward"] = Reference(
    lambda g, a, alpha, scale, by: g * np.where(a > 0, scale, alpha * scale * by * np.exp(np.minimum(a, 0) * by)),
    _pair_with(1.5, 2.0, 0.5), _ACTIVATED, 20,
)  # fmt: skip
REFERENCES["softplus_backward"] = Reference(
    lambda g, a, beta, limit: np.where(a * beta > limit, g, g * special.expit(a * beta)),
    _pair_with(2.0, 5.0),
    _ACTIVATED,
    20,
)
REFERENCES["log_sigmoid_backward"] = Reference(lambda g, a: g * special.expit(-a), _pair_with(), _ACTIVATED, 20)
REFERENCES["mish_backward"] = Reference(
    lambda g, a: g * (_tanh_softplus(a) + a * special.expit(a) * (1 - _tanh_softplus(a) ** 2)),
    _pair_with(),
    _ACTIVATED,
    20,
)
