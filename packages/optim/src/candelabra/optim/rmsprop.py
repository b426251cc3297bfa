"""RMSprop."""

from __future__ import annotations

from functools import partial
from typing import Any

import candelabra
from candelabra import _C, Tensor

from .fused import FusedOptimizer
from .stepping import add_quotient_, add_scaled_, as_real, check_lr, number


class RMSprop(FusedOptimizer):
    """RMSprop: gradients divided by the root of a running mean of their squares.

    ``g = grad + weight_decay * p``, ``v = alpha * v + (1 - alpha) * g^2``. `centered` subtracts the
    squared running mean of g from v. Then ``u = g / (sqrt(v) + eps)`` and ``p = p - lr * u``. With
    momentum, ``buffer = momentum * buffer + u`` replaces u. Sources: Hinton, lecture 6e, 2012;
    centered: Graves, 2013.

    Parameters
    ----------
    params
        Tensors, or dicts of groups; see `Optimizer`.
    lr, alpha, eps, weight_decay, momentum, centered
        Options of the update rule above.
    maximize
        Maximize the objective instead of minimizing it.
    foreach
        ``foreach=False`` selects ordinary operators even if a fused operator exists.
    capturable
        Not supported; True raises RuntimeError.
    differentiable
        Record the step in the autograd graph. The step then uses ordinary operators.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import optim
    >>> weight = candelabra.tensor([2.0])
    >>> weight.grad = candelabra.tensor([4.0])
    >>> optim.RMSprop([weight], lr=0.1).step()
    >>> weight
    tensor([1.])
    """

    _operator_name = "_fused_rmsprop_"
    _live_options = ("lr", "weight_decay", "eps", "initial_lr")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        if not momentum >= 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if not alpha >= 0.0:
            raise ValueError(f"Invalid alpha value: {alpha}")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _states(self, group: dict[str, Any], params: list[Tensor]) -> list[dict[str, Any]]:
        every = self.state
        states = [every[parameter] for parameter in params]
        if all(states):
            return states
        for place, state in enumerate(states):
            if not state:
                parameter = params[place].detach()
                state["step"] = 0
                state["square_avg"] = candelabra.zeros_like(parameter)
                if group["momentum"] > 0:
                    state["momentum_buffer"] = candelabra.zeros_like(parameter)
                if group["centered"]:
                    state["grad_avg"] = candelabra.zeros_like(parameter)
        return states

    def _step_fused(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        states = self._states(group, params)
        self._operator(
            params,
            grads,
            [state["square_avg"] for state in states],
            [state["grad_avg"] for state in states] if group["centered"] else [],
            [state["momentum_buffer"] for state in states] if group["momentum"] > 0 else [],
            *self._options(group),
        )
        if _C.is_recording():
            _C.record_live(partial(self._replay, group, states))
        for state in states:
            state["step"] += 1

    def _options(self, group: dict[str, Any]) -> tuple[Any, ...]:
        """Return the operator's scalar arguments."""
        return (
            float(group["lr"]),
            group["alpha"],
            group["eps"],
            group["weight_decay"],
            group["momentum"],
            group["centered"],
            group["maximize"],
        )

    def _replay(self, group: dict[str, Any], states: list[dict[str, Any]]) -> tuple[Any, ...]:
        """Advance the states as a step does, and return the operator's numbers."""
        for state in states:
            state["step"] += 1
        return self._options(group)

    def _step_plain(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], owners: list[Tensor]
    ) -> None:
        lr, alpha, momentum = number(group["lr"], group), group["alpha"], group["momentum"]
        for parameter, grad, state in zip(params, grads, self._states(group, owners), strict=True):
            state["step"] += 1
            if group["maximize"]:
                grad = -grad
            if group["weight_decay"] != 0:
                grad = grad.add(parameter, alpha=group["weight_decay"])
            square = as_real(state["square_avg"])
            square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
            if group["centered"]:
                mean = as_real(state["grad_avg"])
                mean.lerp_(grad, 1 - alpha)
                root = square.addcmul(mean, mean, value=-1).sqrt()
            else:
                root = square.sqrt()
            root = root.add(group["eps"]) if group["differentiable"] else root.add_(group["eps"])
            if momentum > 0:
                buffer = as_real(state["momentum_buffer"])
                buffer.mul_(momentum).addcdiv_(grad, root)
                add_scaled_(parameter, buffer, -lr)
            else:
                add_quotient_(parameter, grad, root, -lr)


__all__ = ["RMSprop"]
