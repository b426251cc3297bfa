"""candelabra.special against SciPy over wide ranges, in units in the last place; special values;
errors.
"""

import numpy
import pytest
import scipy.special

import candelabra
from candelabra import special

EVERYWHERE = numpy.concatenate([-numpy.logspace(-8, 2.5, 400)[::-1], [0.0], numpy.logspace(-8, 2.5, 400)])
POSITIVE = numpy.logspace(-8, 2.8, 700)
PARTS = numpy.concatenate(
    [numpy.logspace(-300, -1, 300), numpy.linspace(0.1, 0.9, 200), 1 - numpy.logspace(-1, -15, 100)]
)
#: The function, SciPy's, where, and how many units in the last place of the larger of value and
#: 1e-300 (or of 1, for those with zeros).
CASES = [
    ("i0", scipy.special.i0, EVERYWHERE, 12), ("i0e", scipy.special.i0e, EVERYWHERE, 12), ("i1", scipy.special.i1, EVERYWHERE, 12),
    ("i1e", scipy.special.i1e, EVERYWHERE, 12), ("modified_bessel_k0", scipy.special.k0, POSITIVE, 16),
    ("modified_bessel_k1", scipy.special.k1, POSITIVE, 16), ("scaled_modified_bessel_k0", scipy.special.k0e, POSITIVE, 16),
    ("scaled_modified_bessel_k1", scipy.special.k1e, POSITIVE, 16), ("erfcx", scipy.special.erfcx, EVERYWHERE[EVERYWHERE > -3], 12),
    ("log_ndtr", scipy.special.log_ndtr, EVERYWHERE[EVERYWHERE < 5], 16), ("ndtri", scipy.special.ndtri, PARTS, 40),
    ("ndtr", scipy.special.ndtr, EVERYWHERE[EVERYWHERE > -9], 60), ("entr", scipy.special.entr, POSITIVE, 4),
]  # fmt: skip


@pytest.mark.parametrize(("name", "reference", "x", "units"), CASES, ids=[case[0] for case in CASES])
def test_accuracy(name, reference, x, units):
    made = getattr(special, name)(candelabra.tensor(x)).numpy()
    expected = reference(x)
    finite = numpy.isfinite(expected) & (numpy.abs(expected) > 1e-290)
    error = numpy.abs(made[finite] - expected[finite]) / (numpy.abs(expected[finite]) * 2.3e-16)
    assert error.max() <= units, (
        x[finite][error.argmax()],
        made[finite][error.argmax()],
        expected[finite][error.argmax()],
    )
    assert numpy.array_equal(made[~numpy.isfinite(expected)], expected[~numpy.isfinite(expected)], equal_nan=True)


@pytest.mark.parametrize("name", ["j0", "j1", "y0", "y1"])
def test_oscillating_bessel_functions(name):
    x = POSITIVE if name[0] == "y" else EVERYWHERE
    made, expected = getattr(special, f"bessel_{name}")(candelabra.tensor(x)).numpy(), getattr(scipy.special, name)(x)
    numpy.testing.assert_allclose(made, expected, rtol=1e-13, atol=1e-14)


def test_airy():
    x = numpy.concatenate([numpy.linspace(-40, 20, 2001), numpy.linspace(-4.5, -3.5, 101)])
    made, expected = special.airy_ai(candelabra.tensor(x)).numpy(), scipy.special.airy(x)[0]
    negative = x < 0
    numpy.testing.assert_allclose(made[negative], expected[negative], rtol=0, atol=3e-14)
    numpy.testing.assert_allclose(made[~negative], expected[~negative], rtol=1e-12)


@pytest.mark.parametrize("order", [1e-3, 0.3, 1.0, 4.5, 30.0, 1e3, 1e5])
def test_incomplete_gamma(order):
    x = order * numpy.concatenate([numpy.logspace(-3, 2, 200), 1 + numpy.linspace(-0.1, 0.1, 50)])
    for name, reference in (("gammainc", scipy.special.gammainc), ("gammaincc", scipy.special.gammaincc)):
        made = getattr(special, name)(
            candelabra.full((len(x),), order, dtype=candelabra.float64), candelabra.tensor(x)
        ).numpy()
        expected = reference(order, x)
        seen = expected > 1e-280
        numpy.testing.assert_allclose(made[seen], expected[seen], rtol=2e-10 if order > 1e4 else 1e-11)


def test_zeta_and_polygamma():
    q = numpy.concatenate([numpy.linspace(0.05, 40, 300), -numpy.linspace(0.1, 4.9, 17)])
    for s in (1.5, 2.0, 3.0, 7.0, 40.0):
        made = special.zeta(s, candelabra.tensor(q)).numpy()
        positive = q > 0
        numpy.testing.assert_allclose(made[positive], scipy.special.zeta(s, q[positive]), rtol=1e-13)
    for n in (1, 2, 5):
        x = q[q > 0]
        numpy.testing.assert_allclose(
            special.polygamma(n, candelabra.tensor(x)).numpy(), scipy.special.polygamma(n, x), rtol=1e-12
        )
    # The reflection formula, where SciPy has no values: psi'(1 - x) + psi'(x) = (pi / sin(pi x))^2.
    x = numpy.linspace(1.1, 4.9, 39)
    x = x[numpy.abs(x - numpy.round(x)) > 1e-3]
    total = special.polygamma(1, candelabra.tensor(1 - x)).numpy() + special.polygamma(1, candelabra.tensor(x)).numpy()
    numpy.testing.assert_allclose(total, (numpy.pi / numpy.sin(numpy.pi * x)) ** 2, rtol=1e-12)


