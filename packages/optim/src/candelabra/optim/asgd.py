"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor

from .fused import FusedPlainOptimizer
from .plain import directed
from .stepping import check_lr


class ASGD(FusedPlainOptimizer):
    """Averaged SGD: gradient descent with a decaying rate and an average of the parameters.

    The average is the state ``ax``.

    ``g = grad + weight_decay * p``, ``p = p * (1 - lambd * eta) - eta * g``, ``ax = ax + mu * (p -
    ax)``; then ``eta = lr / (1 + lambd * lr * t)^alpha`` and ``mu = 1 / max(1, t - t0)``. Source:
    Polyak and Juditsky, 1992.

    Parameters
    ----------
    params
        Tensors, or dicts of groups; see `Optimizer`.
    lr, lambd, alpha, t0, weight_decay
        Options of the update rule above. Averaging starts at step `t0`.
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
    >>> weight = candelabra.tensor([1.0])
    >>> weight.grad = candelabra.tensor([4.0])
    >>> optim.ASGD([weight], lr=0.1, lambd=0.0).step()
    >>> weight
    tensor([0.6000])
    """

    _numbers = ("step", "eta", "mu")
    _operator_name = "_fused_asgd_"
    _kept = ("ax",)

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        return {"step": 0, "eta": float(group["lr"]), "mu": 1.0, "ax": candelabra.zeros_like(parameter)}

    def _after(self, group: dict[str, Any], state: Any) -> dict[str, Any]:
        lr, step = float(group["lr"]), state["step"] + 1
        return {
            "step": step,
            "eta": lr / (1 + group["lambd"] * lr * step) ** group["alpha"],
            "mu": 1 / max(1, step - group["t0"]),
        }

    def _options(self, group: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> tuple[Any, ...]:
        return (group["lambd"], before["eta"], before["mu"], group["weight_decay"], group["maximize"])

    def _update(self, group: dict[str, Any], parameter: Tensor, grad: Tensor, state: Any) -> None:
        grad = directed(grad, parameter, group["maximize"], group["weight_decay"])
        eta, mu, mean = state["eta"], state["mu"], state["ax"]
        parameter.mul_(1 - group["lambd"] * eta).add_(grad, alpha=-eta)
        if mu == 1:
            mean.copy_(parameter)
        else:
            mean.lerp_(parameter, mu)
        for name, value in self._after(group, state).items():
            state[name] = value


__all__ = ["ASGD"]
