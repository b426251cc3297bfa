"""Elementary functions in units in the last place, against NumPy's in extended precision, over the
whole range of each dtype.
"""

import math

import numpy as np
import pytest
from scipy import special

import candelabra

RANDOM = np.random.default_rng(0)


def spread(low, high, count=4000):
    """Numbers of both signs with exponents evenly from `low` to `high`."""
    made = np.exp2(RANDOM.uniform(low, high, count))
    return np.concatenate([made, -made])


def between(low, high, count=8000):
    return RANDOM.uniform(low, high, count)


SMALL, ANY = spread(-40, 0), spread(-100, 100)
#: name: (reference, where, units in float64, units in float32)
UNARY = {
    "exp": (np.exp, np.concatenate([between(-80, 80), SMALL]), 1.5, 2),
    "exp2": (np.exp2, np.concatenate([between(-120, 120), SMALL]), 1.5, 2),
    "expm1": (np.expm1, np.concatenate([between(-30, 80), SMALL]), 2, 2),
    "log": (np.log, np.abs(np.concatenate([ANY, 1 + SMALL / 4])), 1.5, 2),
    "log2": (np.log2, np.abs(ANY), 1.5, 2),
    "log10": (np.log10, np.abs(ANY), 2, 2),
    "log1p": (np.log1p, np.concatenate([np.abs(ANY), SMALL * 0.99]), 2, 2),
    "sin": (np.sin, np.concatenate([between(-100, 100), SMALL, spread(10, 30)]), 1.5, 2),
    "cos": (np.cos, np.concatenate([between(-100, 100), SMALL, spread(10, 30)]), 1.5, 2),
    "tan": (np.tan, np.concatenate([between(-100, 100), SMALL]), 3, 3),
    "asin": (np.arcsin, np.concatenate([between(-1, 1), SMALL]), 2, 2.5),
    "acos": (np.arccos, np.concatenate([between(-1, 1), SMALL]), 2, 2.5),
    "atan": (np.arctan, ANY, 2, 2),
    "sinh": (np.sinh, np.concatenate([between(-80, 80), SMALL]), 3, 3),
    "cosh": (np.cosh, np.concatenate([between(-80, 80), SMALL]), 3, 3),
    "tanh": (np.tanh, np.concatenate([between(-20, 20), SMALL]), 2.5, 3),
    "asinh": (np.arcsinh, ANY, 2.5, 3),
    "acosh": (np.arccosh, 1 + np.abs(ANY), 2.5, 3),
    "atanh": (np.arctanh, np.concatenate([between(-1, 1), SMALL * 0.99]), 2.5, 3),
    "sqrt": (np.sqrt, np.abs(ANY), 0.5001, 0.5001),
    "rsqrt": (lambda x: 1 / np.sqrt(x), np.abs(ANY), 1.6, 1.6),
    "reciprocal": (lambda x: 1 / x, ANY, 0.5001, 0.5001),
    "square": (np.square, spread(-50, 50), 0.5001, 0.5001),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), between(-40, 40), 2.5, 3),
    "sinc": (lambda x: np.sin(np.longdouble(math.pi) * x) / (np.longdouble(math.pi) * x), between(0.01, 0.6), 4, 4),
    "deg2rad": (lambda x: x * (np.longdouble(math.pi) / 180), ANY, 2, 2),
}
#: the same of two arguments
BINARY = {
    "div": (np.divide, ANY, 2.0 ** RANDOM.uniform(-20, 20, 8000), 0.5001, 0.5001),
    "pow": (np.power, np.abs(spread(-10, 10)), between(-10, 10), 1.5, 2),
    "atan2": (np.arctan2, spread(-20, 20), RANDOM.permutation(spread(-20, 20)), 2, 2),
    "hypot": (np.hypot, spread(-60, 60), RANDOM.permutation(spread(-60, 60)), 2, 2),
    "logaddexp": (np.logaddexp, np.abs(between(1, 50)), np.abs(between(1, 50)), 2.5, 3),
    "fmod": (np.fmod, spread(-10, 20), RANDOM.permutation(spread(-10, 20)), 0, 0),
}


