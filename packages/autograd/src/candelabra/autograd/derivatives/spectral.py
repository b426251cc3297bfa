"""Gradients of eigenvalues and singular values.

Sources: Giles, "An extended collection of matrix derivative results for forward and reverse mode
algorithmic differentiation", 2008; Boeddeker, Hanebrink, Drude, Heymann and Haeb-Umbach, "On the
computation of complex-valued gradients with application to statistically optimum beamforming",
2017. For the phases of complex vectors: Wan and Zhang, "Automatic differentiation for complex
valued SVD", 2019.
"""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor, ops
from candelabra.composite.transformed import all_values
from candelabra.linalg import LinAlgError

from ..several import several_derivative
from .factorization import adjoint
from .parts import conj


def _as(values: Tensor, like: Tensor) -> Tensor:
    """Return real values in the dtype of `like`."""
    return values.to(like.dtype)


def _differences(values: Tensor) -> Tensor:
    """Return E[i, j] = values[j] - values[i], with ones on the diagonal to avoid 0 / 0."""
    E = values.unsqueeze(-2) - values.unsqueeze(-1)
    return E + candelabra.eye(values.shape[-1], dtype=E.dtype, device=E.device)


def _no_diagonal(matrix: Tensor) -> Tensor:
    return matrix - candelabra.diag_embed(matrix.diagonal(0, -2, -1))


def _eigh(grads: Any, results: Any, arguments: Any, needs: Any) -> tuple[Tensor]:
    gL, gV = grads[0], grads[1]
    L, V = results[0], results[1]
    if gV is None:
        return ((V * _as(gL, V).unsqueeze(-2)) @ adjoint(V),)
    VhgV = adjoint(V) @ gV
    _check_phase(VhgV, "linalg_eigh_backward", "eigenvectors")
    # The columns of V stay orthonormal, so only the skew-Hermitian part of V^H gV matters.
    inner = _no_diagonal(0.5 * _skew(VhgV)) / _as(_differences(L), V)
    if gL is not None:
        inner = inner + candelabra.diag_embed(_as(gL, V))
    return (V @ (inner @ adjoint(V)),)


def _check_phase(matrix: Tensor, name: str, what: str) -> None:
    """Raise if the loss depends on the phases of the vectors, which are arbitrary."""
    if not matrix.is_complex() or matrix.numel() == 0:
        return
    imaginary = matrix.detach().diagonal(0, -2, -1).imag
    tolerance = 1e-2
    small = imaginary.abs() <= tolerance * matrix.detach().abs().amax((-2, -1)).clamp(min=1).unsqueeze(-1)
    if not bool(all_values(small).all()):
        raise RuntimeError(
            f"{name}: The {what} in the complex case are specified up to multiplication by e^{{i phi}}. The specified loss function depends on this quantity, so it is ill-defined."
        )


def _eig(grads: Any, results: Any, arguments: Any, needs: Any) -> tuple[Tensor]:
    gL, gV = grads[0], grads[1]
    L, V = results[0], results[1]
    Vh = adjoint(V)
    if gV is None:
        inner = gL.unsqueeze(-1) * Vh
    else:
        VhgV = Vh @ gV
        real = VhgV.diagonal(0, -2, -1).real
        _check_phase(VhgV, "linalg_eig_backward", "eigenvectors")
        inner = VhgV - (Vh @ V) * _as(real, V).unsqueeze(-2)
        inner = _no_diagonal(inner) / conj(_differences(L))
        if gL is not None:
            inner = inner + candelabra.diag_embed(gL)
        inner = inner @ Vh
    grad, info = ops.linalg_solve_ex(Vh, inner)
    if bool((all_values(info) != 0).any()):
        raise LinAlgError(
            "linalg_eig_backward: the eigenvectors are linearly dependent: the matrix cannot be diagonalized, and has no gradient"
        )
    return (grad if arguments["A"].is_complex() else grad.real,)


def _skew(matrix: Tensor) -> Tensor:
    return matrix - adjoint(matrix)


def _svd(grads: Any, results: Any, arguments: Any, needs: Any) -> tuple[Tensor]:
    gU, gS, gVh = grads[0], grads[1], grads[2]
    U, S, Vh = results[0], results[1], results[2]
    m, n = arguments["A"].shape[-2:]
    k = min(m, n)
    if arguments["full_matrices"]:
        if (gU is not None and m > k) or (gVh is not None and n > k):
            # The vectors beyond the first k are an arbitrary basis, so no loss can depend on them.
            U, Vh = U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)
            gU = gU if gU is None else gU.narrow(-1, 0, k)
            gVh = gVh if gVh is None else gVh.narrow(-2, 0, k)
        else:
            U, Vh = U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)
    wide = _as(S, U)
    if gU is None and gVh is None:
        return ((U * _as(gS, U).unsqueeze(-2)) @ Vh,)
    if m == 0 or n == 0:
        return (candelabra.zeros_like(arguments["A"]),)
    V = adjoint(Vh)
    gV = None if gVh is None else adjoint(gVh)
    skew_u = None if gU is None else _skew(adjoint(U) @ gU)
    skew_v = None if gV is None else _skew(Vh @ gV)
    E = _as(_differences(S) * (S.unsqueeze(-2) + S.unsqueeze(-1)), U)
    inner: Any = 0
    if skew_u is not None:
        inner = inner + (_no_diagonal(skew_u) / E) * wide.unsqueeze(-2)
    if skew_v is not None:
        inner = inner + wide.unsqueeze(-1) * (_no_diagonal(skew_v) / E)
    if U.is_complex() and skew_u is not None:
        # U and V share the phases; half of the phase difference is on the diagonal of skew_u.
        inner = inner + candelabra.diag_embed(skew_u.diagonal(0, -2, -1) / (2 * wide))
    if gS is not None:
        inner = inner + candelabra.diag_embed(_as(gS, U))
    if gU is not None and m > k:
        rest = gU / wide.unsqueeze(-2)
        left = U @ inner + rest - U @ (adjoint(U) @ rest)
    else:
        left = U @ inner
    grad = left @ Vh
    if gV is not None and n > k:
        rest = gVh if gVh is not None else gV
        rest = rest / wide.unsqueeze(-1)
        grad = grad + U @ (rest - (rest @ V) @ Vh)
    return (grad,)


several_derivative("linalg_eigh_ex", ("A",), _eigh)
several_derivative("linalg_eig_ex", ("A",), _eig)
several_derivative("linalg_svd_ex", ("A",), _svd)
