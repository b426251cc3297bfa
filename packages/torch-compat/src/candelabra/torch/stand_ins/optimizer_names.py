"""``torch.optim.optimizer``: what libraries of optimizers import from it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import candelabra

__all__ = ["ParamsT", "_use_grad_for_differentiable"]

#: What an optimizer takes as parameters: tensors, groups, or tensors with names.
ParamsT: TypeAlias = Iterable[candelabra.Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, candelabra.Tensor]]


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a step that records a gradient only if the optimizer is differentiable."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with candelabra.set_grad_enabled(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return step
