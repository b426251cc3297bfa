"""What is asked of a loader: its length, and a new order for an epoch."""

from __future__ import annotations

from typing import Any


def total_steps(loader: Any, accumulate: int, epochs: int | None, steps: int | None) -> int | None:
    """How many steps there are in all; None where the loader does not know its length."""
    length = length_of(loader)
    if epochs is None or length is None:
        return steps
    of_epochs = epochs * -(-length // accumulate)
    return of_epochs if steps is None else min(steps, of_epochs)


def length_of(loader: Any) -> int | None:
    """How many batches a loader has; None where it does not know."""
    try:
        return len(loader)
    except TypeError:
        return None


def set_epoch(loader: Any, epoch: int) -> None:
    """Tell samplers that draw their order from the number of the epoch."""
    samplers: list[Any] = [
        getattr(loader, "sampler", None),
        getattr(getattr(loader, "batch_sampler", None), "sampler", None),
    ]
    for sampler in samplers:
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(epoch)
            return
