"""References of eigenvalues and singular values: values by NumPy, vectors by their defining
equations.
"""

from __future__ import annotations

import numpy as np

from candelabra.testing.reference.factorization import ANY, DTYPES, SQUARE, _nothing, _rounded, adjoint, far, matrices
from candelabra.testing.sampling import Reference

Array = np.ndarray


def hermitian(a: Array) -> Array:
    return a + adjoint(a)


def _eigh(results: tuple[Array, ...], a: Array, UPLO: str = "L", compute_v: bool = True) -> str | None:
    values, vectors, _info = results
    wrong = far("eigenvalues", values, np.linalg.eigvalsh(a), a)
    if wrong or not compute_v:
        return wrong
    return far("V diag(w) V^H", _rounded((vectors * values[..., None, :]) @ adjoint(vectors), vectors), a, a)


def _eig(results: tuple[Array, ...], a: Array, compute_v: bool = True) -> str | None:
    values, vectors, _info = results
    trace = far(
        "the sum of eigenvalues", _rounded(values.sum(-1), values), np.trace(a, axis1=-2, axis2=-1).astype(complex), a
    )
    if trace or not compute_v:
        return trace
    return far("A V - V diag(w)", _rounded(a @ vectors, vectors), _rounded(vectors * values[..., None, :], vectors), a)


def _svd(results: tuple[Array, ...], a: Array, full_matrices: bool = True, compute_uv: bool = True) -> str | None:
    U, S, Vh, _info = results
    wrong = far("singular values", S, np.linalg.svd(a, compute_uv=False), a)
    if wrong or not compute_uv:
        return wrong
    k = S.shape[-1]
    if full_matrices and (U.shape[-1] != a.shape[-2] or Vh.shape[-2] != a.shape[-1]):
        return f"U of shape {U.shape} and Vh of shape {Vh.shape} are not square"
    return far("U diag(S) Vh", _rounded((U[..., :k] * S[..., None, :]) @ Vh[..., :k, :], U), a, a)


REFERENCES: dict[str, Reference] = {
    "linalg_eigh_ex": Reference(
        _nothing, matrices(SQUARE, ({}, {"UPLO": "U"}, {"compute_v": False}), hermitian), DTYPES, compare=_eigh
    ),
    "linalg_eig_ex": Reference(_nothing, matrices(SQUARE, ({}, {"compute_v": False})), DTYPES, compare=_eig),
    "linalg_svd_ex": Reference(
        _nothing, matrices(ANY, ({}, {"full_matrices": False}, {"compute_uv": False})), DTYPES, compare=_svd
    ),
}
