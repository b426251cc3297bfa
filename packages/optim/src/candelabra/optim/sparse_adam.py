"""SparseAdam, Adam for sparse gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra import Tensor, enable_grad

from .optimizer import Optimizer
from .stepping import check_lr


class SparseAdam(Optimizer):
    """Adam for sparse gradients, which Candelabra does not have.

    All gradients here are dense tensors. The class checks its arguments as PyTorch does. Its `step`
    raises PyTorch's error for dense gradients, which recommends `Adam`.

    Parameters
    ----------
    params
        Tensors, or dicts of groups; see `Optimizer`. Complex parameters are not supported.
    lr, betas, eps
        As in `Adam`. `lr` and `eps` must be positive.
    maximize
        Maximize the objective instead of minimizing it.

    Raises
    ------
    ValueError
        If an option is out of range or a parameter is complex.
    RuntimeError
        If a parameter has a gradient, which is always dense; raised in `step`.

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
        """Return the loss of `closure`; raise RuntimeError if any parameter has a gradient."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        if any(parameter.grad is not None for group in self.param_groups for parameter in group["params"]):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        return loss


__all__ = ["SparseAdam"]
