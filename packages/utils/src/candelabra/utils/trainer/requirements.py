"""Requirements of schedules and optimizers on the training loop."""

from __future__ import annotations

import inspect
from typing import Any


def needs_value(scheduler: Any) -> bool:
    """Return whether a schedule's ``step`` has a required argument, the monitored value."""
    parameters = inspect.signature(scheduler.step).parameters.values()
    return any(
        parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        for parameter in parameters
    )


def refuse_closures(optimizer: Any) -> None:
    """Raise TypeError for optimizers that require a closure."""
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is closure.empty:
        raise TypeError(
            f"Trainer: {type(optimizer).__name__} computes the loss several times a step, through a closure; write its loop by hand"
        )
