"""Muon: momentum with orthogonalized updates for matrices."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Tensor

from .plain import PlainOptimizer
from .stepping import check_lr


def orthogonalized(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Return an approximation of the nearest semi-orthogonal matrix, computed in bfloat16.

    Applies ``X = a X + (b A + c A A) X`` with ``A = X X^T`` `steps` times, starting from X with
    Frobenius norm 1. This is a Newton–Schulz iteration of fifth order. Its coefficients are chosen
    to be steep at zero instead of exact at one, so singular values end near 1. Source: Jordan et
    al., "Muon: an optimizer for hidden layers in neural networks", 2024.

    Raises
    ------
    ValueError
        If `steps` is 100 or more, the tensor is not a matrix, or there are not three coefficients.
    """
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if matrix.ndim != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = matrix.shape[0] > matrix.shape[1]  # the smaller of the two Gram matrices is used
    x = matrix.to(candelabra.bfloat16, copy=True)
    x = x.t() if tall else x
    x.div_(candelabra.linalg.vector_norm(x).clamp(min=eps))
    for _ in range(steps):
        gram = x @ x.t()
        x = candelabra.addmm(x, candelabra.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.t() if tall else x


class Muon(PlainOptimizer):
    """Muon for weight matrices: orthogonalized momentum with decoupled weight decay.

    ``b = momentum * b + (1 - momentum) * grad``; with `nesterov` ``u = (1 - momentum) * grad +
    momentum * b``, else ``u = b``; ``p = p * (1 - lr * weight_decay) - rate * orthogonal(u)``.
    Sources: Jordan et al., 2024; Liu et al., "Muon is Scalable for LLM Training", 2025.

    Parameters
    ----------
    params
        Matrices, or dicts of groups of them; see `Optimizer`. Use another optimizer, such as
        `AdamW`, for vectors, embeddings and the like.
    lr, weight_decay, momentum, nesterov
        Options of the update rule above.
    ns_coefficients, eps, ns_steps
        Options of the orthogonalization; see `orthogonalized`.
    adjust_lr_fn
        How `lr` is scaled for a matrix of A rows and B columns. None and ``"original"`` multiply it
        by ``sqrt(max(1, A / B))``, ``"match_rms_adamw"`` by ``0.2 * sqrt(max(A, B))``.

    Raises
    ------
    ValueError
        If an option is out of range or a parameter is not a matrix.
    RuntimeError
        If a parameter is complex; raised in `step`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import optim
    >>> weight = candelabra.zeros(2, 2)
    >>> weight.grad = candelabra.tensor([[4.0, 0.0], [0.0, 0.1]])
    >>> optim.Muon([weight], lr=0.1).step()
    >>> bool((weight.diagonal() < 0).all())
    True
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_lr(lr, "Learning rate should be >= 0 but is: {}")
        if not momentum >= 0.0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        for parameter in self.param_groups[-1]["params"]:
            if parameter.ndim != 2:
                self.param_groups.pop()
                raise ValueError(
                    f"Muon only supports 2D parameters whereas we found a parameter with size: {parameter.size()}"
                )

    def _check(self, parameter: Tensor) -> None:
        if parameter.is_complex():
            raise RuntimeError("Muon does not support complex parameters")

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        return {"momentum_buffer": candelabra.zeros_like(parameter)}

    def _update(self, group: dict[str, Any], parameter: Tensor, grad: Tensor, state: Any) -> None:
        lr, momentum = float(group["lr"]), group["momentum"]
        buffer = state["momentum_buffer"]
        buffer.lerp_(grad, 1 - momentum)
        update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
        update = orthogonalized(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = parameter.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            rate = lr * 0.2 * math.sqrt(max(rows, columns))
        else:
            rate = lr * math.sqrt(max(1, rows / columns)) if columns else lr
        parameter.mul_(1 - lr * group["weight_decay"]).add_(update, alpha=-rate)


__all__ = ["Muon"]
