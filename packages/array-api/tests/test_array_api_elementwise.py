"""Elementwise functions and operators of the array API standard: promotion, values against NumPy,
and the special cases.
"""

from __future__ import annotations

import cmath
import itertools
import math
import operator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

from array_api_arrays import (
    ALL,
    COMPLEX,
    FLOATING,
    INTEGRAL,
    NUMERIC,
    REAL,
    REAL_FLOATING,
    check,
    numpy_arrays,
    pairs_of,
    to_numpy,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import candelabra
import candelabra.array_api as xp

fast = settings(derandomize=True, max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
inf, nan = math.inf, math.nan

UNARY: dict[str, tuple[str, ...]] = {
    "abs": NUMERIC, "acos": FLOATING, "acosh": FLOATING, "asin": FLOATING, "asinh": FLOATING, "atan": FLOATING, "atanh": FLOATING,
    "bitwise_invert": ("bool", *INTEGRAL), "ceil": REAL, "conj": NUMERIC, "cos": FLOATING, "cosh": FLOATING, "exp": FLOATING,
    "expm1": FLOATING, "floor": REAL, "imag": COMPLEX, "isfinite": NUMERIC, "isinf": NUMERIC, "isnan": NUMERIC, "log": FLOATING,
    "log10": FLOATING, "log1p": FLOATING, "log2": FLOATING, "logical_not": ("bool",), "negative": NUMERIC, "positive": NUMERIC,
    "real": NUMERIC, "reciprocal": FLOATING, "round": NUMERIC, "sign": NUMERIC, "signbit": REAL_FLOATING, "sin": FLOATING,
    "sinh": FLOATING, "sqrt": FLOATING, "square": NUMERIC, "tan": FLOATING, "tanh": FLOATING, "trunc": REAL,
}  # fmt: skip
BINARY: dict[str, tuple[str, ...]] = {
    "add": NUMERIC, "atan2": REAL_FLOATING, "bitwise_and": ("bool", *INTEGRAL), "bitwise_left_shift": INTEGRAL,
    "bitwise_or": ("bool", *INTEGRAL), "bitwise_right_shift": INTEGRAL, "bitwise_xor": ("bool", *INTEGRAL), "copysign": REAL_FLOATING,
    "divide": FLOATING, "equal": ALL, "floor_divide": REAL, "greater": REAL, "greater_equal": REAL, "hypot": REAL_FLOATING,
    "less": REAL, "less_equal": REAL, "logaddexp": REAL_FLOATING, "logical_and": ("bool",), "logical_or": ("bool",),
    "logical_xor": ("bool",), "maximum": REAL, "minimum": REAL, "multiply": NUMERIC, "nextafter": REAL_FLOATING, "not_equal": ALL,
    "pow": NUMERIC, "remainder": REAL, "subtract": NUMERIC,
}  # fmt: skip
BOOLEAN = {
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "isfinite",
    "isinf",
    "isnan",
    "signbit",
}
OPERATORS: dict[str, Any] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "pow": operator.pow, "bitwise_and": operator.and_,
    "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift, "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt,
    "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip
IN_PLACE: dict[str, Any] = {
    "add": operator.iadd, "subtract": operator.isub, "multiply": operator.imul, "divide": operator.itruediv,
    "floor_divide": operator.ifloordiv, "remainder": operator.imod, "pow": operator.ipow, "bitwise_and": operator.iand,
    "bitwise_or": operator.ior, "bitwise_xor": operator.ixor, "bitwise_left_shift": operator.ilshift,
    "bitwise_right_shift": operator.irshift,
}  # fmt: skip


def same_zero_and_nan(got: Any, wanted: Any) -> bool:
    """Whether two numbers are the same, signs of zeros included."""
    if isinstance(wanted, complex):
        return same_zero_and_nan(got.real, wanted.real) and same_zero_and_nan(got.imag, wanted.imag)
    if math.isnan(wanted):
        return math.isnan(got)
    return got == wanted and math.copysign(1, got) == math.copysign(1, wanted)


@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name, dtypes in UNARY.items() for dtype in dtypes])
def test_unary(name: str, dtype: str) -> None:
    reference = getattr(np, name)

    @fast
    @given(numpy_arrays(dtype, allow_nan=True) if dtype in FLOATING else numpy_arrays(dtype))
    def run(x: np.ndarray) -> None:
        got = getattr(xp, name)(xp.asarray(x))
        with np.errstate(all="ignore"):
            if dtype in FLOATING and name not in BOOLEAN:
                # In twice the precision, where there is one.
                wider = {"float32": "float64", "complex64": "complex128"}.get(dtype, dtype)
                wanted = np.asarray(reference(x.astype(wider)))
                wanted = wanted.astype(dtype if wanted.dtype.kind == np.dtype(dtype).kind else x.real.dtype)
            else:
                wanted = np.asarray(reference(x))
        tolerance = {"float32": 1e-5, "complex64": 1e-4, "float64": 1e-13, "complex128": 1e-12}.get(dtype, 0)
        if dtype in COMPLEX:
            # Complex numbers with parts that are infinite, NaN or of extreme size: see
            # test_complex_special_values.
            tame = np.isfinite(x) & (np.maximum(abs(x.real), abs(x.imag)) < 50) & (np.abs(x) > 1e-3)
            got, wanted = got[xp.asarray(tame)], wanted[tame]
        assert str(got.dtype).rpartition(".")[2] == str(wanted.dtype)
        if name not in ("sin", "cos", "tan") or dtype in COMPLEX:
            check(got, wanted, rtol=tolerance, atol=1e-37 if dtype in FLOATING else 0)
        else:
            small = abs(x) < 1e4
            check(
                got[xp.asarray(small)], wanted[small], rtol=tolerance * 100, atol=1e-6 if dtype == "float32" else 1e-12
            )

    run()


