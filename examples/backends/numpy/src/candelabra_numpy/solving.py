"""Linear systems by LAPACK, through SciPy, one matrix of the batch at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import blas

from candelabra_numpy.factorization import routine
from candelabra_numpy.kernels import matrix_kernel

Array = Any


@matrix_kernel("linalg_solve_ex", inner=(2, 2))
def solve(a: Array, b: Array) -> tuple[Array, int]:
    if b.size == 0:
        return b, 0
    _factors, _exchanged, x, info = routine("gesv", a)(a, b)
    return x, max(info, 0)


@matrix_kernel("linalg_inv_ex")
def invert(a: Array) -> tuple[Array, int]:
    if a.size == 0:
        return a, 0
    _factors, _exchanged, x, info = routine("gesv", a)(a, np.eye(len(a), dtype=a.dtype))
    return x, max(info, 0)


@matrix_kernel("linalg_solve_triangular", inner=(2, 2))
def solve_triangular(a: Array, b: Array, upper: bool, left: bool, unitriangular: bool) -> Array:
    if b.size == 0:
        return b
    (trsm,) = blas.get_blas_funcs(("trsm",), (a, b))
    return trsm(1, a, b, side=int(not left), lower=not upper, diag=unitriangular)


@matrix_kernel("linalg_lu_solve", inner=(2, 1, 2))
def lu_solve(factors: Array, pivots: Array, b: Array, adjoint: bool) -> Array:
    if b.size == 0:
        return b
    x, _info = routine("getrs", factors)(factors, pivots - 1, b, trans=2 if adjoint else 0)
    return x


@matrix_kernel("linalg_ldl_solve", inner=(2, 1, 2))
def ldl_solve(factors: Array, pivots: Array, b: Array, hermitian: bool) -> Array:
    if b.size == 0:
        return b
    x, _info = routine("hetrs" if hermitian else "sytrs", factors)(factors, pivots, b, lower=True)
    return x


@matrix_kernel("linalg_lstsq_driver", inner=(2, 2))
def lstsq(a: Array, b: Array, rcond: float, driver: str) -> tuple[Array, int, Array | None]:
    (m, n), columns = a.shape, b.shape[1]
    singular = np.zeros(min(m, n), a.real.dtype) if driver in ("gelsd", "gelss") else None
    x = np.zeros((max(m, n), columns), a.dtype)  # as many rows as LAPACK requires for the solution
    if a.size == 0 or b.size == 0:
        return x, 0, singular
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise RuntimeError(
            "torch.linalg.lstsq: the least squares solution could not be computed because the input contains elements that are not finite."
        )
    x[:m] = b
    if driver == "gels":
        _factors, x, info = routine("gels", a)(a, x)
        if info > 0:
            raise RuntimeError(
                "torch.linalg.lstsq: The least squares solution could not be computed because the input matrix does not have full"
                f" rank (error code: {info})."
            )
        return x, min(m, n), None
    if driver == "gelsy":
        work, _info = routine("gelsy_lwork", a)(m, n, columns, rcond)
        _factors, x, _columns, rank, _info = routine("gelsy", a)(a, x, np.zeros(n, np.int32), rcond, int(work.real))
        return x, rank, None
    if driver == "gelss":
        _factors, x, singular, rank, _work, info = routine("gelss", a)(a, x, cond=rcond)
    else:
        sizes = routine("gelsd_lwork", a)(m, n, columns)
        x, singular, rank, info = routine("gelsd", a)(a, x, *(int(size.real) for size in sizes[:-1]), rcond)
    if info > 0:
        raise RuntimeError(
            f"torch.linalg.lstsq: the algorithm for computing the SVD failed to converge (error code: {info})."
        )
    return x, rank, singular
