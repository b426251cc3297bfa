"""Gradients of matrix and vector products: for C = A B they are grad Bᴴ and Aᴴ grad."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor, ops

from ..fitting import sum_to
from ..table import derivative, joint_derivative
from .parts import conj


def adjoint(matrix: Tensor) -> Tensor:
    """Return the conjugate transpose of the last two dimensions."""
    return conj(matrix.transpose(-2, -1))


derivative("mm", self=lambda grad, mat2: grad.mm(conj(mat2).t()), mat2=lambda grad, self: conj(self).t().mm(grad))
derivative("bmm", self=lambda grad, mat2: grad.bmm(adjoint(mat2)), mat2=lambda grad, self: adjoint(self).bmm(grad))
derivative(
    "mv",
    self=lambda grad, vec: grad.unsqueeze(1) * conj(vec).unsqueeze(0),
    vec=lambda grad, self: conj(self).t().mv(grad),
)
derivative("dot", self=lambda grad, tensor: grad * conj(tensor), tensor=lambda grad, self: grad * conj(self))


def _scaled(value: Tensor, by: Any) -> Tensor:
    return value if by == 1 else value * conj(by)


derivative(
    "addmm",
    self=lambda grad, beta, self_shape: _reduced(_scaled(grad, beta), self_shape),
    mat1=lambda grad, mat2, alpha: _scaled(grad.mm(conj(mat2).t()), alpha),
    mat2=lambda grad, mat1, alpha: _scaled(conj(mat1).t().mm(grad), alpha),
)  # fmt: skip
derivative(
    "baddbmm",
    self=lambda grad, beta, self_shape: _reduced(_scaled(grad, beta), self_shape),
    batch1=lambda grad, batch2, alpha: _scaled(grad.bmm(adjoint(batch2)), alpha),
    batch2=lambda grad, batch1, alpha: _scaled(adjoint(batch1).bmm(grad), alpha),
)


def _reduced(grad: Tensor, shape: tuple[int, ...]) -> Tensor:
    return grad if grad.shape == shape else sum_to(grad, shape)


# ---- linear: input @ weight.T + bias


def _rows(value: Tensor) -> Tensor:
    return value if value.ndim == 2 else value.flatten(0, value.ndim - 2)


def _linear_input(grad: Tensor, weight: Tensor, input_shape: tuple[int, ...]) -> Tensor:
    weight = conj(weight)
    if weight.ndim == 1:
        return grad.unsqueeze(-1) * weight
    if grad.ndim == 2:
        return grad.mm(weight)
    if grad.ndim == 1:
        return weight.t().mv(grad)
    return _rows(grad).mm(weight).reshape(input_shape)


def _linear_weight(grad: Tensor, input: Tensor, weight_shape: tuple[int, ...]) -> Tensor:
    input = conj(input)
    if len(weight_shape) == 1:
        return _rows(input).t().mv(grad.reshape(-1))
    if grad.ndim == 1:
        return grad.unsqueeze(1) * input.unsqueeze(0)
    return _rows(grad).t().mm(_rows(input))


def _linear_bias(grad: Tensor, bias_shape: tuple[int, ...]) -> Tensor:
    if len(bias_shape) == 0:
        return grad.sum()
    return grad if grad.ndim == 1 else _rows(grad).sum(0)


derivative("linear", input=_linear_input, weight=_linear_weight, bias=_linear_bias)


def _distances(
    grad: Tensor, x1: Tensor, x2: Tensor, p: float, result: Tensor, needs: tuple[bool, bool]
) -> tuple[Any, Any]:
    of_first = ops._cdist_backward(grad, x1, x2, result, p) if needs[0] else None
    of_second = ops._cdist_backward(grad.mT, x2, x1, result.mT, p) if needs[1] else None
    return of_first, of_second


joint_derivative("_cdist_forward", ("x1", "x2"), _distances)
