"""Adagrad."""

from __future__ import annotations

from functools import partial
from typing import Any

import candelabra
from candelabra import _C, Tensor

from .fused import FusedOptimizer, check_equal_steps
from .stepping import add_quotient_, as_real, check_lr, number


class Adagrad(FusedOptimizer):
    """Adagrad: gradients divided by the root of the sum of all squared gradients.

    ``g = grad + weight_decay * p``, ``sum = sum + g^2``, ``p = p - lr / (1 + (t - 1) * lr_decay) *
    g / (sqrt(sum) + eps)``. Source: Duchi, Hazan and Singer, 2011.

    Parameters
    ----------
    params
        Tensors, or dicts of groups; see `Optimizer`.
    lr, lr_decay, weight_decay, eps
        Options of the update rule above.
    initial_accumulator_value
        Initial value of the sums of squares.
    maximize
        Maximize the objective instead of minimizing it.
    foreach, fused
        ``fused=True`` requires the operator ``_fused_adagrad_``. ``fused=False`` or
        ``foreach=False`` selects ordinary operators.
    differentiable
        Record the step in the autograd graph. The step then uses ordinary operators.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import optim
    >>> weight = candelabra.tensor([1.0])
    >>> weight.grad = candelabra.tensor([4.0])
    >>> optim.Adagrad([weight], lr=0.1).step()
    >>> weight
    tensor([0.9000])
    """

    _operator_name = "_fused_adagrad_"
    _live_options = ("lr", "weight_decay", "eps", "initial_lr")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        if not lr_decay >= 0.0:
            raise ValueError(f"Invalid lr_decay value: {lr_decay}")
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if not initial_accumulator_value >= 0.0:
            raise ValueError(f"Invalid initial_accumulator_value value: {initial_accumulator_value}")
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            self._states(group, group["params"])

    def _states(self, group: dict[str, Any], params: list[Tensor]) -> list[dict[str, Any]]:
        every = self.state
        states = [every[parameter] for parameter in params]
        if all(states):
            return states
        for place, state in enumerate(states):
            if not state:
                parameter = params[place].detach()
                start = group["initial_accumulator_value"]
                state["step"] = 0
                state["sum"] = candelabra.full_like(
                    parameter, complex(start, start) if parameter.is_complex() else start
                )
        return states

    def _step_fused(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        for step, bucket, bucket_grads, states in self._by_step(params, grads, self._states(group, params)):
            self._operator(
                bucket,
                bucket_grads,
                [state["sum"] for state in states],
                *self._options(group, step),
            )
            if _C.is_recording():
                _C.record_live(partial(self._replay, group, states))
            for state in states:
                state["step"] = step

    def _options(self, group: dict[str, Any], step: int) -> tuple[Any, ...]:
        """Return the operator's scalar arguments."""
        return (
            float(group["lr"]),
            group["lr_decay"],
            group["weight_decay"],
            group["eps"],
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
        for parameter, grad, state in zip(params, grads, self._states(group, owners), strict=True):
            step = state["step"] = state["step"] + 1
            if group["maximize"]:
                grad = -grad
            if group["weight_decay"] != 0:
                grad = grad.add(parameter, alpha=group["weight_decay"])
            lr = number(group["lr"], group) / (1 + (step - 1) * group["lr_decay"])
            total = as_real(state["sum"])
            total.addcmul_(grad, grad, value=1)
            root = total.sqrt()
            root = root.add(group["eps"]) if group["differentiable"] else root.add_(group["eps"])
            add_quotient_(parameter, grad, root, -lr)


__all__ = ["Adagrad"]
