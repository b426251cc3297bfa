"""Stochastic gradient descent."""

from __future__ import annotations

from functools import partial
from typing import Any

import candelabra
from candelabra import _C, Tensor

from .fused import FusedOptimizer
from .stepping import add_scaled_, as_real, check_lr, number


class SGD(FusedOptimizer):
    """Stochastic gradient descent, with momentum and weight decay.

    ``g = grad + weight_decay * p``. With momentum, ``buffer = momentum * buffer + (1 - dampening) *
    g`` (``buffer = g`` in the first step), and g becomes ``buffer``, or ``g + momentum * buffer``
    with `nesterov`. Then ``p = p - lr * g``. Source: Sutskever et al., 2013, in PyTorch's form.

    Parameters
    ----------
    params
        Tensors, or dicts of groups; see `Optimizer`.
    lr
        Learning rate.
    momentum, dampening, weight_decay, nesterov
        Options of the update rule above.
    maximize
        Maximize the objective instead of minimizing it.
    foreach, fused
        ``fused=True`` requires the operator ``_fused_sgd_``. ``fused=False`` or ``foreach=False``
        selects ordinary operators.
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
    >>> weight.grad = candelabra.tensor([0.5, -0.5])
    >>> optim.SGD([weight], lr=0.1).step()
    >>> weight
    tensor([0.9500, 2.0500])
    """

    _operator_name = "_fused_sgd_"
    _live_options = ("lr", "weight_decay", "dampening", "initial_lr")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def _options(self, group: dict[str, Any]) -> tuple[Any, ...]:
        """Return the operator's scalar arguments of a step that is not the first."""
        return (
            float(group["lr"]),
            float(group["weight_decay"]),
            group["momentum"],
            group["dampening"],
            group["nesterov"],
            group["maximize"],
            False,
        )

    def _step_fused(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        options = self._options(group)
        if group["momentum"] == 0:
            self._operator(params, grads, [], *options)
            if _C.is_recording():
                _C.record_live(partial(self._options, group))
            return
        state = self.state
        buffers = [state[parameter].get("momentum_buffer") for parameter in params]
        new = [place for place, buffer in enumerate(buffers) if buffer is None]
        if not new:
            self._operator(params, grads, buffers, *options)
            if _C.is_recording():
                _C.record_live(partial(self._options, group))
            return
        _C.refuse_recording("SGD makes momentum buffers in a first step")
        for place in new:
            buffers[place] = candelabra.empty_like(params[place], requires_grad=False)
        for places, first in ((new, True), ([i for i in range(len(params)) if i not in set(new)], False)):
            if places:
                self._operator(
                    *([every[i] for i in places] for every in (params, grads, buffers)), *options[:-1], first
                )
        for place in new:
            state[params[place]]["momentum_buffer"] = buffers[place]

    def _step_plain(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], owners: list[Tensor]
    ) -> None:
        lr, weight_decay = number(group["lr"], group), float(group["weight_decay"])
        momentum = group["momentum"]
        for parameter, grad, owner in zip(params, grads, owners, strict=True):
            if group["maximize"]:
                grad = -grad
            if weight_decay != 0:
                grad = grad.add(parameter, alpha=weight_decay)
            if momentum != 0:
                state = self.state[owner]
                kept = state.get("momentum_buffer")
                if kept is None:
                    state["momentum_buffer"] = (
                        candelabra.view_as_complex(grad.clone()) if owner.is_complex() else grad.clone()
                    )
                    buffer = grad
                else:
                    buffer = as_real(kept)
                    buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
                grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
            add_scaled_(parameter, grad, -lr)


__all__ = ["SGD"]
