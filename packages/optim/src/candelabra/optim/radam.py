"""RAdam: Adam with rectified steps."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Tensor

from .fused import FusedPlainOptimizer
from .plain import directed
from .stepping import add_quotient_, add_scaled_, check_adam_options, number


class RAdam(FusedPlainOptimizer):
    """RAdam: Adam that falls back to momentum while the variance estimate is unreliable.

    ``m`` and ``v`` as in `Adam`; ``rho_inf = 2 / (1 - beta2) - 1``, ``rho = rho_inf - 2 * t *
    beta2^t / (1 - beta2^t)``. If ``rho > 5``, the step of Adam is multiplied by ``sqrt((rho - 4)
    (rho - 2) rho_inf / ((rho_inf - 4) (rho_inf - 2) rho))``, with eps added to ``sqrt(v)``;
    otherwise ``p = p - lr * m / (1 - beta1^t)``. `decoupled_weight_decay` applies ``p = p * (1 - lr
    * weight_decay)`` instead of adding the decay to the gradient. Source: Liu et al., 2019.

    Parameters
    ----------
    params
        Tensors, or dicts of groups; see `Optimizer`.
    lr, betas, eps, weight_decay, decoupled_weight_decay
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
    >>> optim.RAdam([weight], lr=0.1).step()
    >>> weight
    tensor([0.6000])
    """

    _operator_name = "_fused_radam_"
    _kept = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_adam_options(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        return {"step": 0, "exp_avg": candelabra.zeros_like(parameter), "exp_avg_sq": candelabra.zeros_like(parameter)}

    def _options(self, group: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> tuple[Any, ...]:
        return (
            float(group["lr"]),
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            group["decoupled_weight_decay"],
            group["maximize"],
            after["step"],
        )

    def _update(self, group: dict[str, Any], parameter: Tensor, grad: Tensor, state: Any) -> None:
        beta1, beta2 = group["betas"]
        lr, decay = number(group["lr"], group), group["weight_decay"]
        step = state["step"] = state["step"] + 1
        decoupled = group["decoupled_weight_decay"]
        if decoupled and decay != 0:
            parameter.mul_(1 - lr * decay)
        grad = directed(grad, parameter, group["maximize"], 0 if decoupled else decay)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        missing = 1 - beta2**step  # bias correction of v
        rho_inf = 2 / (1 - beta2) - 1
        rho = rho_inf - 2 * step * beta2**step / missing
        rate = -lr / (1 - beta1**step)
        if rho <= 5:
            add_scaled_(parameter, mean, rate)
            return
        rectified = math.sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))
        root = square.sqrt()
        root = root.add(group["eps"]) if group["differentiable"] else root.add_(group["eps"])
        add_quotient_(parameter, mean, root, rate * (rectified * math.sqrt(missing)))


__all__ = ["RAdam"]
