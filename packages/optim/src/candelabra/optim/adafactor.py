"""Adafactor."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Tensor

from .plain import PlainOptimizer
from .stepping import check_lr


class Adafactor(PlainOptimizer):
    """Adafactor: factored second moments per row and column, with relative step sizes.

    With ``b = t^beta2_decay`` and ``rms(x)`` the root mean square: ``rate = max(eps2, rms(p)) *
    min(lr, 1 / sqrt(t))``; ``p = p * (1 - lr * weight_decay)``. A matrix keeps row means ``r = (1 -
    b) * r + b * mean(g^2, -1)`` and column means ``c`` likewise, and ``v = r c / max(mean(r),
    eps1)``. Parameters of one dimension keep ``v`` in full. Then ``u = g / max(sqrt(v), eps1)`` and
    ``p = p - rate * u / max(1, rms(u) / d)``. Source: Shazeer and Stern, 2018, with `lr` and `eps1`
    placed as in PyTorch.

    Parameters
    ----------
    params
        Tensors, or dicts of groups; see `Optimizer`. Real only.
    lr, beta2_decay, eps, d, weight_decay
        Options of the update rule above. If ``eps[0]`` is None, it is the machine epsilon of the
        dtype.
    foreach
        Accepted for compatibility with PyTorch; has no effect.
    maximize
        Maximize the objective instead of minimizing it.

    Raises
    ------
    ValueError
        If an option is out of range.
    RuntimeError
        If a parameter is complex; raised in `step`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import optim
    >>> weight = candelabra.ones(2, 2)
    >>> weight.grad = candelabra.tensor([[4.0, 4.0], [4.0, 4.0]])
    >>> optim.Adafactor([weight], lr=0.1).step()
    >>> weight
    tensor([[0.9000, 0.9000],
            [0.9000, 0.9000]])
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_lr(lr, "Learning rate should be >= 0 but is: {}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check(self, parameter: Tensor) -> None:
        if parameter.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        if parameter.ndim < 2:
            return {"step": 0, "variance": candelabra.zeros_like(parameter)}
        *outer, rows, columns = parameter.shape
        return {
            "step": 0,
            "row_var": parameter.new_zeros((*outer, rows, 1)),
            "col_var": parameter.new_zeros((*outer, 1, columns)),
        }

    def _update(self, group: dict[str, Any], parameter: Tensor, grad: Tensor, state: Any) -> None:
        lr, d = float(group["lr"]), group["d"]
        eps1, eps2 = group["eps"]
        if eps1 is None:
            eps1 = candelabra.finfo(parameter.dtype).eps
        step = state["step"] = state["step"] + 1
        if group["maximize"]:
            grad = -grad
        share = step ** group["beta2_decay"]
        rate = max(eps2, _root_mean_square(parameter)) * min(lr, 1 / math.sqrt(step))
        if group["weight_decay"] != 0:
            parameter.mul_(1 - lr * group["weight_decay"])
        if grad.ndim > 1:
            rows, columns = state["row_var"], state["col_var"]
            for kept, dim in ((rows, -1), (columns, -2)):
                norms = candelabra.linalg.vector_norm(grad, dim=dim, keepdim=True)
                kept.lerp_(norms.square_().div_(grad.shape[dim]), share)
            variance = (rows @ columns).div_(rows.mean(-2, keepdim=True).clamp_(min=eps1))
        else:
            state["variance"].lerp_(grad * grad, share)
            variance = state["variance"].clone()
        update = variance.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        parameter.add_(update, alpha=-rate / max(1.0, _root_mean_square(update) / d))


def _root_mean_square(tensor: Tensor) -> float:
    return float(candelabra.linalg.vector_norm(tensor)) / math.sqrt(tensor.numel()) if tensor.numel() else 0.0


__all__ = ["Adafactor"]