@pytest.mark.parametrize(
    ("name", "first", "second"), [(name, a, b) for name, dtypes in BINARY.items() for a, b in pairs_of(dtypes)]
)
def test_binary_promotes_and_computes(name: str, first: str, second: str) -> None:
    wanted_dtype = np.result_type(np.dtype(first), np.dtype(second))
    rng = np.random.default_rng(5)
    for shapes in (((), ()), ((), (3,)), ((2, 1), (3,)), ((0,), (1,)), ((2, 3), ())):
        x1, x2 = (_numbers(rng, dtype, shape) for dtype, shape in zip((first, second), shapes, strict=True))
        if "shift" in name:
            x2 = np.abs(x2) % (np.dtype(wanted_dtype).itemsize * 8 - 1)
            x2 = np.asarray(x2, second)
        elif name in ("floor_divide", "remainder") and second in INTEGRAL:
            x2 = np.where(x2 == 0, 1, x2).astype(second)
        elif name == "pow" and wanted_dtype.kind in "iu":
            x2 = np.asarray(np.abs(x2) % 4, second)
        with np.errstate(all="ignore"):
            wanted = np.asarray(getattr(np, name)(x1.astype(wanted_dtype), x2.astype(wanted_dtype)))
        tolerance = {"float32": 2e-5, "complex64": 1e-4, "float64": 1e-13, "complex128": 1e-12}.get(
            str(wanted_dtype), 0
        )
        for got in (
            getattr(xp, name)(xp.asarray(x1), xp.asarray(x2)),
            getattr(xp, name)(candelabra.tensor(x1), candelabra.tensor(x2)),
            *([OPERATORS[name](xp.asarray(x1), xp.asarray(x2))] if name in OPERATORS else []),
            *([OPERATORS[name](candelabra.tensor(x1), xp.asarray(x2))] if name in OPERATORS else []),
        ):
            check(got, wanted, rtol=tolerance)


def _numbers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape), bool)
    if dtype in INTEGRAL:
        info = np.iinfo(dtype)
        return np.asarray(rng.integers(max(info.min, -100), min(info.max, 100), shape), dtype)
    if dtype in COMPLEX:
        return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape), dtype)
    return np.asarray(rng.normal(size=shape) * 5, dtype)


