"""Resilient backpropagation."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor

from .fused import FusedPlainOptimizer
from .plain import directed
from .stepping import check_lr


class Rprop(FusedPlainOptimizer):
    """Rprop: steps that use only the sign of the gradient, with an adaptive size per entry.

    If the sign of the gradient is the same as before, the step size is multiplied by the larger of
    `etas`. If the sign has changed, it is multiplied by the smaller one and no step is taken. The
    update is ``p = p - sign(grad) * size``. Source: Riedmiller and Braun, 1993, in the variant
    without weight backtracking ("iRprop-", Igel and Hüsken, 2000).

    Parameters
    ----------
    params
        Tensors, or dicts of groups; see `Optimizer`.
    lr
        Initial step size.
    etas
        Factors that shrink and grow the step size.
    step_sizes
        Smallest and largest step size.
    capturable
        Not supported; True raises RuntimeError.
    foreach
        ``foreach=False`` selects ordinary operators even if a fused operator exists.
    maximize
        Maximize the objective instead of minimizing it.
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
    >>> weight = candelabra.tensor([1.0, 2.0])
    >>> weight.grad = candelabra.tensor([0.5, -50.0])
    >>> optim.Rprop([weight], lr=0.1).step()
    >>> weight
    tensor([0.9000, 2.1000])
    """

    _operator_name = "_fused_rprop_"
    _kept = ("prev", "step_size")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        lr = float(group["lr"])
        size = complex(lr, lr) if parameter.is_complex() else lr
        return {"step": 0, "prev": candelabra.zeros_like(parameter), "step_size": candelabra.full_like(parameter, size)}

    def _options(self, group: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> tuple[Any, ...]:
        return (*group["etas"], *group["step_sizes"], group["maximize"])

    def _update(self, group: dict[str, Any], parameter: Tensor, grad: Tensor, state: Any) -> None:
        shrink, grow = group["etas"]
        state["step"] += 1
        grad = directed(grad, parameter, group["maximize"], 0)
        before, size = state["prev"], state["step_size"]
        agreement = (grad * before).detach()
        changed_sign = agreement < 0
        factor = candelabra.ones_like(size).masked_fill_(changed_sign, shrink).masked_fill_(agreement > 0, grow)
        size.mul_(factor).clamp_(*group["step_sizes"])
        grad = grad.masked_fill(changed_sign, 0)
        parameter.addcmul_(grad.sign(), size, value=-1)
        before.copy_(grad)


__all__ = ["Rprop"]
