"""Adamax: the variant of Adam that uses the infinity norm of the gradients."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor

from .fused import FusedPlainOptimizer
from .plain import directed
from .stepping import add_quotient_, check_adam_options, number


class Adamax(FusedPlainOptimizer):
    """Adamax: steps scaled by running mean and decayed maximum of the gradient.

    ``g = grad + weight_decay * p``, ``m = beta1 * m + (1 - beta1) * g``, ``u = max(beta2 * u, |g| +
    eps)``, ``p = p - lr / (1 - beta1^t) * m / u``. Source: Kingma and Ba, 2014, section 7.1.

    Parameters
    ----------
    params
        Tensors, or dicts of groups; see `Optimizer`.
    lr, betas, eps, weight_decay
        Options of the update rule above.
    foreach
        ``foreach=False`` selects ordinary operators even if a fused operator exists.
    maximize
        Maximize the objective instead of minimizing it.
    differentiable
        Record the step in the autograd graph, so that gradients flow through it.
    capturable
        Not supported; True raises RuntimeError.

    Raises
    ------
    ValueError
        If an option is out of range.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import optim
    >>> weight = candelabra.tensor([1.0, 2.0])
    >>> weight.grad = candelabra.tensor([0.5, -50.0])
    >>> optim.Adamax([weight], lr=0.1).step()
    >>> weight
    tensor([0.9000, 2.1000])
    """

    _operator_name = "_fused_adamax_"
    _kept = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_adam_options(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        return {"step": 0, "exp_avg": candelabra.zeros_like(parameter), "exp_inf": candelabra.zeros_like(parameter)}

    def _options(self, group: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> tuple[Any, ...]:
        return (
            float(group["lr"]),
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            group["maximize"],
            after["step"],
        )

    def _update(self, group: dict[str, Any], parameter: Tensor, grad: Tensor, state: Any) -> None:
        beta1, beta2 = group["betas"]
        state["step"] += 1
        grad = directed(grad, parameter, group["maximize"], group["weight_decay"])
        mean, largest = state["exp_avg"], state["exp_inf"]
        mean.lerp_(grad, 1 - beta1)
        if group["differentiable"]:
            largest.copy_(candelabra.maximum(largest * beta2, grad.abs() + group["eps"]))
        else:
            candelabra.maximum(largest.mul_(beta2), grad.abs().add_(group["eps"]), out=largest)
        add_quotient_(parameter, mean, largest, -number(group["lr"], group) / (1 - beta1 ** state["step"]))


__all__ = ["Adamax"]