@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name, dtypes in BINARY.items() for dtype in dtypes])
def test_numbers_take_the_dtype_of_the_array(name: str, dtype: str) -> None:
    rng = np.random.default_rng(2)
    x = np.abs(_numbers(rng, dtype, (3,))) if dtype != "bool" else np.asarray([True, False, True])
    x = np.asarray(x + 1 if dtype != "bool" else x, dtype)
    numbers: list[Any] = [True] if dtype == "bool" else [2]
    if dtype in FLOATING:
        numbers.append(1.5)
    if dtype in COMPLEX:
        numbers.append(1 + 2j)
    for number in numbers:
        twin = np.asarray(number, dtype)
        tolerance = {"float32": 1e-5, "complex64": 1e-4, "float64": 1e-13, "complex128": 1e-12}.get(dtype, 0)
        check(getattr(xp, name)(xp.asarray(x), number), getattr(np, name)(x, twin), rtol=tolerance)
        check(getattr(xp, name)(number, xp.asarray(x)), getattr(np, name)(twin, x), rtol=tolerance)
        if name in OPERATORS:
            check(OPERATORS[name](xp.asarray(x), number), getattr(np, name)(x, twin), rtol=tolerance)
            check(OPERATORS[name](number, xp.asarray(x)), getattr(np, name)(twin, x), rtol=tolerance)


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_operators(name: str) -> None:
    for dtype in BINARY[name]:
        x = np.asarray([1, 2, 3] if dtype != "bool" else [True, False, True], dtype)
        y = np.asarray([2, 1, 2] if dtype != "bool" else [True, True, False], dtype)
        array = alias = xp.asarray(x, copy=True)
        array = IN_PLACE[name](array, xp.asarray(y))
        assert array is alias
        check(alias, getattr(np, name)(x, y), rtol=1e-6)
    with pytest.raises(TypeError, match="cannot hold"):
        operator.iadd(xp.ones(2, dtype=xp.int8), xp.ones(2, dtype=xp.int32))
    with pytest.raises(ValueError, match="cannot be enlarged in place"):
        operator.iadd(xp.ones((2, 1)), xp.ones((2, 3)))
    with pytest.raises(TypeError):
        operator.iadd(xp.ones(2), "a")


def test_numbers_are_rounded_to_the_dtype() -> None:
    tenth = xp.asarray([0.1], dtype=xp.float32)
    assert bool(xp.equal(tenth, 0.1)[0])
    assert bool((tenth == 0.1)[0])
    assert not bool((tenth < 0.1)[0])
    big = xp.asarray([2**53 + 1, 2**53])
    assert (big == 2**53 + 1).tolist() == [True, False]
    assert (big + 1).tolist() == [2**53 + 2, 2**53 + 1]
    top = xp.asarray([2**64 - 1, 0], dtype=xp.uint64)
    assert (top == 2**64 - 1).tolist() == [True, False]
    assert (top > 2**63).tolist() == [True, False]
    assert (top - 2**63).tolist()[0] == 2**63 - 1


def test_both_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match="at least one of the arguments must be an array"):
        xp.add(1, 2)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not str"):
        xp.add(xp.ones(1), "a")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        xp.ones(1) + "a"  # type: ignore[operator]


# ---- special cases: conditions on the operands, and what must come out

FINITE = (-7.5, -3.0, -1.0, -0.5, 0.5, 1.0, 3.0, 7.5)
GRID = (-inf, *FINITE[:4], -0.0, 0.0, *FINITE[4:], inf, nan)


def expected_floor_divide(a: float, b: float) -> float | None:
    """The standard's special cases of floor_divide; None where it is the ordinary quotient."""
    if math.isnan(a) or math.isnan(b) or (math.isinf(a) and math.isinf(b)) or (a == 0 and b == 0):
        return nan
    sign = math.copysign(1, a) * math.copysign(1, b)
    if math.isinf(a) or b == 0:
        return sign * inf
    if a == 0 or math.isinf(b):
        return sign * 0.0
    return None


def expected_remainder(a: float, b: float) -> float | None:
    """The standard's special cases of remainder; None where it is the ordinary one."""
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        return nan
    if a == 0:
        return math.copysign(0.0, b)
    if math.isinf(b):
        return a if (a > 0) == (b > 0) else b
    return None


def expected_pow(a: float, b: float) -> float | None:
    """The special cases of C99's pow, which are those of the standard."""
    try:
        return math.pow(a, b)
    except OverflowError:
        return None
    except ValueError:
        if a == 0:
            odd = b == int(b) and int(b) % 2 == 1
            return math.copysign(inf, a) if odd else inf
        return nan


def expected_divide(a: float, b: float) -> float | None:
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


def expected_logaddexp(a: float, b: float) -> float | None:
    if math.isnan(a) or math.isnan(b):
        return nan
    if inf in (a, b):
        return inf
    return -inf if a == b == -inf else None


