"""Adam."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import candelabra
from candelabra import _C, Tensor

from .fused import FusedOptimizer, check_equal_steps
from .stepping import add_quotient_, as_real, check_adam_options, number


class Adam(FusedOptimizer):
    """Adam: steps scaled by running means of the gradient and of the squared gradient.

    ``g = grad + weight_decay * p``, ``m = beta1 * m + (1 - beta1) * g``, ``v = beta2 * v + (1 -
    beta2) * g^2``, ``p = p - lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)``. `amsgrad`
    uses the largest v so far instead of v. `decoupled_weight_decay` (the algorithm of `AdamW`)
    applies ``p = p * (1 - lr * weight_decay)`` instead of adding the decay to g. Sources: Kingma
    and Ba, 2014; Loshchilov and Hutter, 2017; Reddi, Kale and Kumar, 2018.

    Parameters
    ----------
    params
        Tensors, or dicts of groups; see `Optimizer`.
    lr, betas, eps, weight_decay, amsgrad, decoupled_weight_decay
        Options of the update rule above.
    maximize
        Maximize the objective instead of minimizing it.
    foreach, fused
        ``fused=True`` requires the operator ``_fused_adam_``. ``fused=False`` or ``foreach=False``
        selects ordinary operators.
    capturable
        Not supported; True raises RuntimeError.
    differentiable
        Record the step in the autograd graph. The step then uses ordinary operators.

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
    >>> optim.Adam([weight], lr=0.1).step()
    >>> weight
    tensor([0.9000, 2.1000])
    """

    _operator_name = "_fused_adam_"
    _live_options = ("lr", "betas", "eps", "weight_decay", "initial_lr")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_adam_options(lr, betas, eps, weight_decay)
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        betas = _as_numbers(betas, foreach, capturable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def _states(self, group: dict[str, Any], params: list[Tensor]) -> list[dict[str, Any]]:
        every = self.state
        states = [every[parameter] for parameter in params]
        amsgrad = group["amsgrad"]
        if not amsgrad and all(states):
            return states
        for place, state in enumerate(states):
            if not state:
                parameter = params[place].detach()
                state["step"] = 0
                state["exp_avg"] = candelabra.zeros_like(parameter)
                state["exp_avg_sq"] = candelabra.zeros_like(parameter)
            if amsgrad and "max_exp_avg_sq" not in state:
                state["max_exp_avg_sq"] = candelabra.zeros_like(params[place].detach())
        return states

    def _step_fused(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        amsgrad = group["amsgrad"]
        for step, bucket, bucket_grads, states in self._by_step(params, grads, self._states(group, params)):
            self._operator(
                bucket,
                bucket_grads,
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [state["max_exp_avg_sq"] for state in states] if amsgrad else [],
                *self._options(group, step),
            )
            if _C.is_recording():
                _C.record_live(partial(self._replay, group, states))
            for state in states:
                state["step"] = step

    def _options(self, group: dict[str, Any], step: int) -> tuple[Any, ...]:
        """Return the operator's scalar arguments."""
        beta1, beta2 = group["betas"]
        return (
            float(group["lr"]),
            float(beta1),
            float(beta2),
            group["eps"],
            float(group["weight_decay"]),
            group["decoupled_weight_decay"],
            group["amsgrad"],
            group["maximize"],
            step,
        )

    def _replay(self, group: dict[str, Any], states: list[dict[str, Any]]) -> tuple[Any, ...]:
        """Advance the states as a step does, and return the operator's numbers."""
        check_equal_steps(states)
        step = states[0]["step"] + 1
        for state in states:
            state["step"] = step
        return self._options(group, step)

    def _step_plain(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], owners: list[Tensor]
    ) -> None:
        lr, weight_decay = number(group["lr"], group), float(group["weight_decay"])
        recorded = group["differentiable"]
        beta1, beta2 = (float(beta) for beta in group["betas"])
        for parameter, grad, state in zip(params, grads, self._states(group, owners), strict=True):
            step = state["step"] = state["step"] + 1
            if group["maximize"]:
                grad = -grad
            if weight_decay != 0:
                if group["decoupled_weight_decay"]:
                    parameter.mul_(1 - lr * weight_decay)
                else:
                    grad = grad.add(parameter, alpha=weight_decay)
            mean, square = as_real(state["exp_avg"]), as_real(state["exp_avg_sq"])
            mean.lerp_(grad, 1 - beta1)
            square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            if group["amsgrad"]:
                largest = as_real(state["max_exp_avg_sq"])
                square = largest.copy_(candelabra.maximum(largest.clone() if recorded else largest, square))
            denominator = (square.sqrt() / math.sqrt(1 - beta2**step)).add_(group["eps"])
            add_quotient_(parameter, mean, denominator, -lr / (1 - beta1**step))


def _as_numbers(betas: Any, foreach: bool | None, capturable: bool) -> tuple[float, float]:
    """Return both betas as floats; they may be given as two one-element tensors."""
    tensors = [isinstance(beta, Tensor) for beta in betas]
    if tensors[0] != tensors[1]:
        raise ValueError("betas must be either both floats or both Tensors")
    for place, beta in enumerate(betas):
        if isinstance(beta, Tensor):
            if foreach and not capturable:
                raise ValueError(f"betas[{place}] as a Tensor is not supported for capturable=False and foreach=True")
            if beta.numel() != 1:
                raise ValueError(f"Tensor betas[{place}] must be 1-element")
    return (float(betas[0]), float(betas[1])) if any(tensors) else betas


__all__ = ["Adam"]
