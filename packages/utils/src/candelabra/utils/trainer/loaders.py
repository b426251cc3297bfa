"""Helpers for data loaders: length, and the epoch of samplers."""

from __future__ import annotations

from typing import Any


def total_steps(loader: Any, accumulate: int, epochs: int | None, steps: int | None) -> int | None:
    """Return the total number of steps, or None if it is unknown."""
    length = length_of(loader)
    if epochs is None or length is None:
        return steps
    of_epochs = epochs * -(-length // accumulate)
    return of_epochs if steps is None else min(steps, of_epochs)


def length_of(loader: Any) -> int | None:
    """Return the number of batches of a loader, or None if it is unknown."""
    try:
        return len(loader)
    except TypeError:
        return None


def set_epoch(loader: Any, epoch: int) -> None:
    """Set the epoch of samplers whose order depends on it."""
    samplers: list[Any] = [
        getattr(loader, "sampler", None),
        getattr(getattr(loader, "batch_sampler", None), "sampler", None),
    ]
    for sampler in samplers:
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(epoch)
            return
