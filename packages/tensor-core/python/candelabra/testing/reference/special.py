"""References of special functions, by SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from candelabra.testing.reference.elementwise import two
from candelabra.testing.sampling import Reference, Sample, layouts, pairs

Array = np.ndarray
_DTYPES = ("float32", "float64")


def _unary(function: Callable[[Array], Array], low: float, high: float, tolerance: float = 20) -> Reference:
    return Reference(
        function, lambda rng, dtype: (Sample((input,)) for input in layouts(rng, dtype, low, high)), _DTYPES, tolerance
    )


def _binary(function: Callable[..., Any], low: float, high: float, tolerance: float = 50) -> Reference:
    """Yield finite arguments. For infinities and NaN, SciPy's conventions are not PyTorch's."""
    return Reference(
        function, lambda rng, dtype: (Sample(both) for both in pairs(rng, dtype, low, high)), _DTYPES, tolerance
    )


def _degree(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda x, n: np.where(np.trunc(n) < 0, 0, function(np.maximum(np.trunc(n), 0).astype(int), x))


REFERENCES: dict[str, Reference] = {
    "i0": _unary(special.i0, -8, 8),
    "special_i0e": _unary(special.i0e, -40, 40),
    "special_i1": _unary(special.i1, -8, 8),
    "special_i1e": _unary(special.i1e, -40, 40),
    "special_modified_bessel_k0": _unary(special.k0, 0.1, 9),
    "special_modified_bessel_k1": _unary(special.k1, 0.1, 9),
    "special_scaled_modified_bessel_k0": _unary(special.k0e, 0.1, 50),
    "special_scaled_modified_bessel_k1": _unary(special.k1e, 0.1, 50),
    "special_bessel_j0": _unary(special.j0, -20, 20),
    "special_bessel_j1": _unary(special.j1, -20, 20),
    "special_bessel_y0": _unary(special.y0, 0.1, 20),
    "special_bessel_y1": _unary(special.y1, 0.1, 20),
    "special_spherical_bessel_j0": _unary(lambda x: np.sinc(x / np.pi), -20, 20),
    "special_airy_ai": _unary(lambda x: special.airy(x)[0], -9, 6),
    "special_erfcx": _unary(special.erfcx, -3, 60),
    "special_ndtr": _unary(special.ndtr, -30, 6, 200),
    "special_log_ndtr": _unary(special.log_ndtr, -30, 6),
    "special_ndtri": _unary(special.ndtri, 0.01, 0.99),
    "special_entr": _unary(special.entr, 0.01, 3),
    "igamma": _binary(special.gammainc, 0.2, 6),
    "igammac": _binary(special.gammaincc, 0.2, 6, 200),
    "special_zeta": _binary(special.zeta, 1.5, 8),
    "special_xlog1py": _binary(special.xlog1py, 0.1, 4),
    "special_chebyshev_polynomial_t": _binary(_degree(special.eval_chebyt), -1, 5, 200),
    "special_chebyshev_polynomial_u": _binary(_degree(special.eval_chebyu), -1, 5, 200),
    "special_chebyshev_polynomial_v": _binary(
        _degree(
            lambda n, x: special.eval_chebyu(n, x) - np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), x), 0)
        ),
        -1,
        5,
        200,
    ),
    "special_chebyshev_polynomial_w": _binary(
        _degree(
            lambda n, x: special.eval_chebyu(n, x) + np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), x), 0)
        ),
        -1,
        5,
        200,
    ),
    "special_shifted_chebyshev_polynomial_t": _binary(_degree(special.eval_sh_chebyt), -1, 4, 500),
    "special_shifted_chebyshev_polynomial_u": _binary(_degree(special.eval_sh_chebyu), -1, 4, 500),
    "special_shifted_chebyshev_polynomial_v": _binary(
        _degree(
            lambda n, x: (
                special.eval_sh_chebyu(n, x) - np.where(n > 0, special.eval_sh_chebyu(np.maximum(n - 1, 0), x), 0)
            )
        ),
        -1,
        4,
        500,
    ),
    "special_shifted_chebyshev_polynomial_w": _binary(
        _degree(
            lambda n, x: (
                special.eval_sh_chebyu(n, x) + np.where(n > 0, special.eval_sh_chebyu(np.maximum(n - 1, 0), x), 0)
            )
        ),
        -1,
        4,
        500,
    ),
    "special_hermite_polynomial_h": _binary(_degree(special.eval_hermite), -1, 4, 200),
    "special_hermite_polynomial_he": _binary(_degree(special.eval_hermitenorm), -1, 4, 200),
    "special_laguerre_polynomial_l": _binary(_degree(special.eval_laguerre), -1, 4, 200),
    "special_legendre_polynomial_p": _binary(_degree(special.eval_legendre), -1, 4, 200),
    "gcd": Reference(np.gcd, two(number=None, low=-12, high=12), ("int8", "int16", "int32", "int64", "uint8")),
    "lcm": Reference(np.lcm, two(number=None, low=-9, high=9), ("int16", "int32", "int64")),
    "frexp": Reference(np.frexp, lambda rng, dtype: (Sample((input,)) for input in layouts(rng, dtype)), _DTYPES),
}
