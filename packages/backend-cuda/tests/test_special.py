"""Test special functions on a GPU against the CPU's, over their ranges and for infinities and
NaN.
"""

from __future__ import annotations

import numpy as np
import pytest

import candelabra

UNARY = [
    "i0", "i0e", "i1", "i1e", "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "bessel_j0", "bessel_j1",
    "bessel_y0", "bessel_y1", "spherical_bessel_j0", "airy_ai", "erfcx", "ndtr", "log_ndtr", "ndtri", "entr",
]  # fmt: skip
POLYNOMIALS = [
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "hermite_polynomial_h",
    "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
]  # fmt: skip
FLOATS = ["float64", "float32", "float16", "bfloat16"]
ENDS = [0.0, -0.0, np.inf, -np.inf, np.nan]


def compare(got: candelabra.Tensor, want: candelabra.Tensor, units: float = 64) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape
    eps = float(candelabra.finfo(want.dtype).eps)
    np.testing.assert_allclose(got.cpu().double().numpy(), want.double().numpy(), rtol=units * eps, atol=units * eps)


@pytest.mark.same_as_cpu
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_of_one_number(cuda, name, dtype):
    values = np.concatenate(
        [np.linspace(-12, 12, 401), np.linspace(0, 1, 101), [-40.0, -27.0, 25.0, 29.9, 30.0, 31.0, 80.0, 1e-5], ENDS]
    )
    x = candelabra.tensor(values).to(getattr(candelabra, dtype))
    function = getattr(candelabra.special, name)
    compare(function(x.to(cuda)), function(x))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma(cuda, name, dtype):
    a = np.array([0.0, 1e-3, 0.5, 1.0, 3.0, 10.0, 50.0, 300.0, np.inf, np.nan, -1.0])
    x = np.array([0.0, 1e-4, 0.3, 1.0, 2.5, 11.0, 49.0, 300.0, np.inf, np.nan, -1.0])
    left = candelabra.tensor(a).to(getattr(candelabra, dtype)).reshape(-1, 1)
    right = candelabra.tensor(x).to(getattr(candelabra, dtype))
    function = getattr(candelabra.special, name)
    compare(function(left.to(cuda), right.to(cuda)), function(left, right))


@pytest.mark.same_as_cpu
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(cuda, name, dtype):
    x = (
        candelabra.tensor(np.array([-1.0, -0.7, 0.0, 0.3, 0.999, 1.0, 1.5, np.nan]))
        .to(getattr(candelabra, dtype))
        .reshape(-1, 1)
    )
    n = candelabra.tensor(np.array([-1.0, 0.0, 1.0, 2.0, 5.9, 9.0, 150.0])).to(getattr(candelabra, dtype))
    function = getattr(candelabra.special, name)
    got, want = function(x.to(cuda), n.to(cuda)).cpu().double().numpy(), function(x, n).double().numpy()
    eps = float(candelabra.finfo(getattr(candelabra, dtype)).eps)
    np.testing.assert_allclose(got, want, rtol=max(64 * eps, 1e-12), atol=max(64 * eps, 1e-12))
    compare(function(x.to(cuda), 3), function(x, 3))


@pytest.mark.same_as_cpu
def test_zeta_and_xlog1py(cuda):
    s, q = (
        candelabra.tensor([1.0, 1.5, 2.0, 30.0, float("inf")]).reshape(-1, 1),
        candelabra.tensor([-1.5, 0.0, 0.5, 1.0, 20.0]),
    )
    compare(candelabra.special.zeta(s.to(cuda), q.to(cuda)), candelabra.special.zeta(s, q))
    compare(candelabra.special.zeta(s.double().to(cuda), 1), candelabra.special.zeta(s.double(), 1))
    x, y = candelabra.tensor([0.0, 1.0, -2.0]).reshape(-1, 1), candelabra.tensor([-1.0, 0.0, 1e-9, 3.0, float("nan")])
    compare(candelabra.special.xlog1py(x.to(cuda), y.to(cuda)), candelabra.special.xlog1py(x, y))


