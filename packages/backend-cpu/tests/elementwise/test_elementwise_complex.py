"""Test complex functions: cancellation, branch cuts, the ends of the range, and offsets in an
array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import Number, call

COMPLEX = ["complex64", "complex128"]
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log2": lambda z: np.log(z) / np.log(np.longdouble(2)),
    "log10": lambda z: np.log(z) / np.log(np.longdouble(10)), "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda z: 1 / np.sqrt(z),
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "sgn": lambda z: z / np.abs(z), "exp2": lambda z: np.exp(z * np.log(np.longdouble(2))),
}  # fmt: skip
REAL: dict[str, Callable[[Any], Any]] = {"abs": np.abs, "angle": np.angle}


def points() -> np.ndarray:
    """Return points across the plane, and near the unit circle, the axes, 0 and the poles."""
    rng = np.random.default_rng(3)
    circle = np.exp(1j * rng.uniform(-np.pi, np.pi, 200))
    return np.concatenate([
        rng.uniform(-3, 3, 300) + 1j * rng.uniform(-3, 3, 300),
        circle, circle * (1 + 1e-6 * rng.standard_normal(200)),
        (rng.standard_normal(100) + 1j * rng.standard_normal(100)) * 10.0 ** rng.uniform(-8, 0.5, 100),
        rng.uniform(-2, 2, 60) + 1j * rng.uniform(-1e-9, 1e-9, 60), rng.uniform(-1e-9, 1e-9, 60) + 1j * rng.uniform(-2, 2, 60),
        1 + 1e-5 * (rng.standard_normal(20) + 1j * rng.standard_normal(20)), 1e-5 * (rng.standard_normal(20) + 1j * rng.standard_normal(20)) - 1,
    ])  # fmt: skip


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", [*FUNCTIONS, *REAL])
def test_accuracy(name: str, dtype: str) -> None:
    z = points().astype(dtype)
    out = np.empty(z.shape, z.real.dtype if name in REAL else dtype)
    call(name, [out], z)
    wanted = (FUNCTIONS | REAL)[name](z.astype(np.clongdouble))
    wide = out.astype(np.clongdouble)
    error = np.abs(wide - wanted) / np.abs(wanted)
    # NumPy's complex log1p and expm1 suffer from cancellation, so their own error is the tolerance.
    limit = 1e-15 if dtype == "complex128" else 3e-7
    if name in ("log1p", "expm1"):
        near = np.abs(z) < 3e-5
        series = z.astype(np.clongdouble)
        square = series * series
        wanted = np.where(near, series - square / 2 + series * square / 3 - square * square / 4 if name == "log1p"
                          else series + square / 2 + series * square / 6 + square * square / 24, wanted)  # fmt: skip
        error = np.abs(wide - wanted) / np.abs(wanted)
        limit = max(limit, 4e-15)
    if name == "exp2":
        limit = max(limit, 4e-15)  # the rounding of z log 2
    assert error.max() < limit, (error.max(), z[error.argmax()])


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh",
                                  "acosh", "atanh", "abs", "angle"])  # fmt: skip
def test_axes_and_branch_cuts(name: str, dtype: str) -> None:
    values = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0]
    z = np.array([complex(x, y) for x in values for y in values], dtype)
    out = np.empty(z.shape, z.real.dtype if name in REAL else dtype)
    call(name, [out], z)
    with np.errstate(all="ignore"):
        wanted = (FUNCTIONS | REAL)[name](z.astype(np.complex128))
    for got, want in ((out.real, wanted.real), (out.imag, wanted.imag)):
        np.testing.assert_allclose(got, want, rtol=1e-6 if dtype == "complex64" else 1e-14, atol=1e-16)
        # On a branch cut, the sign of zero selects the side.
        on_cut = want == 0
        assert np.array_equal(np.signbit(got[on_cut]), np.signbit(want[on_cut])), name


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize(
    "name", ["exp", "log", "sqrt", "sinh", "tanh", "asin", "acos", "atan", "abs", "angle", "log10"]
)
def test_ends_of_the_range(name: str, dtype: str) -> None:
    huge, tiny = (1e300, 1e-300) if dtype == "complex128" else (1e38, 1e-38)
    values = [huge, -huge, tiny, -tiny, np.inf, -np.inf, 1.0]
    z = np.array([complex(x, y) for x in values for y in values if np.isfinite(x) or np.isfinite(y)], dtype)
    out = np.empty(z.shape, z.real.dtype if name in REAL else dtype)
    call(name, [out], z)
    with np.errstate(all="ignore"):
        wanted = np.asarray((FUNCTIONS | REAL)[name](z)).astype(out.dtype)
    tolerance = 1e-6 if dtype == "complex64" else 1e-14
    for got, want in ((out.real, wanted.real), (out.imag, wanted.imag)):
        known = ~np.isnan(want) & ~(np.abs(z.real) >= huge) if name in ("sinh", "tanh", "exp") else ~np.isnan(want)
        np.testing.assert_allclose(got[known], want[known], rtol=tolerance, atol=np.finfo(want.dtype).tiny)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "tanh", "acos", "sgn", "abs", "angle"])
def test_a_number_gives_the_same_wherever_it_is(name: str, dtype: str) -> None:
    z = points().astype(dtype)[:53]
    z[7], z[20] = complex(np.nan, 1), complex(np.inf, -2)
    kind = z.real.dtype if name in REAL else dtype
    together = np.empty(z.shape, kind)
    call(name, [together], z)
    for i in range(z.size):
        alone = np.empty(1, kind)
        call(name, [alone], z[i : i + 1].copy())
        assert alone.tobytes() == together[i : i + 1].tobytes()
    apart = np.empty(z.shape, kind)
    call(name, [apart], np.repeat(z, 3)[::3])
    assert apart.tobytes() == together.tobytes()


@pytest.mark.parametrize("dtype", COMPLEX)
def test_in_place(dtype: str) -> None:
    z = points().astype(dtype)
    z[3] = complex(np.inf, 0)
    wanted = np.empty_like(z)
    call("sqrt", [wanted], z)
    call("sqrt", [z], z)
    assert z.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("exponent", [2, 3, 0.5, -0.5, -1, 1.7, -2.5, 1 + 2j, 0])
def test_powers_by_a_number(exponent: complex, dtype: str) -> None:
    z = points().astype(dtype)
    out = np.empty_like(z)
    call("pow", [out], z, Number(exponent, dtype, z.shape))
    wanted = z.astype(np.clongdouble) ** np.clongdouble(exponent)
    error = np.abs(out.astype(np.clongdouble) - wanted) / np.abs(wanted)
    assert error.max() < (2e-14 if dtype == "complex128" else 1e-6)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_powers_beyond_the_formula(dtype: str) -> None:
    z = np.array([0, 0, 2, 1e30, 0.5], dtype)
    w = np.array([2, 0, 0, 30 if dtype == "complex128" else 2, 2000], dtype)
    out = np.empty_like(z)
    call("pow", [out], z, w)
    assert out[0] == 0 and out[1] == 1 and out[2] == 1 and out[4] == 0
    assert np.isinf(out[3].real) if dtype == "complex64" else abs(out[3]) > 1e300 or np.isinf(out[3].real)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_nan_to_num_of_both_parts(dtype: str) -> None:
    z = np.array([complex(np.nan, 1), complex(2, np.inf), complex(-np.inf, np.nan), 3 - 4j] * 5, dtype)
    out = np.empty_like(z)
    call("nan_to_num", [out], z, 7.0, 8.0, -9.0)
    assert out.tolist()[:4] == [7 + 1j, 2 + 8j, -9 + 7j, 3 - 4j]
    strided = np.empty_like(z)
    call("nan_to_num", [strided], np.repeat(z, 2)[::2], 7.0, 8.0, -9.0)
    assert np.array_equal(strided, out)
