"""Factorizations of matrices by LAPACK, through NumPy and SciPy, one matrix of the batch at a
time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack

from candelabra_numpy.kernels import matrix_kernel

Array = Any


def routine(name: str, a: Array) -> Any:
    """Return LAPACK's routine for the dtype of a matrix. Routines for Hermitian matrices have other
    names than for real ones.
    """
    if a.dtype.kind != "c":
        name = name.replace("he", "sy").replace("un", "or")
    return lapack.get_lapack_funcs((name,), (a,))[0]


@matrix_kernel("linalg_cholesky_ex")
def cholesky(a: Array, upper: bool) -> tuple[Array, int]:
    if a.size == 0:
        return a, 0
    factor, info = routine("potrf", a)(a, lower=not upper, clean=True)
    return factor, max(info, 0)


def _without_exchanges(a: Array) -> tuple[Array, int]:
    """Eliminate column by column, without pivoting."""
    a = a.copy()
    info = 0
    for i in range(min(a.shape)):
        if a[i, i] == 0:
            info = info or i + 1
            continue
        a[i + 1 :, i] /= a[i, i]
        a[i + 1 :, i + 1 :] -= np.outer(a[i + 1 :, i], a[i, i + 1 :])
    return a, info


@matrix_kernel("linalg_lu_factor_ex")
def lu_factor(a: Array, pivot: bool) -> tuple[Array, Array, int]:
    rows = np.arange(min(a.shape)) + 1
    if a.size == 0:
        return a, rows, 0
    if not pivot:
        factors, info = _without_exchanges(a)
        return factors, rows, info
    factors, exchanged, info = routine("getrf", a)(a)
    return factors, exchanged + 1, max(info, 0)


@matrix_kernel("linalg_ldl_factor_ex")
def ldl_factor(a: Array, hermitian: bool) -> tuple[Array, Array, int]:
    if a.size == 0:
        return a, np.zeros(a.shape[0], np.int32), 0
    factors, pivots, info = routine("hetrf" if hermitian else "sytrf", a)(a, lower=True)
    return np.tril(factors), pivots, max(info, 0)


@matrix_kernel("geqrf")
def geqrf(a: Array) -> tuple[Array, Array]:
    if a.size == 0:
        return a, np.zeros(min(a.shape), a.dtype)
    packed, tau, _work, _info = routine("geqrf", a)(a)
    return packed, tau


@matrix_kernel("linalg_qr")
def qr(a: Array, mode: str) -> tuple[Array | None, Array]:
    if mode == "r":
        return None, np.linalg.qr(a, "r")
    q, r = np.linalg.qr(a, mode)
    return q, r


@matrix_kernel("linalg_householder_product", inner=(2, 1))
def householder_product(a: Array, tau: Array) -> Array:
    result = np.eye(*a.shape, dtype=a.dtype)
    for i in reversed(range(len(tau))):
        v = a[:, i].copy()
        v[:i], v[i] = 0, 1
        result -= tau[i] * np.outer(v, v.conj() @ result)
    return result
