"""The matrix exponential."""

from __future__ import annotations

import math

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..keyword_names import also_named
from ..registration import FUNCTIONS, function
from ..transformed import all_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra._C import Tensor

#: Coefficients of the numerator of the [13/13] Padé approximant of exp, and the largest 1-norm for
#: which it is exact to double precision: Higham, "The scaling and squaring method for the matrix
#: exponential revisited", 2005, equation 2.1 and table 2.3.
_DEGREE = 13
_PADE = [
    math.factorial(2 * _DEGREE - j)
    * math.factorial(_DEGREE)
    // (math.factorial(_DEGREE - j) * math.factorial(j))
    * 1.0
    / math.factorial(2 * _DEGREE)
    for j in range(_DEGREE + 1)
]
_LARGEST_NORM = 5.371920351148152


@function(name="matrix_exp")
@also_named(input="A")
def matrix_exp(A: Tensor) -> Tensor:
    """Compute the exponential of square matrices, ``sum A^k / k!``.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n), floating point or complex.

    Raises
    ------
    RuntimeError
        If the matrices are not square.

    Notes
    -----
    Scaling and squaring with a Padé approximant of degree 13 (Higham, 2005): ``exp(A) = exp(A /
    2^s)^(2^s)``, with s for each matrix of a batch.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.matrix_exp(candelabra.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if not (A.dtype.is_floating_point or A.dtype.is_complex):
        raise RuntimeError(f"linalg.matrix_exp: Expected a floating point or complex tensor as input. Got {A.dtype}")
    if A.ndim < 2:
        raise RuntimeError("linalg.matrix_exp: The input tensor A must have at least 2 dimensions.")
    n = A.shape[-1]
    if A.shape[-2] != n:
        raise RuntimeError(
            f"linalg.matrix_exp: A must be batches of square matrices, but they are {A.shape[-2]} by {n} matrices"
        )
    if A.numel() == 0 or n == 1:
        return OPERATORS["exp"](A)
    if A.dtype in (_C.float16, _C.bfloat16):
        return OPERATORS["_to_copy"](matrix_exp(OPERATORS["_to_copy"](A, dtype=_C.float32)), dtype=A.dtype)
    norms = OPERATORS["amax"](OPERATORS["sum"](OPERATORS["abs"](A.detach()), -2), (-1,))
    # A norm that is not finite gives no squarings, and NaN propagates.
    halvings = OPERATORS["ceil"](OPERATORS["log2"](norms / _LARGEST_NORM))
    halvings = OPERATORS["clamp"](OPERATORS["where"](OPERATORS["isfinite"](halvings), halvings, 0), min=0)
    scale = OPERATORS["exp2"](-halvings).unsqueeze(-1).unsqueeze(-1)
    result = _approximant(A * scale)
    for k in range(int(OPERATORS["amax"](all_values(halvings))) if halvings.numel() and not A.is_meta else 0):
        again = (halvings > k).unsqueeze(-1).unsqueeze(-1)
        result = OPERATORS["where"](again, result @ result, result)
    return result


def _approximant(A: Tensor) -> Tensor:
    identity = FUNCTIONS["eye"](A.shape[-1], dtype=A.dtype, device=A.device)
    b = [value * (1 / _PADE[-1]) for value in _PADE]
    A2 = A @ A
    A4 = A2 @ A2
    A6 = A4 @ A2
    U = A @ (A6 @ (b[13] * A6 + b[11] * A4 + b[9] * A2) + b[7] * A6 + b[5] * A4 + b[3] * A2 + b[1] * identity)
    V = A6 @ (b[12] * A6 + b[10] * A4 + b[8] * A2) + b[6] * A6 + b[4] * A4 + b[2] * A2 + b[0] * identity
    # V - U is invertible for norms up to the limit. If A is not finite, the result is NaN.
    return OPERATORS["linalg_solve_ex"](V - U, V + U)[0]
