"""Special functions by SciPy, and integer divisors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from candelabra_numpy.kernels import kernel

Array = Any

for _name, _function in {
    "i0": special.i0, "special_i0e": special.i0e, "special_i1": special.i1, "special_i1e": special.i1e,
    "special_modified_bessel_k0": special.k0, "special_modified_bessel_k1": special.k1,
    "special_scaled_modified_bessel_k0": special.k0e, "special_scaled_modified_bessel_k1": special.k1e,
    "special_bessel_j0": special.j0, "special_bessel_j1": special.j1, "special_bessel_y0": special.y0, "special_bessel_y1": special.y1,
    "special_erfcx": special.erfcx, "special_ndtr": special.ndtr, "special_log_ndtr": special.log_ndtr, "special_ndtri": special.ndtri,
    "special_entr": special.entr, "igamma": special.gammainc, "igammac": special.gammaincc, "special_zeta": special.zeta,
    "gcd": np.gcd, "lcm": np.lcm, "frexp": np.frexp,
}.items():  # fmt: skip
    kernel(_name)(_function)


@kernel("special_spherical_bessel_j0")
def spherical_bessel_j0(a: Array) -> Array:
    return special.spherical_jn(0, a)


@kernel("special_airy_ai")
def airy_ai(a: Array) -> Array:
    return special.airy(a)[0]


@kernel("special_xlog1py")
def xlog1py(a: Array, b: Array) -> Array:
    return np.where(np.isnan(b), np.nan, special.xlog1py(a, b))


def _after_the_first(kind: Callable[..., Array], n: Array, x: Array) -> Array:
    """Return the polynomial of one degree less; zero before the first."""
    return np.where(n > 0, kind(np.maximum(n - 1, 0), x), 0)


#: Polynomials by degree and argument.
_POLYNOMIALS: dict[str, Callable[[Array, Array], Array]] = {
    "chebyshev_polynomial_t": special.eval_chebyt,
    "chebyshev_polynomial_u": special.eval_chebyu,
    # third and fourth kind: differences and sums of two adjacent ones of the second
    "chebyshev_polynomial_v": lambda n, x: special.eval_chebyu(n, x) - _after_the_first(special.eval_chebyu, n, x),
    "chebyshev_polynomial_w": lambda n, x: special.eval_chebyu(n, x) + _after_the_first(special.eval_chebyu, n, x),
    "shifted_chebyshev_polynomial_t": special.eval_sh_chebyt,
    "shifted_chebyshev_polynomial_u": special.eval_sh_chebyu,
    "shifted_chebyshev_polynomial_v": lambda n, x: (
        special.eval_sh_chebyu(n, x) - _after_the_first(special.eval_sh_chebyu, n, x)
    ),
    "shifted_chebyshev_polynomial_w": lambda n, x: (
        special.eval_sh_chebyu(n, x) + _after_the_first(special.eval_sh_chebyu, n, x)
    ),
    "hermite_polynomial_h": special.eval_hermite,
    "hermite_polynomial_he": special.eval_hermitenorm,
    "laguerre_polynomial_l": special.eval_laguerre,
    "legendre_polynomial_p": special.eval_legendre,
}


def _polynomial(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def compute(x: Array, n: Array) -> Array:
        degree = np.trunc(n)
        # SciPy's recurrences need integer degrees and double precision
        values = function(np.maximum(degree, 0).astype(np.int64), np.asarray(x, np.float64))
        return np.where(degree < 0, 0, values)

    return compute


for _name, _function in _POLYNOMIALS.items():
    kernel(f"special_{_name}")(_polynomial(_function))
