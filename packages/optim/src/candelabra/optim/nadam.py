"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor

from .fused import FusedPlainOptimizer
from .plain import directed
from .stepping import add_quotient_, check_adam_options, number


class NAdam(FusedPlainOptimizer):
    """NAdam: Adam with Nesterov momentum that increases towards beta1.

    ``mu_t = beta1 * (1 - 0.96^(t * momentum_decay) / 2)``, ``m`` and ``v`` as in `Adam`,
    ``M = (1 - mu_t) * g / (1 - mu_1 ... mu_t) + mu_{t+1} * m / (1 - mu_1 ... mu_{t+1})``,
    ``p = p - lr * M / (sqrt(v / (1 - beta2^t)) + eps)``. `decoupled_weight_decay` applies ``p = p *
    (1 - lr * weight_decay)`` instead of adding the decay to g. Source: Dozat, 2016.

    Parameters
    ----------
    params
        Tensors, or dicts of groups; see `Optimizer`.
    lr, betas, eps, weight_decay, momentum_decay, decoupled_weight_decay
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
    >>> optim.NAdam([weight], lr=0.1).step()
    >>> bool(weight < 1)
    True
    """

    _numbers = ("step", "mu_product")
    _operator_name = "_fused_nadam_"
    _kept = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_adam_options(lr, betas, eps, weight_decay)
        if not momentum_decay >= 0.0:
            raise ValueError(f"Invalid momentum_decay value: {momentum_decay}")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        return {
            "step": 0,
            "mu_product": 1.0,
            "exp_avg": candelabra.zeros_like(parameter),
            "exp_avg_sq": candelabra.zeros_like(parameter),
        }

    def _after(self, group: dict[str, Any], state: Any) -> dict[str, Any]:
        step = state["step"] + 1
        return {"step": step, "mu_product": state["mu_product"] * _momentum(group, step)}

    def _options(self, group: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> tuple[Any, ...]:
        step = after["step"]
        return (
            float(group["lr"]),
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            _momentum(group, step),
            _momentum(group, step + 1),
            after["mu_product"],
            group["decoupled_weight_decay"],
            group["maximize"],
            step,
        )

    def _update(self, group: dict[str, Any], parameter: Tensor, grad: Tensor, state: Any) -> None:
        beta1, beta2 = group["betas"]
        lr, decay = number(group["lr"], group), group["weight_decay"]
        for name, value in self._after(group, state).items():
            state[name] = value
        step, product = state["step"], state["mu_product"]
        decoupled = group["decoupled_weight_decay"]
        if decoupled and decay != 0:
            parameter.mul_(1 - lr * decay)
        grad = directed(grad, parameter, group["maximize"], 0 if decoupled else decay)
        now, ahead = _momentum(group, step), _momentum(group, step + 1)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = square.div(1 - beta2**step)
        root = root.sqrt().add(group["eps"]) if group["differentiable"] else root.sqrt_().add_(group["eps"])
        add_quotient_(parameter, grad, root, -lr * ((1 - now) / (1 - product)))
        add_quotient_(parameter, mean, root, -lr * (ahead / (1 - product * ahead)))


def _momentum(group: dict[str, Any], step: int) -> float:
    """Return the momentum of a step, counted from 1."""
    momentum: float = group["betas"][0] * (1.0 - 0.5 * 0.96 ** (step * group["momentum_decay"]))
    return momentum


__all__ = ["NAdam"]
