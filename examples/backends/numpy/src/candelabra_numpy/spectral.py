"""Eigenvalues and singular values by NumPy. If they do not exist, the results are NaN, and `info`
reports it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_numpy.kernels import matrix_kernel

Array = Any


@matrix_kernel("linalg_eigh_ex")
def eigh(a: Array, UPLO: str, compute_v: bool) -> tuple[Array, Array | None, int]:
    if not np.isfinite(a).all():
        return np.nan, np.nan if compute_v else None, -1
    if not compute_v:
        return np.linalg.eigvalsh(a, UPLO), None, 0
    values, vectors = np.linalg.eigh(a, UPLO)
    return values, vectors, 0


@matrix_kernel("linalg_eig_ex")
def eig(a: Array, compute_v: bool) -> tuple[Array, Array | None, int]:
    if not np.isfinite(a).all():
        return np.nan, np.nan if compute_v else None, -1
    if not compute_v:
        return np.linalg.eigvals(a), None, 0
    values, vectors = np.linalg.eig(a)
    return values, vectors, 0


@matrix_kernel("linalg_svd_ex")
def svd(a: Array, full_matrices: bool, compute_uv: bool) -> tuple[Array | None, Array, Array | None, int]:
    if not np.isfinite(a).all():
        vectors = np.nan if compute_uv else None
        return vectors, np.nan, vectors, -1
    if not compute_uv:
        return None, np.linalg.svd(a, compute_uv=False), None, 0
    u, s, vh = np.linalg.svd(a, full_matrices)
    return u, s, vh, 0
