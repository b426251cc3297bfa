"""What all optimizers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra
from candelabra import Tensor

#: Returns the value of the function and its gradient at a point.
Opfunc = Callable[[Tensor], tuple[Any, Tensor]]
Table = dict[str, Any]


def tables(config: Table | None, state: Table | None) -> tuple[Table, Table]:
    """Return the settings, and the dict that keeps what the next call needs."""
    config = {} if config is None else config
    return config, config if state is None else state


def evaluate(opfunc: Opfunc, x: Tensor) -> tuple[Any, Tensor]:
    """Return the value of the function and its gradient. The function may use the tape itself."""
    with candelabra.enable_grad():
        value, gradient = opfunc(x)
    return value, gradient.detach()


def decayed(gradient: Tensor, x: Tensor, config: Table) -> Tensor:
    """Return the gradient of the function with weight decay."""
    decay = config.get("weightDecay", 0)
    return gradient + decay * x if decay != 0 else gradient


def annealed(rate: float, config: Table, state: Table) -> float:
    """Return the learning rate of this call, and count it."""
    count = state.get("evalCounter", 0)
    state["evalCounter"] = count + 1
    return rate / (1 + count * config.get("learningRateDecay", 0))
