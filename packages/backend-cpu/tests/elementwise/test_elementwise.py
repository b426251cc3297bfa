"""Test elementwise kernels against NumPy and SciPy: values, dtypes, strides, special values,
errors.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special
from arrays import ALL, COMPLEX, FLOATS, INTEGERS, ULP, assert_ulp, numbers, uniform
from harness import RUNTIME_ERROR, BFloat16, KernelError, Number, Scalar, call

import candelabra

UNARY_FLOAT: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "exp": (np.exp, -86, 88), "exp2": (np.exp2, -125, 125), "expm1": (np.expm1, -20, 80), "log": (np.log, 1e-30, 1e30),
    "log2": (np.log2, 1e-30, 1e30), "log10": (np.log10, 1e-30, 1e30), "log1p": (np.log1p, -0.999, 100), "sqrt": (np.sqrt, 0, 1e30),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-20, 1e20), "reciprocal": (lambda x: 1 / x, 0.01, 1e10), "sin": (np.sin, -1e4, 1e4),
    "cos": (np.cos, -1e4, 1e4), "tan": (np.tan, -1e4, 1e4), "asin": (np.arcsin, -1, 1), "acos": (np.arccos, -1, 1),
    "atan": (np.arctan, -50, 50), "sinh": (np.sinh, -80, 80), "cosh": (np.cosh, -80, 80), "tanh": (np.tanh, -12, 12),
    "asinh": (np.arcsinh, -1e6, 1e6), "acosh": (np.arccosh, 1, 1e6), "atanh": (np.arctanh, -0.999, 0.999),
    "sigmoid": (scipy.special.expit, -40, 40), "erf": (scipy.special.erf, -6, 6), "erfc": (scipy.special.erfc, -6, 9),
    "erfinv": (scipy.special.erfinv, -0.9999, 0.9999), "frac": (lambda x: x - np.trunc(x), -100, 100),
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", sorted(UNARY_FLOAT))
def test_unary_float(name: str, dtype: str) -> None:
    reference, low, high = UNARY_FLOAT[name]
    x = uniform(low, high, 5003, dtype)
    out = np.empty_like(x)
    call(name, [out], x)
    wide = x.astype(np.float64)
    # SciPy's own error in the tail of erfc is this large.
    assert_ulp(out, reference(wide), 100.0 if (name, dtype) == ("erfc", "float64") else ULP[dtype])


@pytest.mark.parametrize(
    ("name", "limit", "low", "high"),
    [
        ("erf", 1.5, 1e-30, 4.2), ("erfc", 2.0, 1e-6, 9.2), ("exp", 1.0, 1e-6, 87.0), ("tanh", 1.0, 1e-30, 10.0),
        ("sin", 1.0, 1e-30, 1e5), ("cos", 1.0, 1e-6, 1e5),
    ],
)  # fmt: skip
def test_accuracy_of_float32(name: str, limit: float, low: float, high: float) -> None:
    """The sample has all magnitudes evenly, and more where the functions change."""
    random = np.random.default_rng(5)
    size = 200_000
    magnitudes = np.concatenate(
        [np.exp(random.uniform(np.log(low), np.log(high), size)), random.uniform(low, high, size)]
    )
    x = np.concatenate([magnitudes, -magnitudes]).astype("float32")
    out = np.empty_like(x)
    call(name, [out], x)
    assert_ulp(out, UNARY_FLOAT[name][0](x.astype(np.float64)), limit)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", sorted({*UNARY_FLOAT, "lgamma", "digamma"}))
def test_where_a_number_stands_does_not_matter(name: str, dtype: str) -> None:
    _, low, high = UNARY_FLOAT.get(name, (None, -9, 9))
    x = uniform(low, high, 600, dtype)
    x[::97] = [np.inf, -np.inf, np.nan, 0, 1e30, 1e-38, -1e10][: len(x[::97])]
    whole = np.empty_like(x)
    call(name, [whole], x)
    for begin, count in ((0, 1), (1, 7), (3, 18), (96, 33), (501, 99), (192, 5)):
        part = np.empty(count, dtype)
        call(name, [part], x[begin : begin + count])
        np.testing.assert_array_equal(part, whole[begin : begin + count])


@pytest.mark.parametrize("dtype", FLOATS)
def test_gamma_functions(dtype: str) -> None:
    x = uniform(0.1, 30, 3000, dtype)
    out = np.empty_like(x)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    call("lgamma", [out], x)
    np.testing.assert_allclose(out, scipy.special.gammaln(x.astype(np.float64)), rtol=tolerance, atol=tolerance)
    x = uniform(-8, 30, 3000, dtype)
    call("digamma", [out], x)
    np.testing.assert_allclose(
        out, scipy.special.digamma(x.astype(np.float64)), rtol=1e-3 if dtype == "float32" else 1e-10, atol=tolerance
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", sorted(set(UNARY_FLOAT) - {"frac", "rsqrt", "reciprocal"}))
def test_special_numbers(name: str, dtype: str) -> None:
    reference = UNARY_FLOAT[name][0]
    x = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30], dtype)
    out = np.empty_like(x)
    call(name, [out], x)
    with np.errstate(all="ignore"):
        wanted = np.asarray(reference(x), dtype)
    np.testing.assert_allclose(out, wanted, rtol=1e-6)
    if name not in ("erfinv", "acosh"):  # SciPy loses the sign of zero in erfinv; acosh(0) is NaN
        assert np.array_equal(np.signbit(out[:2]), np.signbit(wanted[:2]))


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_huge_angles_are_reduced_exactly(name: str, dtype: str) -> None:
    x = np.array([1e8, -3e12, 1e22, 2.5, 6e30], dtype)
    out = np.empty_like(x)
    call(name, [out], x)
    np.testing.assert_allclose(
        out, UNARY_FLOAT[name][0](x.astype(np.float64)), rtol=1e-5 if dtype == "float32" else 1e-13
    )


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sqrt", "sin", "neg", "abs", "floor", "square"])
def test_half_precisions_are_rounded_from_float32(name: str) -> None:
    reference = {"neg": np.negative, "abs": np.abs, "floor": np.floor, "square": np.square}.get(name) or UNARY_FLOAT[
        name
    ][0]
    x = uniform(0.1, 5, 1000, "float32")
    half, brain = x.astype(np.float16), BFloat16.of(x)
    out, brain_out = np.empty_like(half), BFloat16(np.empty_like(brain.bits))
    call(name, [out], half)
    np.testing.assert_allclose(out.astype(np.float64), reference(half.astype(np.float32)), rtol=2.0**-10)
    call(name, [brain_out], brain)
    np.testing.assert_allclose(brain_out.values(), reference(brain.values()), rtol=2.0**-7)


def test_conversion_to_bfloat16_rounds_to_nearest_even() -> None:
    x = np.random.default_rng(1).integers(0, 2**32, 100_003, dtype=np.uint64).astype(np.uint32).view(np.float32)
    out = BFloat16(np.empty(x.shape, np.uint16))
    call("copy_", [out], out, x, False)
    assert np.array_equal(np.isnan(out.values()), np.isnan(x))
    finite = ~np.isnan(x)
    assert np.array_equal(out.bits[finite], BFloat16.of(x).bits[finite])


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize(
    "name", ["exp", "log", "log1p", "expm1", "log2", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos",
             "atan", "asinh", "acosh", "atanh", "sigmoid", "reciprocal", "square", "neg", "sgn", "conj_physical"],
)  # fmt: skip
def test_complex(name: str, dtype: str) -> None:
    z = numbers(500, dtype)
    own = {
        "sigmoid": lambda z: 1 / (1 + np.exp(-z)), "neg": np.negative, "square": np.square, "sgn": lambda z: z / np.abs(z),
        "conj_physical": np.conj, "reciprocal": lambda z: 1 / z,
    }  # fmt: skip
    reference = own.get(name) or UNARY_FLOAT[name][0]
    out = np.empty_like(z)
    call(name, [out], z)
    np.testing.assert_allclose(out, reference(z.astype(np.complex128)), rtol=2e-5 if dtype == "complex64" else 1e-12)


# ---- strides


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "contiguous": lambda a: a,
    "transposed": lambda a: a.swapaxes(0, -1).copy().swapaxes(0, -1),
    "sliced": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "rows": lambda a: np.repeat(a, 3, axis=0)[::3],
    "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "broadcast row": lambda a: np.broadcast_to(a[:1], a.shape),
    "broadcast column": lambda a: np.broadcast_to(a[:, :1], a.shape),
    "broadcast all": lambda a: np.broadcast_to(a[:1, :1], a.shape),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "complex128", "bfloat16"])
@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (70, 90), (300, 7), (7, 3000), (130, 1, 200)])
@pytest.mark.parametrize("second", sorted(LAYOUTS))
@pytest.mark.parametrize("first", ["contiguous", "transposed", "sliced"])
def test_strides(first: str, second: str, shape: tuple[int, ...], dtype: str) -> None:
    values_a, values_b = (
        numbers(shape, "float32" if dtype == "bfloat16" else dtype, 1),
        numbers(shape, "float32" if dtype == "bfloat16" else dtype, 2),
    )
    for out_layout in ("contiguous", "transposed", "sliced"):
        if dtype == "bfloat16":
            a = BFloat16(LAYOUTS[first](BFloat16.of(values_a).bits))
            b = BFloat16(LAYOUTS[second](BFloat16.of(values_b).bits))
            out = BFloat16(LAYOUTS[out_layout](np.zeros(shape, np.uint16)))
            call("add", [out], a, b, Scalar(1))
            assert np.array_equal(out.bits, BFloat16.of(a.values() + b.values()).bits)
        else:
            a, b = LAYOUTS[first](values_a), LAYOUTS[second](values_b)
            out = LAYOUTS[out_layout](np.zeros(shape, dtype))
            call("add", [out], a, b, Scalar(1))
            wanted = (a.astype(np.float32) + b.astype(np.float32)).astype(dtype) if dtype == "float16" else a + b
            assert np.array_equal(out, wanted)


def test_large_results_take_the_streaming_way() -> None:
    n = 8_500_001
    storage = np.zeros(n + 16, np.float32)
    shift = (-storage.ctypes.data % 64) // 4
    for start in (shift, shift + 1):  # aligned to a cache line, and not
        out = storage[start : start + n]
        a, b = numbers(n, "float32", 3), numbers(n, "float32", 4)
        call("add", [out], a, b, Scalar(1))
        assert np.array_equal(out, a + b)
        call("mul", [out], out, Number(2.0, "float32", (n,)))
        assert np.array_equal(out, (a + b) * np.float32(2))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 5), ()])
def test_empty_and_zero_dimensional(shape: tuple[int, ...]) -> None:
    a = np.full(shape, 2.0, np.float32)
    out = np.zeros(shape, np.float32)
    call("mul", [out], a, Number(3.0, "float32", shape))
    assert np.array_equal(out, a * 3)


# ---- arithmetic


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("alpha", [1, 2, -3])
def test_add_and_sub(dtype: str, alpha: int) -> None:
    a, b = numbers((40, 11), dtype, 1), numbers((40, 11), dtype, 2)
    out = np.empty_like(a)
    if dtype == "bool":
        call("add", [out], a, b, Scalar(1))
        assert np.array_equal(out, a | b)
        return
    wide = np.float32 if dtype == "float16" else a.dtype.type
    factor = np.array(alpha).astype(wide)
    tolerance = {"rtol": 1e-3, "atol": 1e-3} if dtype == "float16" else {"rtol": 1e-6, "atol": 1e-6}
    with np.errstate(over="ignore"):
        call("add", [out], a, b, Scalar(alpha))
        np.testing.assert_allclose(out, (a.astype(wide) + factor * b.astype(wide)).astype(dtype), **tolerance)
        call("sub", [out], a, b, Scalar(alpha))
        np.testing.assert_allclose(out, (a.astype(wide) - factor * b.astype(wide)).astype(dtype), **tolerance)
        call("rsub", [out], a, b, Scalar(alpha))
        np.testing.assert_allclose(out, (b.astype(wide) - factor * a.astype(wide)).astype(dtype), **tolerance)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "float32", "float64"])
@pytest.mark.parametrize(
    ("name", "arguments", "reference"),
    [
        ("remainder", (), np.remainder), ("fmod", (), np.fmod), ("floor_divide", (), np.floor_divide),
        ("div", ("floor",), np.floor_divide), ("div", ("trunc",), lambda a, b: np.trunc(a / b)),
    ],
)  # fmt: skip
def test_division_rounds_as_python_does(name: str, arguments: tuple[str, ...], reference: Any, dtype: str) -> None:
    generator = np.random.default_rng(5)
    if dtype.startswith("float"):
        a, b = (generator.uniform(-50, 50, 4000).astype(dtype) for _ in range(2))
        b[::7] = np.round(b[::7]) + 0.5
        a[::5] = b[::5] * 3  # exact multiples
    else:
        info = np.iinfo(dtype)
        a = generator.integers(info.min, info.max, 4000, endpoint=True, dtype=dtype)
        b = generator.integers(max(info.min, -20), 20, 4000, dtype=dtype)
        b[b == 0] = 3
        if dtype != "uint8":
            a[0], b[0] = info.min, -1  # overflow wraps
            if name == "div" and arguments == ("trunc",):
                a[0] = -7
    out = np.empty_like(a)
    call(name, [out], a, b, *arguments)
    with np.errstate(over="ignore"):
        if name == "div" and arguments == ("trunc",) and not dtype.startswith("float"):
            wanted = np.fmod(a, b)
            wanted = ((a - wanted) // b).astype(dtype)
        else:
            wanted = reference(a, b).astype(dtype)
    assert np.array_equal(out, wanted)


@pytest.mark.parametrize("name", ["remainder", "fmod", "floor_divide"])
def test_float_division_of_special_numbers(name: str) -> None:
    specials = np.array([0.0, -0.0, 1.0, -1.5, 1e30, np.inf, -np.inf, np.nan])
    a, b = (grid.ravel().astype(np.float64) for grid in np.meshgrid(specials, specials))
    out = np.empty_like(a)
    call(name, [out], a, b)
    with np.errstate(all="ignore"):
        if name == "floor_divide":  # a zero divisor gives a / b, as in PyTorch
            rest = np.fmod(a, b)
            quotient = (a - rest) / b - ((rest != 0) & ((b < 0) != (rest < 0)))
            wanted = np.where(quotient != 0, np.floor(quotient), np.copysign(0, a / b))
            wanted = np.where(b == 0, a / b, wanted)
        elif name == "fmod":
            wanted = np.fmod(a, b)
        else:
            rest = np.fmod(a, b)
            wanted = np.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest)
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["remainder", "fmod", "floor_divide"])
def test_integer_division_by_zero(name: str, dtype: str) -> None:
    a, b = np.arange(1, 6, dtype=dtype), np.array([1, 2, 0, 1, 1], dtype)
    with pytest.raises(KernelError, match="ZeroDivisionError") as caught:
        call(name, [np.empty_like(a)], a, b)
    assert caught.value.status == RUNTIME_ERROR


def test_subtraction_of_bools() -> None:
    x = candelabra.tensor([True])
    for subtract in (candelabra.sub, candelabra.rsub):
        with pytest.raises(RuntimeError, match="Subtraction, the `-` operator, with two bool tensors is not supported"):
            subtract(x, x)


def test_unknown_rounding_mode() -> None:
    a = candelabra.ones(3)
    with pytest.raises(RuntimeError, match="'trunc', or 'floor' but found 'up'"):
        candelabra.div(a, a, rounding_mode="up")


@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.5, -0.5, 1.0, -1.0, -2.0, 0.0, 2.5, -3.7, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("dtype", FLOATS)
def test_pow_of_a_number(exponent: float, dtype: str) -> None:
    x = np.concatenate([uniform(-4, 4, 300, dtype), np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], dtype)])
    out = np.empty_like(x)
    call("pow", [out], x, Number(exponent, dtype, x.shape))
    with np.errstate(all="ignore"):
        wanted = np.power(x, np.full_like(x, exponent))
        if abs(exponent) == 0.5:  # PyTorch computes a square root: NaN for -inf
            wanted = np.sqrt(x) if exponent > 0 else 1 / np.sqrt(x)
        np.testing.assert_allclose(out, wanted, rtol=1e-6 if dtype == "float32" else 1e-14)


@pytest.mark.parametrize("dtype", FLOATS)
def test_pow_of_special_numbers(dtype: str) -> None:
    specials = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, np.inf, -np.inf, np.nan], dtype)
    a, b = (grid.ravel() for grid in np.meshgrid(specials, specials))
    out = np.empty_like(a)
    call("pow", [out], a, b)
    with np.errstate(all="ignore"):
        wanted = np.power(a, b)
    np.testing.assert_allclose(out, wanted, rtol=1e-6)
    zero = wanted == 0
    assert np.array_equal(np.signbit(out[zero]), np.signbit(wanted[zero]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_pow_is_accurate_also_where_the_logarithm_is_multiplied(dtype: str) -> None:
    generator = np.random.default_rng(8)
    base = np.concatenate(
        [np.exp(generator.uniform(-20, 20, 3000)), np.exp(generator.uniform(-1e-3, 1e-3, 3000))]
    ).astype(dtype)
    exponent = np.concatenate([generator.uniform(-4, 4, 3000), generator.uniform(-8e4, 8e4, 3000)]).astype(dtype)
    out = np.empty_like(base)
    call("pow", [out], base, exponent)
    assert_ulp(out, np.power(base.astype(np.longdouble), exponent.astype(np.longdouble)), 1.5)


def test_integer_pow() -> None:
    a, b = np.array([2, -2, 3, 1, -1, -1, 5, 0, 7], np.int64), np.array([10, 3, -1, -4, -3, -2, -2, 0, 30], np.int64)
    out = np.empty_like(a)
    call("pow", [out], a, b)
    assert out.tolist() == [1024, -8, 0, 1, -1, 1, 0, 1, (7**30 + 2**63) % 2**64 - 2**63]
    with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed."):
        candelabra.pow(candelabra.tensor(a), -2)
    with pytest.raises(RuntimeError, match="value cannot be converted to type int8_t without overflow"):
        candelabra.pow(candelabra.tensor([2], dtype=candelabra.int8), 200)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_arithmetic(dtype: str) -> None:
    a, b = numbers(300, dtype, 1), numbers(300, dtype, 2)
    out = np.empty_like(a)
    tolerance = 1e-5 if dtype == "complex64" else 1e-13
    for name, arguments, reference in [("mul", (), a * b), ("div", (None,), a / b), ("pow", (), np.power(a, b))]:
        call(name, [out], a, b, *arguments)
        np.testing.assert_allclose(out, reference, rtol=tolerance, atol=tolerance)
    real = np.empty(a.shape, a.real.dtype)
    call("abs", [real], a)
    np.testing.assert_allclose(real, np.abs(a), rtol=tolerance)
    call("angle", [real], a)
    np.testing.assert_allclose(real, np.angle(a), rtol=tolerance)
    call("complex", [out], a.real.copy(), b.imag.copy())
    assert np.array_equal(out, a.real + 1j * b.imag)
    call("polar", [out], np.abs(a), np.angle(a))
    np.testing.assert_allclose(out, a, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("name", "reference"),
    [("atan2", np.arctan2), ("hypot", np.hypot), ("copysign", np.copysign), ("xlogy", scipy.special.xlogy), ("logaddexp", np.logaddexp),
     ("logaddexp2", np.logaddexp2), ("nextafter", np.nextafter), ("heaviside", np.heaviside), ("maximum", np.maximum),
     ("minimum", np.minimum), ("fmax", np.fmax), ("fmin", np.fmin)],
)  # fmt: skip
def test_binary_float(name: str, reference: Any, dtype: str) -> None:
    generator = np.random.default_rng(8)
    a, b = (generator.standard_normal(2000).astype(dtype) * 20 for _ in range(2))
    if name == "xlogy":
        b = np.abs(b)
    specials = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan], dtype)
    grid_a, grid_b = (grid.ravel() for grid in np.meshgrid(specials, specials))
    a, b = np.concatenate([a, grid_a]), np.concatenate([b, grid_b])
    if name == "heaviside":  # heaviside(NaN) is 0 in PyTorch and NaN in NumPy
        a = np.nan_to_num(a, nan=1.0, posinf=np.inf, neginf=-np.inf)
    out = np.empty_like(a)
    call(name, [out], a, b)
    with np.errstate(all="ignore"):
        wanted = reference(a, b)
    np.testing.assert_allclose(
        out,
        wanted,
        rtol=1e-6 if dtype == "float32" else 1e-14,
        atol=1e-6 if dtype == "float32" and "log" in name else 0,
    )
    if name in ("atan2", "copysign"):
        defined = ~np.isnan(wanted)
        assert np.array_equal(np.signbit(out[defined]), np.signbit(wanted[defined]))


def test_nextafter_of_half_precisions() -> None:
    a = np.array([0.0, 1.0, -1.0, 6e-8, 65504, 2.0], np.float16)
    b = np.array([1.0, 2.0, 0.0, -1.0, np.inf, 2.0], np.float16)
    out = np.empty_like(a)
    call("nextafter", [out], a, b)
    assert np.array_equal(out, np.nextafter(a, b))
    out16 = BFloat16(np.empty(1, np.uint16))
    call("nextafter", [out16], BFloat16.of([1.0]), BFloat16.of([2.0]))
    assert out16.bits[0] == BFloat16.of([1.0]).bits[0] + 1


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits(dtype: str) -> None:
    info = np.iinfo(dtype)
    a = np.random.default_rng(1).integers(info.min, info.max, 500, endpoint=True, dtype=dtype)
    b = np.random.default_rng(2).integers(info.min, info.max, 500, endpoint=True, dtype=dtype)
    out = np.empty_like(a)
    for name, reference in [("bitwise_and", a & b), ("bitwise_or", a | b), ("bitwise_xor", a ^ b)]:
        call(name, [out], a, b)
        assert np.array_equal(out, reference)
    call("bitwise_not", [out], a)
    assert np.array_equal(out, ~a)
    bits = info.bits
    for shift in (0, 1, bits - 1, bits, bits + 5, *([] if dtype == "uint8" else [-1])):
        by = np.full_like(a, shift)
        inside = 0 <= shift < bits
        call("bitwise_left_shift", [out], a, by)
        assert np.array_equal(out, a << by if inside else np.zeros_like(a))
        call("bitwise_right_shift", [out], a, by)
        assert np.array_equal(out, a >> by if inside else np.where(a < 0, -1, 0).astype(dtype))


# ---- same dtype


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "float32", "float64"])
@pytest.mark.parametrize("name", ["neg", "sign", "sgn", "floor", "ceil", "trunc", "square", "relu", "abs", "round"])
def test_same_dtype(name: str, dtype: str) -> None:
    x = (numbers(300, dtype) * (1 if dtype in INTEGERS else 3)).astype(dtype)
    out = np.empty_like(x)
    call(name, [out], x, *([0] if name == "round" else []))
    reference: dict[str, Any] = {
        "neg": np.negative, "sign": np.sign, "sgn": np.sign, "relu": lambda v: np.maximum(v, 0), "abs": np.abs,
        "round": np.rint,
    }  # fmt: skip
    wanted = reference[name](x) if name in reference else getattr(np, name)(x)
    assert np.array_equal(out, wanted.astype(dtype))


def test_round_to_decimals() -> None:
    x = np.array([1.2345, -2.5555, 1250.0, 0.5, 1.5, 2.5], np.float64)
    out = np.empty_like(x)
    for decimals in (2, -2, 0):
        call("round", [out], x, decimals)
        np.testing.assert_allclose(out, np.round(x, decimals), rtol=1e-15)


def test_sign_of_nan_is_zero_and_relu_keeps_nan() -> None:
    x = np.array([np.nan, -1.0, 0.0], np.float32)
    out = np.empty_like(x)
    call("sign", [out], x)
    assert out.tolist() == [0.0, -1.0, 0.0]
    call("relu", [out], x)
    assert np.isnan(out[0])
    assert out[1:].tolist() == [0.0, 0.0]


def test_bool_is_refused_with_words() -> None:
    x = candelabra.tensor([True])
    with pytest.raises(RuntimeError, match=r"use the `~` or `logical_not\(\)` operator instead"):
        candelabra.neg(x)
    with pytest.raises(RuntimeError, match="Boolean inputs not supported for relu"):
        candelabra.relu(x)


def test_nan_to_num() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1.5], np.float32)
    out = np.empty_like(x)
    call("nan_to_num", [out], x, None, None, None)
    assert np.array_equal(out, np.nan_to_num(x))
    call("nan_to_num", [out], x, 7.0, 8.0, -9.0)
    assert out.tolist() == [7.0, 8.0, -9.0, 1.5]
    half = x.astype(np.float16)
    call("nan_to_num", [half], half, None, None, None)
    assert half.tolist() == [0.0, 65504.0, -65504.0, 1.5]


@pytest.mark.skipif("CANDELABRA_CPU_ISA" in os.environ, reason="this is the run with the narrower vectors")
def test_the_narrower_vectors_give_the_same() -> None:
    environment = {**os.environ, "CANDELABRA_CPU_ISA": "avx2"}
    names = "test_unary_float or test_where_a_number or test_gamma or test_pow or test_special_numbers or test_binary_float or test_division or test_comparison or test_activations"
    files = [
        str(Path(__file__).with_name(f"test_{name}.py"))
        for name in ("elementwise", "elementwise_compare", "activation")
    ]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-k", names, *files],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout[-3000:]
