"""Adadelta."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor

from .fused import FusedPlainOptimizer
from .plain import directed
from .stepping import add_scaled_, check_lr, number


class Adadelta(FusedPlainOptimizer):
    """Adadelta: step sizes relative to recent steps, so that no learning rate needs tuning.

    ``g = grad + weight_decay * p``, ``v = rho * v + (1 - rho) * g^2``, ``step = sqrt(u + eps) /
    sqrt(v + eps) * g``, ``u = rho * u + (1 - rho) * step^2``, ``p = p - lr * step``. Source:
    Zeiler, 2012.

    Parameters
    ----------
    params
        Tensors, or dicts of groups; see `Optimizer`.
    lr, rho, eps, weight_decay
        Options of the update rule above.
    foreach
        ``foreach=False`` selects ordinary operators even if a fused operator exists.
    maximize
        Maximize the objective instead of minimizing it.
    capturable
        Not supported; True raises RuntimeError.
    differentiable
        Record the step in the autograd graph, so that gradients flow through it.

    Raises
    ------
    ValueError
        If an option is out of range.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import optim
    >>> weight = candelabra.tensor([1.0])
    >>> weight.grad = candelabra.tensor([4.0])
    >>> optim.Adadelta([weight], eps=1.0).step()
    >>> bool(weight < 0)
    True
    """

    _operator_name = "_fused_adadelta_"
    _kept = ("square_avg", "acc_delta")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        return {
            "step": 0,
            "square_avg": candelabra.zeros_like(parameter),
            "acc_delta": candelabra.zeros_like(parameter),
        }

    def _options(self, group: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> tuple[Any, ...]:
        return (float(group["lr"]), group["rho"], group["eps"], group["weight_decay"], group["maximize"])

    def _update(self, group: dict[str, Any], parameter: Tensor, grad: Tensor, state: Any) -> None:
        rho, eps = group["rho"], group["eps"]
        state["step"] += 1
        grad = directed(grad, parameter, group["maximize"], group["weight_decay"])
        squares, steps = state["square_avg"], state["acc_delta"]
        squares.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        if group["differentiable"]:
            step = steps.add(eps).sqrt() / squares.add(eps).sqrt() * grad
        else:
            step = steps.add(eps).div_(squares.add(eps)).sqrt_().mul_(grad)
        steps.mul_(rho).addcmul_(step, step, value=1 - rho)
        add_scaled_(parameter, step, -number(group["lr"], group))


__all__ = ["Adadelta"]