@pytest.mark.same_as_cpu
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"])
def test_divisors(cuda, dtype):
    generator = np.random.default_rng(0)
    kind = np.dtype(dtype)
    info = np.iinfo(kind)
    ends = np.array([0, 1, info.max, info.min, 12, 18], kind)
    a = np.concatenate([generator.integers(0, min(info.max, 5000), 300).astype(kind), ends])
    b = np.concatenate([generator.integers(0, min(info.max, 5000), 300).astype(kind), ends[::-1]])
    if info.min < 0:
        a[::3] = -a[::3]
    left, right = candelabra.tensor(a), candelabra.tensor(b)
    for function in (candelabra.gcd, candelabra.lcm):
        assert function(left.to(cuda), right.to(cuda)).cpu().tolist() == function(left, right).tolist()
        got = function(left.to(cuda)[::2].reshape(-1, 1), right.to(cuda)[:7])
        assert got.cpu().tolist() == function(left[::2].reshape(-1, 1), right[:7]).tolist()


@pytest.mark.parametrize("dtype", FLOATS)
def test_frexp(cuda, dtype):
    values = np.concatenate([np.linspace(-9, 9, 200), np.geomspace(1e-7, 1e4, 50), ENDS])
    x = candelabra.tensor(values).to(getattr(candelabra, dtype))
    got, want = candelabra.frexp(x.to(cuda)), candelabra.frexp(x)
    np.testing.assert_array_equal(got.mantissa.cpu().double().numpy(), want.mantissa.double().numpy())
    assert got.exponent.cpu().tolist() == want.exponent.tolist() and got.exponent.dtype == candelabra.int32


def test_strides_and_empty(cuda):
    x = candelabra.linspace(-3, 3, 600).reshape(20, 30)
    moved = x.to(cuda)
    for view in (lambda t: t.t(), lambda t: t[::3, 1::2], lambda t: t[:, :1].expand(20, 30), lambda t: t[:0]):
        compare(candelabra.special.i0(view(moved)), candelabra.special.i0(view(x)))


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
@pytest.mark.parametrize("name", ["asin", "acos", "atan", "asinh", "acosh", "atanh"])
def test_inverses_of_complex_functions(cuda, name, dtype):
    """Near the axes, near the branch points and far away, where logarithms of sums cancel."""
    parts = [0.0, 1e-30, 1e-6, 0.3, 0.6417, 0.999999, 1.0, 1.000001, 2.5, 300.0, 7e6, 2e30]
    if dtype == "complex128":
        parts += [1e-200, 1e-12, 1e17, 1e160, 1e300]
    parts = np.array(parts + [-part for part in parts])
    z = (parts[:, None] + 1j * parts).astype(dtype)
    z.imag = parts  # the sign of zero counts
    z.real = parts[:, None]
    if name == "atanh":
        z = z[~((np.abs(z.real) == 1) & (z.imag == 0))]
    if name == "atan":
        z = z[~((np.abs(z.imag) == 1) & (z.real == 0))]
    function = {
        "asin": np.arcsin,
        "acos": np.arccos,
        "atan": np.arctan,
        "asinh": np.arcsinh,
        "acosh": np.arccosh,
        "atanh": np.arctanh,
    }
    got, want = getattr(candelabra.tensor(z).to(cuda), name)().cpu().numpy(), function[name](z.astype("complex128"))
    eps = float(np.finfo(dtype).eps)
    for mine, other in ((got.real, want.real), (got.imag, want.imag)):
        np.testing.assert_allclose(mine, other, rtol=8 * eps, atol=np.finfo(mine.dtype).tiny)
        np.testing.assert_array_equal(np.signbit(mine), np.signbit(other))
    odd = np.array([complex(x, y) for x in ENDS for y in ENDS])
    got, want = getattr(candelabra.tensor(odd.astype(dtype)).to(cuda), name)().cpu().numpy(), function[name](odd)
    finite = np.isfinite(odd)
    np.testing.assert_allclose(
        np.abs(got[~finite & np.isfinite(want)]), np.abs(want[~finite & np.isfinite(want)]), rtol=8 * eps
    )