def units(made, expected, dtype):
    """The largest distance, in units in the last place of what it should be."""
    exact = np.asarray(expected, np.longdouble)
    spacing = np.spacing(np.abs(exact.astype(dtype))).astype(np.longdouble)
    return float((np.abs(made.astype(np.longdouble) - exact) / spacing).max())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, dtype):
    reference, x, double, single = UNARY[name]
    x = x.astype(dtype)
    if dtype == "float32":
        x = x[(np.abs(x) < 1e30) & (np.abs(x) > 1e-30) | (x == 0)]
        if name in ("acos", "asin", "atanh"):
            x = x[np.abs(x) < 1]
        if name in ("square",):
            x = x[(np.abs(x) < 1e15) & (np.abs(x) > 1e-15)]
    with np.errstate(all="ignore"):
        expected = reference(x.astype(np.longdouble))
    made = getattr(candelabra, name)(candelabra.tensor(x)).numpy()
    assert made.dtype == x.dtype
    assert units(made, expected, dtype) <= (double if dtype == "float64" else single)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, dtype):
    reference, x, y, double, single = BINARY[name]
    x, y = x.astype(dtype), y.astype(dtype)
    if dtype == "float32" and name in ("div", "hypot"):
        kept = (np.abs(x) < 2**50) & (np.abs(x) > 2.0**-50) & (np.abs(y) < 2**50) & (np.abs(y) > 2.0**-50)
        x, y = x[kept], y[kept]
    expected = reference(x.astype(np.longdouble), y.astype(np.longdouble))
    made = getattr(candelabra, name)(candelabra.tensor(x), candelabra.tensor(y)).numpy()
    assert units(made, expected, dtype) <= (double if dtype == "float64" else single)


def complement_of_erf(x):
    """In extended precision: Maclaurin's series near zero, the continued fraction (Abramowitz and
    Stegun 7.1.14) beyond.

    The C library's own is off by several units.
    """
    x = x.astype(np.longdouble)
    a = np.minimum(np.abs(x), 2)
    term, series = a.copy(), a.copy()
    for k in range(1, 60):
        term = -term * a * a / k
        series += term / (2 * k + 1)
    root_pi = np.sqrt(np.arctan(np.longdouble(1)) * 4)
    b = np.maximum(np.abs(x), 2)
    fraction = b.copy()
    for k in range(120, 0, -1):
        fraction = b + k / np.longdouble(2) / fraction
    beyond = np.exp(-b * b) / (root_pi * fraction)
    result = np.where(np.abs(x) < 2, 1 - 2 / root_pi * series, beyond)
    return np.where(x < 0, 2 - result, result)