@pytest.mark.parametrize("dtype", [candelabra.float32, candelabra.float64, candelabra.int16, candelabra.int64], ids=str)
def test_trigamma_is_infinite_at_its_poles(dtype):
    x = numpy.arange(-40, 1)
    made = special.polygamma(1, candelabra.tensor(x).to(dtype)).numpy()
    numpy.testing.assert_array_equal(made, scipy.special.polygamma(1, x))


POLYNOMIALS = {
    "chebyshev_polynomial_t": scipy.special.eval_chebyt, "chebyshev_polynomial_u": scipy.special.eval_chebyu,
    "hermite_polynomial_h": scipy.special.eval_hermite, "hermite_polynomial_he": scipy.special.eval_hermitenorm,
    "laguerre_polynomial_l": scipy.special.eval_laguerre, "legendre_polynomial_p": scipy.special.eval_legendre,
    "shifted_chebyshev_polynomial_t": scipy.special.eval_sh_chebyt, "shifted_chebyshev_polynomial_u": scipy.special.eval_sh_chebyu,
}  # fmt: skip


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    x = numpy.linspace(-1.5, 2.5, 41)
    for n in (0, 1, 2, 5, 17, 30):
        expected = POLYNOMIALS[name](n, x)
        made = getattr(special, name)(candelabra.tensor(x), n).numpy()
        numpy.testing.assert_allclose(made, expected, rtol=1e-9, atol=1e-10 * numpy.abs(expected).max())
    assert getattr(special, name)(candelabra.tensor([0.3]), -1).item() == 0
    inside = candelabra.tensor([0.25, 0.75], dtype=candelabra.float64)
    if "chebyshev" in name or "legendre" in name:
        numpy.testing.assert_allclose(
            getattr(special, name)(inside, 300).numpy(), POLYNOMIALS[name](300, inside.numpy()), rtol=1e-8, atol=1e-9
        )


VALUES = [
    ("modified_bessel_k0", 0.0, "inf"), ("modified_bessel_k1", 0.0, "inf"), ("modified_bessel_k0", -1.0, "nan"),
    ("modified_bessel_k0", "inf", 0.0), ("bessel_y0", 0.0, "-inf"), ("bessel_y1", -1.0, "nan"), ("i0", "inf", "inf"),
    ("i1", "-inf", "-inf"), ("i0e", "inf", 0.0), ("spherical_bessel_j0", 0.0, 1.0), ("spherical_bessel_j0", "inf", 0.0),
    ("airy_ai", "inf", 0.0), ("airy_ai", "-inf", 0.0), ("erfcx", "inf", 0.0), ("erfcx", "-inf", "inf"), ("ndtri", 0.0, "-inf"),
    ("ndtri", 1.0, "inf"), ("ndtri", 1.1, "nan"), ("entr", 0.0, 0.0), ("entr", -1.0, "-inf"), ("log_ndtr", "-inf", "-inf"),
    ("log_ndtr", "inf", 0.0), ("digamma", 0.0, "-inf"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "x", "expected"), VALUES)
def test_special_values(name, x, expected):
    made = getattr(special, name)(candelabra.tensor([float(x)], dtype=candelabra.float64)).item()
    assert made == float(expected) or (made != made and expected == "nan")


@pytest.mark.parametrize("name", [case[0] for case in CASES] + ["airy_ai", "bessel_j0", "bessel_y1"])
def test_nan_stays_nan(name):
    assert getattr(special, name)(candelabra.tensor([float("nan")])).isnan().all()


def test_whole_numbers():
    assert candelabra.gcd(candelabra.tensor([12, 0, -8]), candelabra.tensor([18, 0, 12])).tolist() == [6, 0, 4]
    assert candelabra.lcm(candelabra.tensor([4, 0, -3]), candelabra.tensor([6, 5, 7])).tolist() == [12, 0, 21]
    x = candelabra.tensor([12])
    assert x.gcd_(candelabra.tensor([18])) is x and x.item() == 6
    with pytest.raises(NotImplementedError, match='"gcd" not implemented'):
        candelabra.gcd(candelabra.ones(2), candelabra.ones(2))


def test_frexp():
    x = numpy.array([0.0, -6.0, 1e-310, numpy.inf, 0.5])
    mantissa, exponent = candelabra.frexp(candelabra.tensor(x))
    assert exponent.dtype is candelabra.int32
    assert numpy.array_equal(mantissa.numpy(), numpy.frexp(x)[0]) and numpy.array_equal(
        exponent.numpy()[:3], numpy.frexp(x)[1][:3]
    )
    with pytest.raises(RuntimeError, match="only supports floating-point dtypes"):
        candelabra.frexp(candelabra.tensor([1]))


def test_errors():
    with pytest.raises(RuntimeError, match="does not support negative n"):
        special.polygamma(-1, candelabra.ones(2))
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        candelabra.mvlgamma(candelabra.ones(2), 0)


def test_dtypes():
    assert special.i0(candelabra.tensor([1])).dtype is candelabra.float32
    assert special.zeta(candelabra.tensor([2, 3]), 1).dtype is candelabra.float32
    assert special.i1e(candelabra.tensor([1.0], dtype=candelabra.bfloat16)).dtype is candelabra.bfloat16
    assert special.legendre_polynomial_p(2.0, candelabra.tensor([1, 2])).tolist() == [2.0, 5.5]
