"""Optimizers that step each parameter when the backward pass has its gradient."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from candelabra import Tensor, nn
from candelabra.optim import Optimizer

__all__: list[str] = []


def _step(parameter: Tensor) -> None:
    for optimizer in parameter._in_backward_optimizers:
        optimizer.step()
    parameter.grad = None


def _apply_optimizer_in_backward(
    optimizer_class: type[Optimizer],
    params: Iterable[Tensor],
    optimizer_kwargs: dict[str, Any],
    register_hook: bool = True,
) -> None:
    """Step each parameter in the backward pass, when its gradient is there; then forget the
    gradient.

    Parameters
    ----------
    optimizer_class : type
        The optimizer.
    params : iterable of Tensor
        Each gets an optimizer of its own.
    optimizer_kwargs : dict
        The optimizer's options.
    register_hook : bool
        False for parameters that something else steps.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributed.optim import _apply_optimizer_in_backward
    >>> weight = candelabra.ones(2, requires_grad=True)
    >>> _apply_optimizer_in_backward(candelabra.optim.SGD, [weight], {"lr": 0.5})
    >>> weight.sum().backward()
    >>> weight.tolist(), weight.grad
    ([0.5, 0.5], None)
    """
    for parameter in params:
        if not hasattr(parameter, "_in_backward_optimizers"):
            parameter._in_backward_optimizers = []
            parameter._optimizer_classes = []
            parameter._optimizer_kwargs = []
        parameter._in_backward_optimizers.append(optimizer_class([parameter], **optimizer_kwargs))
        parameter._optimizer_classes.append(optimizer_class)
        parameter._optimizer_kwargs.append(optimizer_kwargs)
        if register_hook and not hasattr(parameter, "_in_backward_hook"):
            # `DistributedDataParallel` removes it, since it reduces the gradient first.
            parameter._in_backward_hook = parameter.register_post_accumulate_grad_hook(_step)


def _get_in_backward_optimizers(module: nn.Module) -> list[Optimizer]:
    """Return the optimizers of a module's parameters that step in backward passes."""
    return [each for parameter in module.parameters() for each in getattr(parameter, "_in_backward_optimizers", ())]
