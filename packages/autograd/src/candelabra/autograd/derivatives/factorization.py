"""Gradients of factorizations.

Sources: Murray, "Differentiation of the Cholesky decomposition", 2016; Walter and Lehmann,
"Algorithmic differentiation of linear algebra functions with application in optimum experimental
design", 2010 (QR); Roberts and Roberts, "QR and LQ decomposition matrix backpropagation algorithms
for square, wide, and deep matrices", 2020. LU and Householder products are differentiated as
products of their factors: for A = P L U, dA = P (dL U + L dU).
"""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor, ops
from candelabra.linalg.factorizations import permutation_of

from ..several import several_derivative
from ..table import derivative, joint_derivative
from .parts import conj


def adjoint(matrix: Tensor) -> Tensor:
    """Return the conjugate transpose of the last two dimensions."""
    return conj(matrix.transpose(-2, -1))


def triangular(A: Tensor, B: Tensor, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """Solve a triangular system."""
    return ops.linalg_solve_triangular(A, B, upper=upper, left=left, unitriangular=unitriangular)


def _cholesky(grad: Tensor, result: Tensor, upper: bool) -> Tensor:
    lower = adjoint(result) if upper else result
    grad = adjoint(grad) if upper else grad
    inner = (adjoint(lower) @ grad).tril()
    inner = inner + adjoint(inner.tril(-1))
    return 0.5 * triangular(lower, triangular(adjoint(lower), inner, True), False, left=False)


derivative("linalg_cholesky_ex", self=_cholesky)


# ---- LU


def unit_lower(LU: Tensor, columns: int) -> Tensor:
    """Return the unit lower triangular factor of a packed LU."""
    eye = candelabra.eye(LU.shape[-2], columns, dtype=LU.dtype, device=LU.device)
    return LU.narrow(-1, 0, columns).tril(-1) + eye


def exchanged(matrix: Tensor, order: Tensor) -> Tensor:
    """Return the rows of a matrix in the given order."""
    return candelabra.take_along_dim(matrix, order.unsqueeze(-1), -2)


def _lu_factor(grad: Tensor, result: Tensor, result1: Tensor) -> Tensor:
    m, n = result.shape[-2:]
    k = min(m, n)
    L, U = unit_lower(result, k), result.narrow(-2, 0, k).triu()
    gL, gU = grad.narrow(-1, 0, k).tril(-1), grad.narrow(-2, 0, k).triu()
    L1, U1 = L.narrow(-2, 0, k), U.narrow(-1, 0, k)
    left = adjoint(L1) @ gL.narrow(-2, 0, k)
    right = gU.narrow(-1, 0, k) @ adjoint(U1)
    if n > m:
        left = left - gU.narrow(-1, k, n - k) @ adjoint(U.narrow(-1, k, n - k))
    if m > n:
        right = right - adjoint(L.narrow(-2, k, m - k)) @ gL.narrow(-2, k, m - k)
    inner = triangular(adjoint(L1), left.tril(-1) + right.triu(), True, unitriangular=True)
    rows = triangular(adjoint(U1), inner, False, left=False)
    if n > m:
        rows = candelabra.cat([rows, triangular(adjoint(L1), gU.narrow(-1, k, n - k), True, unitriangular=True)], -1)
    if m > n:
        rows = candelabra.cat([rows, triangular(adjoint(U1), gL.narrow(-2, k, m - k), False, left=False)], -2)
    return exchanged(rows, permutation_of(result1, m, True))


derivative("linalg_lu_factor_ex", A=_lu_factor)


# ---- QR


def _half_symmetric(matrix: Tensor) -> Tensor:
    """Return X + X^H, with the diagonal counted once."""
    both = matrix + adjoint(matrix)
    return both - 0.5 * candelabra.diag_embed(both.diagonal(0, -2, -1))


def _qr_tall(gQ: Any, gR: Any, Q: Tensor, R: Tensor) -> Tensor:
    """Return the gradient of QR for square R, where Q has as many columns as R has rows."""
    inner: Any = 0
    if gR is not None:
        inner = gR @ adjoint(R)
    if gQ is not None:
        inner = inner - adjoint(Q) @ gQ
    grad = Q @ _half_symmetric(inner.triu())
    if gQ is not None:
        grad = grad + gQ
    return triangular(adjoint(R), grad, False, left=False)


def _qr(grads: Any, results: Any, arguments: Any, needs: Any) -> tuple[Tensor]:
    (gQ, gR), (Q, R), A, mode = grads, results, arguments["A"], arguments["mode"]
    m, n = A.shape[-2:]
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced')"
        )
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    if m >= n:
        return (_qr_tall(gQ, gR, Q, R),)
    # A = [A1 A2] = Q [R1 R2], where Q and R1 are the factors of A1, and R2 = Q^H A2.
    R1, A2 = R.narrow(-1, 0, m), A.narrow(-1, m, n - m)
    if gR is None:
        first = _qr_tall(gQ, None, Q, R1)
        return (candelabra.cat([first, candelabra.zeros_like(A2)], -1),)
    gR2 = gR.narrow(-1, m, n - m)
    through = A2 @ adjoint(gR2)
    gQ = through if gQ is None else gQ + through
    return (candelabra.cat([_qr_tall(gQ, gR.narrow(-1, 0, m), Q, R1), Q @ gR2], -1),)


several_derivative("linalg_qr", ("A",), _qr)


# ---- Householder reflections H = I - tau v v^H


def _reflected(tau: Tensor, v: Tensor, matrix: Tensor) -> Tensor:
    """Return (I - tau v v^H) @ matrix."""
    return matrix - tau * v @ (adjoint(v) @ matrix)


def _householder(grads: Tensor, input: Tensor, tau: Tensor, result: Tensor, needs: Any) -> tuple[Any, Any]:
    m, n = input.shape[-2:]
    count = tau.shape[-1]
    lower = input.tril(-1) + candelabra.eye(m, n, dtype=input.dtype, device=input.device)
    vectors = [lower.narrow(-1, i, 1) for i in range(count)]
    scales = [tau.narrow(-1, i, 1).unsqueeze(-1) for i in range(count)]
    # M is the gradient of the i-th reflection. The reflections to its left and right are already
    # applied to the gradient.
    M = grads @ adjoint(result)
    of_vectors, of_scales = [], []
    for i, (v, scale) in enumerate(zip(vectors, scales, strict=True)):
        if i:
            M = _reflected(conj(scales[i - 1]), vectors[i - 1], M)
        inverse = scale / (scale * (adjoint(v) @ v) - 1)
        M = M - (M @ v) * conj(inverse) @ adjoint(v)
        Mv = M @ v
        of_scales.append(-(adjoint(v) @ Mv).squeeze(-1))
        of_vectors.append(-(conj(scale) * Mv + scale * (adjoint(M) @ v)))
    if not count:
        return candelabra.zeros_like(input), candelabra.zeros_like(tau)
    gradient = candelabra.cat(of_vectors, -1)
    if n > count:
        gradient = candelabra.cat([gradient, candelabra.zeros_like(input.narrow(-1, count, n - count))], -1)
    return gradient.tril(-1), candelabra.cat(of_scales, -1)


joint_derivative("linalg_householder_product", ("input", "tau"), _householder)
