"""SparseAdam, for gradients that are sparse tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra import Tensor, enable_grad

from .optimizer import Optimizer
from .stepping import check_lr


class SparseAdam(Optimizer):
    """Adam for sparse gradients: only what a gradient has an entry for is changed.

    Gradients here are dense tensors, always: this class takes PyTorch's arguments and checks them
    as it does, and its `step` says, as PyTorch's does of a dense gradient, to take `Adam`.

    Parameters
    ----------
    params
        Tensors, or dicts of groups; see `Optimizer`. Real only.
    lr, betas, eps
        As in `Adam`; lr and eps above 0.
    maximize
        Climb instead of descend.

    Raises
    ------
    ValueError
        When an option is out of range or a parameter is complex.
    RuntimeError
        In `step`, when a parameter has a gradient, as it is dense.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import optim
    >>> weight = candelabra.ones(2)
    >>> weight.grad = candelabra.ones(2)
    >>> optim.SparseAdam([weight]).step()
    Traceback (most recent call last):
    RuntimeError: SparseAdam does not support dense gradients, please consider Adam instead
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_lr(lr)
        if not float(lr) > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for place in (0, 1):
            if not 0.0 <= betas[place] < 1.0:
                raise ValueError(f"Invalid beta parameter at index {place}: {betas[place]}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        places = [
            [number, place]
            for number, group in enumerate(self.param_groups)
            for place, parameter in enumerate(group["params"])
            if parameter.is_complex()
        ]
        if places:
            raise ValueError(f"Complex params at indices {places}: SparseAdam does not support complex parameters")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Return the loss of `closure`; a gradient, being dense, raises RuntimeError."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        if any(parameter.grad is not None for group in self.param_groups for parameter in group["params"]):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        return loss


__all__ = ["SparseAdam"]
