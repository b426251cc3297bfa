"""Gradients of linear solves, inverses and determinants.

Sources: Giles, 2008 (solves and determinants); Golub and Pereyra, "The differentiation of
pseudo-inverses and nonlinear least squares problems whose variables separate", 1973.
"""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor, linalg, ops
from candelabra.composite.transformed import all_values
from candelabra.linalg.factorizations import permutation_of

from ..fitting import sum_to
from ..several import several_derivative
from ..table import derivative, joint_derivative
from .factorization import adjoint, exchanged, triangular, unit_lower
from .parts import conj


def _summed(grad: Tensor, shape: tuple[int, ...]) -> Tensor:
    return grad if grad.shape == shape else sum_to(grad, shape)


def _solve(
    grad: Tensor, A: Tensor, result: Tensor, needs: tuple[bool, bool], A_shape: Any, B_shape: Any
) -> tuple[Any, Any]:
    of_right = ops.linalg_solve_ex(adjoint(A), grad)[0]
    of_matrix = _summed(-of_right @ adjoint(result), A_shape) if needs[0] else None
    return of_matrix, _summed(of_right, B_shape) if needs[1] else None


joint_derivative("linalg_solve_ex", ("A", "B"), _solve)
derivative("linalg_inv_ex", A=lambda grad, result: -(adjoint(result) @ grad @ adjoint(result)))


def _triangular_matrix(
    grad: Tensor,
    self: Tensor,
    result: Tensor,
    upper: bool,
    left: bool,
    unitriangular: bool,
    self_shape: tuple[int, ...],
) -> Tensor:
    of_right = triangular(adjoint(self), grad, not upper, left, unitriangular)
    product = -(of_right @ adjoint(result)) if left else -(adjoint(result) @ of_right)
    part = product.triu(int(unitriangular)) if upper else product.tril(-int(unitriangular))
    return _summed(part, self_shape)


derivative(
    "linalg_solve_triangular",
    self=_triangular_matrix,
    B=lambda grad, self, upper, left, unitriangular, B_shape: _summed(
        triangular(adjoint(self), grad, not upper, left, unitriangular), B_shape
    ),
)


def _lu_solve_factors(
    grad: Tensor, LU: Tensor, pivots: Tensor, result: Tensor, adjoint_: bool, shape: tuple[int, ...]
) -> Tensor:
    of_right = ops.linalg_lu_solve(LU, pivots, grad, not adjoint_)
    of_matrix = -(result @ adjoint(of_right)) if adjoint_ else -(of_right @ adjoint(result))
    order = permutation_of(pivots, LU.shape[-1]).expand(*of_matrix.shape[:-1])
    rows = exchanged(of_matrix, order)
    L, U = unit_lower(LU, LU.shape[-1]), LU.triu()
    return _summed((rows @ adjoint(U)).tril(-1) + (adjoint(L) @ rows).triu(), shape)


derivative(
    "linalg_lu_solve",
    LU=lambda grad, LU, pivots, result, adjoint, LU_shape: _lu_solve_factors(
        grad, LU, pivots, result, adjoint, LU_shape
    ),
    B=lambda grad, LU, pivots, adjoint, B_shape: _summed(ops.linalg_lu_solve(LU, pivots, grad, not adjoint), B_shape),
)


def _cholesky_factor(
    grad: Tensor, input2: Tensor, result: Tensor, upper: bool, input2_shape: tuple[int, ...]
) -> Tensor:
    product = ops.cholesky_solve(grad, input2, upper) @ adjoint(result)
    both = product + adjoint(product)
    return _summed(-(input2 @ both) if upper else -(both @ input2), input2_shape)


derivative(
    "cholesky_solve",
    self=lambda grad, input2, upper, self_shape: _summed(ops.cholesky_solve(grad, input2, upper), self_shape),
    input2=_cholesky_factor,
)


# ---- determinants


def _cofactors(A: Tensor) -> Tensor:
    """Return conj(det(A)) A^-H, also for singular matrices.

    With A = U S V^H, it is computed from the products of all singular values but one.
    """
    U, S, Vh = linalg.svd(A)
    others = S.unsqueeze(-2).expand(*S.shape, S.shape[-1])
    eye = candelabra.eye(S.shape[-1], dtype=candelabra.bool, device=S.device)
    others = candelabra.where(eye, 1.0, others).prod(-1)
    phase = conj(ops.linalg_det(U) * ops.linalg_det(Vh))
    return phase.unsqueeze(-1).unsqueeze(-1) * ((U * others.to(U.dtype).unsqueeze(-2)) @ Vh)


def _is_regular(A: Tensor, inverse: Tensor, info: Tensor) -> bool:
    """Return whether all inverses are accurate to half of the digits.

    Rounding can hide that a matrix is singular, so `info` alone is not enough.
    """
    if not bool((all_values(info) == 0).all()):
        return False
    size = all_values(A).detach().abs().amax((-2, -1)) * all_values(inverse).detach().abs().amax((-2, -1))
    return bool((size * A.shape[-1] < linalg.solving.epsilon(A) ** -0.5).all())


def _det(grad: Tensor, A: Tensor, result: Tensor) -> Tensor:
    if A.numel() == 0:
        return candelabra.zeros_like(A)
    factor = grad.unsqueeze(-1).unsqueeze(-1)
    inverse, info = ops.linalg_inv_ex(A)
    if _is_regular(A, inverse, info):
        return factor * conj(result).unsqueeze(-1).unsqueeze(-1) * adjoint(inverse)
    return factor * _cofactors(A)


derivative("linalg_det", A=_det)


def _slogdet(grads: Any, results: Any, arguments: Any, needs: Any) -> tuple[Tensor]:
    of_sign, of_logarithm = grads
    A, sign = arguments["A"], results[0]
    factor = None if of_logarithm is None else of_logarithm.to(A.dtype)
    if A.is_complex() and of_sign is not None:
        turn = (conj(of_sign) * sign).imag
        rotated = candelabra.complex(candelabra.zeros_like(turn), -turn)
        factor = rotated if factor is None else factor + rotated
    if factor is None:
        return (candelabra.zeros_like(A),)
    return (factor.unsqueeze(-1).unsqueeze(-1) * adjoint(ops.linalg_inv_ex(A)[0]),)


several_derivative("linalg_slogdet", ("A",), _slogdet)


# ---- pseudoinverses and least squares


def _pseudoinverse(grad: Tensor, A: Tensor, P: Tensor) -> Tensor:
    """Return the gradient of A, given that of its pseudoinverse P; assumes constant rank."""
    Ph, grad_h = adjoint(P), adjoint(grad)
    left = grad_h - A @ (P @ grad_h)
    right = grad_h - (grad_h @ P) @ A
    return -(Ph @ grad @ Ph) + left @ (P @ Ph) + (Ph @ P) @ right


derivative("linalg_pinv_atol_rtol", A=lambda grad, A, result: _pseudoinverse(grad, A, result))


def _lstsq_matrix(grad: Tensor, A: Tensor, B: Tensor, A_shape: tuple[int, ...]) -> Tensor:
    P = linalg.pinv(A)
    of_inverse = grad.narrow(-2, 0, A.shape[-1]) @ adjoint(B)
    return _summed(_pseudoinverse(of_inverse, A, P), A_shape)


derivative(
    "linalg_lstsq_driver",
    A=_lstsq_matrix,
    B=lambda grad, A, B_shape: _summed(adjoint(linalg.pinv(A)) @ grad.narrow(-2, 0, A.shape[-1]), B_shape),
)