SPECIAL: dict[str, Any] = {
    "add": lambda a, b: float(np.float64(a) + np.float64(b)),
    "subtract": lambda a, b: float(np.float64(a) - np.float64(b)),
    "multiply": lambda a, b: float(np.float64(a) * np.float64(b)),
    "divide": expected_divide,
    "floor_divide": expected_floor_divide,
    "remainder": expected_remainder,
    "pow": expected_pow,
    "atan2": math.atan2,
    "hypot": math.hypot,
    "copysign": math.copysign,
    "logaddexp": expected_logaddexp,
    "maximum": lambda a, b: float(np.maximum(a, b)) if a or b else None,
    "minimum": lambda a, b: float(np.minimum(a, b)) if a or b else None,
    "nextafter": lambda a, b: float(np.nextafter(a, b)),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("dtype", REAL_FLOATING)
def test_special_cases_of_two_operands(name: str, dtype: str) -> None:
    pairs = list(itertools.product(GRID, GRID))
    first, second = (np.asarray([pair[i] for pair in pairs], dtype) for i in (0, 1))
    results = {"function": getattr(xp, name)(xp.asarray(first), xp.asarray(second))}
    if name in OPERATORS:
        results["operator"] = OPERATORS[name](xp.asarray(first), xp.asarray(second))
        results["in place"] = IN_PLACE[name](xp.asarray(first, copy=True), xp.asarray(second))
    for how, result in results.items():
        for (a, b), got in zip(pairs, to_numpy(result).tolist(), strict=True):
            wanted = SPECIAL[name](a, b)
            if wanted is None:
                continue
            if wanted == 0 or not math.isfinite(wanted):
                if name != "nextafter" or dtype == "float64":
                    assert same_zero_and_nan(got, wanted), f"{name}({a}, {b}) = {got} ({how}), not {wanted}"
            elif name != "nextafter" or dtype == "float64":
                assert got == pytest.approx(wanted, rel=1e-6 if dtype == "float32" else 1e-14), (
                    f"{name}({a}, {b}) ({how})"
                )


@pytest.mark.parametrize("dtype", REAL_FLOATING)
def test_ordinary_quotients_and_remainders(dtype: str) -> None:
    rng = np.random.default_rng(3)
    a, b = (np.asarray(rng.normal(size=500) * 10 ** rng.uniform(-3, 3, 500), dtype) for _ in "ab")
    check(xp.floor_divide(xp.asarray(a), xp.asarray(b)), np.floor_divide(a, b))
    check(xp.remainder(xp.asarray(a), xp.asarray(b)), np.remainder(a, b), rtol=1e-6)


ONE_OPERAND: dict[str, Any] = {
    "abs": math.fabs, "acos": math.acos, "acosh": math.acosh, "asin": math.asin, "asinh": math.asinh, "atan": math.atan,
    "atanh": math.atanh, "ceil": np.ceil, "cos": math.cos, "cosh": math.cosh, "exp": math.exp, "expm1": math.expm1, "floor": np.floor,
    "log": math.log, "log10": math.log10, "log1p": math.log1p, "log2": math.log2, "round": np.round, "sin": math.sin,
    "sinh": math.sinh, "sqrt": math.sqrt, "square": lambda a: a * a, "tan": math.tan, "tanh": math.tanh, "trunc": np.trunc,
    "sign": np.sign, "negative": operator.neg, "positive": operator.pos, "reciprocal": lambda a: float(1 / np.float64(a)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ONE_OPERAND)
@pytest.mark.parametrize("dtype", REAL_FLOATING)
def test_special_cases_of_one_operand(name: str, dtype: str) -> None:
    grid = (*GRID, 1.5, 2.5, -1.5, -2.5, 1e300 if dtype == "float64" else 1e30)
    for a, got in zip(grid, to_numpy(getattr(xp, name)(xp.asarray(np.asarray(grid, dtype)))).tolist(), strict=True):
        try:
            wanted = float(ONE_OPERAND[name](a))
        except OverflowError:
            wanted = inf
        except ValueError:
            # A pole or a point outside the domain.
            wanted = (
                math.copysign(inf, a)
                if (name, abs(a)) == ("atanh", 1)
                else -inf
                if name.startswith("log") and a in (0, -1)
                else nan
            )
            if name in ("log", "log2", "log10") and a == -1:
                wanted = nan
        if name in ("sin", "cos", "tan") and abs(a) > 100 and math.isfinite(a):
            continue
        if wanted == 0 or not math.isfinite(wanted):
            assert same_zero_and_nan(got, wanted), f"{name}({a}) = {got}, not {wanted}"
        elif dtype == "float64" or abs(wanted) < 1e38:
            assert got == pytest.approx(wanted, rel=1e-6 if dtype == "float32" else 1e-14), f"{name}({a})"


COMPLEX_FUNCTIONS: dict[str, Any] = {
    "acos": cmath.acos, "acosh": cmath.acosh, "asin": cmath.asin, "asinh": cmath.asinh, "atan": cmath.atan, "atanh": cmath.atanh,
    "cos": cmath.cos, "cosh": cmath.cosh, "exp": cmath.exp, "log": cmath.log, "log10": cmath.log10, "sin": cmath.sin,
    "sinh": cmath.sinh, "sqrt": cmath.sqrt, "tan": cmath.tan, "tanh": cmath.tanh,
}  # fmt: skip


def zero_and_nan_of_c17(name: str, z: complex) -> bool:
    """Where C17, and the standard, say more than the C99 that cmath follows: tanh and acosh of 0 +
    NaN i, and tan's rotation of it.
    """
    if name == "tan":
        return math.isnan(z.real) and z.imag == 0
    return name in ("tanh", "acosh", "acos") and z.real == 0 and math.isnan(z.imag)


@pytest.mark.parametrize("name", COMPLEX_FUNCTIONS)
def test_complex_special_values(name: str) -> None:
    """Python's cmath follows Annex G of C99, as the standard does."""
    parts = (-inf, -2.0, -1.0, -0.0, 0.0, 0.5, 1.0, inf, nan)
    wrong = []
    for re, im in itertools.product(parts, parts):
        z = complex(re, im)
        try:
            wanted = COMPLEX_FUNCTIONS[name](z)
        except (ValueError, OverflowError):
            continue  # a pole, where cmath raises
        got = complex(to_numpy(getattr(xp, name)(xp.asarray(np.asarray(z)))).item())
        if zero_and_nan_of_c17(name, z):
            assert not cmath.isfinite(got)
            continue
        for mine, theirs, other in ((got.real, wanted.real, wanted.imag), (got.imag, wanted.imag, wanted.real)):
            if math.isnan(other) and math.isinf(theirs):
                mine, theirs = abs(mine), abs(theirs)  # the sign of such an infinity is open
            exact = theirs == 0 or not math.isfinite(theirs)
            same = (
                math.isnan(mine)
                if math.isnan(theirs)
                else (mine == theirs if exact else abs(mine - theirs) < 1e-12 * abs(theirs))
            )
            if not same:
                wrong.append((z, got, wanted))
                break
    assert not wrong


@pytest.mark.parametrize("dtype", COMPLEX)
def test_expm1_at_complex_infinities(dtype: str) -> None:
    cases = {
        complex(inf, 0.0): complex(inf, 0.0),
        complex(inf, -0.0): complex(inf, -0.0),
        complex(inf, 3.0): complex(-inf, inf),
        complex(inf, inf): complex(inf, nan),
        complex(inf, nan): complex(inf, nan),
        complex(-inf, -2.0): complex(-1.0, -0.0),
        complex(-inf, inf): complex(-1.0, 0.0),
        complex(-inf, nan): complex(-1.0, 0.0),
    }
    for z, wanted in cases.items():
        got = complex(to_numpy(xp.expm1(xp.asarray(np.asarray(z, dtype)))).item())
        assert math.isnan(got.imag) if math.isnan(wanted.imag) else got.imag == wanted.imag, z
        # The sign of the infinity beside NaN is open.
        assert (abs(got.real) if math.isnan(wanted.imag) else got.real) == wanted.real, z


@pytest.mark.parametrize("dtype", REAL)
def test_clip(dtype: str) -> None:
    rng = np.random.default_rng(4)
    x = _numbers(rng, dtype, (4, 3))
    low, high = (2, 5) if dtype in INTEGRAL else (-0.5, 0.5)
    check(xp.clip(xp.asarray(x), low, high), np.clip(x, np.asarray(low, dtype), np.asarray(high, dtype)))
    check(xp.clip(xp.asarray(x), low), np.clip(x, np.asarray(low, dtype), None))
    check(xp.clip(xp.asarray(x), max=high), np.clip(x, None, np.asarray(high, dtype)))
    lows = np.asarray([1, 2, 3], dtype)
    check(xp.clip(xp.asarray(x), xp.asarray(lows), high), np.clip(x, lows, np.asarray(high, dtype)))
    same = xp.asarray(x)
    assert xp.clip(same).data_ptr() != same.data_ptr()
    if dtype in INTEGRAL:
        info = np.iinfo(dtype)
        check(xp.clip(xp.asarray(x), info.min - 1, info.max + 1), x)
    else:
        check(xp.clip(xp.asarray(np.asarray([1, nan, 3], dtype)), nan, 2), np.asarray([nan] * 3, dtype))
    with pytest.raises(TypeError, match="a limit must be"):
        xp.clip(xp.asarray(x), "a")  # type: ignore[arg-type]


@fast
@given(st.sampled_from(COMPLEX), st.data())
def test_sign_and_round_of_complex(dtype: str, data: st.DataObject) -> None:
    x = data.draw(numpy_arrays(dtype, min_magnitude=1e-3, max_magnitude=1e3, allow_nan=False, allow_infinity=False))
    check(xp.round(xp.asarray(x)), np.round(x))
    check(xp.sign(xp.asarray(x)), np.sign(x), rtol=1e-6)