#: those that NumPy has none of: the C library's or SciPy's in double precision, in units of the
#: larger of the result and `least`
OTHERS = {
    "erf": (np.vectorize(math.erf), np.concatenate([between(-6, 6), SMALL]), 0, 2, 3),
    "erfc": (complement_of_erf, between(-6, 9), 0, 5, 4),
    "erfinv": (special.erfinv, np.concatenate([between(-1, 1), SMALL * 0.999]), 0, 6, 4),
    "lgamma": (np.vectorize(math.lgamma), np.concatenate([between(0.01, 200), between(-9.9, -0.1)]), 1, 24, 4),
    "digamma": (special.digamma, np.concatenate([between(0.1, 200), between(-9.9, -0.1)]), 1, 30, 4),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", OTHERS)
def test_others(name, dtype):
    reference, x, least, double, single = OTHERS[name]
    x = x.astype(dtype)
    if name == "erfinv":
        x = x[np.abs(x) < 1]
    if name == "digamma":  # not beside poles
        x = x[(x > 0) | (np.abs(x - np.round(x)) > 0.05)]
    made = getattr(candelabra, name)(candelabra.tensor(x)).numpy()
    expected = reference(x.astype("float64"))
    spacing = np.spacing(np.maximum(np.abs(expected), least).astype(dtype)).astype("float64")
    assert (np.abs(made - expected) / spacing).max() <= (double if dtype == "float64" else single)


def test_infinite_divisors():
    """They leave a finite number as it is, whatever else is beside it."""
    for dtype in ("float64", "float32", "float16"):
        x = np.array([1.5, -2, 7, 0.0, -0.0, 3] * 50, dtype)
        ours = candelabra.tensor(x)
        for divisor in (math.inf, -math.inf):
            for made, expected in (
                (candelabra.fmod(ours, divisor), np.fmod(x, x.dtype.type(divisor))),
                (candelabra.remainder(ours, divisor), np.remainder(x, x.dtype.type(divisor))),
                (candelabra.floor_divide(ours, divisor), np.floor_divide(x, x.dtype.type(divisor))),
                (candelabra.div(ours, divisor, rounding_mode="trunc"), np.trunc(x / x.dtype.type(divisor))),
            ):
                np.testing.assert_array_equal(made.numpy(), expected)
    assert (candelabra.tensor([1, -2]) % math.inf).tolist() == [1, math.inf]


def test_numbers_beside_half_precisions_are_not_rounded():
    """x * 0.1 is the product with 0.1, rounded once, and not that with the number of the dtype that
    is nearest to 0.1.
    """
    for dtype in (candelabra.float16, candelabra.bfloat16):
        x = candelabra.tensor(RANDOM.uniform(0.5, 100, 1000)).to(dtype)
        wide = x.to(candelabra.float32)
        for call in (
            lambda x: x * 0.1, lambda x: 0.1 * x, lambda x: x / 0.3, lambda x: 0.3 / x, lambda x: candelabra.lerp(x, x * 2, 0.3), lambda x: x[::3] * 0.1, lambda x: x.reshape(10, 100).t() / 0.7,
        ):  # fmt: skip
            np.testing.assert_array_equal(
                call(x).to(candelabra.float32).numpy(), call(wide).to(dtype).to(candelabra.float32).numpy()
            )
        changed = x.clone()
        changed.mul_(0.1)
        np.testing.assert_array_equal(changed.tolist(), (wide * 0.1).to(dtype).tolist())


@pytest.mark.parametrize("dtype", [candelabra.float16, candelabra.bfloat16])
@pytest.mark.parametrize("name", [name for name in UNARY if name != "sinc"])
def test_half_precisions_are_rounded_once(name, dtype):
    """Computed in single precision and rounded: half a unit, and what single precision is off
    by.
    """
    reference, x, *_ = UNARY[name]
    x = candelabra.tensor(x).to(dtype)
    wide = x.to(candelabra.float64).numpy()
    with np.errstate(all="ignore"):
        expected = reference(wide.astype(np.longdouble)).astype("float64")
    limits = candelabra.finfo(dtype)
    kept = (
        np.isfinite(expected) & (np.abs(expected) < limits.max) & (np.abs(expected) > limits.tiny) & np.isfinite(wide)
    )
    made = getattr(candelabra, name)(x).to(candelabra.float64).numpy()[kept]
    spacing = np.exp2(np.floor(np.log2(np.abs(expected[kept])))) * limits.eps
    assert (np.abs(made - expected[kept]) / spacing).max() <= 0.51


@pytest.mark.parametrize("dtype", [candelabra.complex64, candelabra.complex128])
@pytest.mark.parametrize(
    "name",
    ["exp", "log", "log2", "log10", "log1p", "expm1", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
     "acosh", "atanh", "abs", "angle", "reciprocal", "square", "sgn"],
)  # fmt: skip
def test_complex(name, dtype):
    """In units of the magnitude."""
    z = candelabra.tensor(RANDOM.uniform(-6, 6, 4000) + 1j * RANDOM.uniform(-6, 6, 4000)).to(dtype)
    wide = z.to(candelabra.complex128).numpy().astype(np.clongdouble)
    names = {
        "asin": "arcsin",
        "acos": "arccos",
        "atan": "arctan",
        "asinh": "arcsinh",
        "acosh": "arccosh",
        "atanh": "arctanh",
    }
    own = {"reciprocal": lambda x: 1 / x, "sgn": lambda x: x / np.abs(x)}
    expected = (own[name] if name in own else getattr(np, names.get(name, name)))(wide)
    made = getattr(candelabra, name)(z).numpy().astype(np.clongdouble)
    assert float((np.abs(made - expected) / np.abs(expected)).max()) <= 6 * candelabra.finfo(dtype).eps
