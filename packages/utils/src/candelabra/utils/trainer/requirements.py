"""What schedules and optimizers want of the loop."""

from __future__ import annotations

import inspect
from typing import Any


def needs_value(scheduler: Any) -> bool:
    """Whether a schedule's step has an argument without a default, the value that it looks at."""
    parameters = inspect.signature(scheduler.step).parameters.values()
    return any(
        parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        for parameter in parameters
    )


def refuse_closures(optimizer: Any) -> None:
    """Raise a TypeError for optimizers that evaluate the loss themselves."""
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is closure.empty:
        raise TypeError(
            f"Trainer: {type(optimizer).__name__} computes the loss several times a step, through a closure; write its loop by hand"
        )
