"""The representation of a trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .trainer import Trainer


def _name(value: Any) -> str:
    return str(getattr(value, "__name__", type(value).__name__))


def trainer_text(trainer: Trainer) -> str:
    """Return what a trainer is made of, and how far it is, without the addresses of objects."""
    parts = [_name(trainer.model), _name(trainer.optimizer)]
    if trainer.loss is not None:
        parts.append(f"loss={_name(trainer.loss)}")
    else:
        parts.append(f"step={_name(trainer.step_function)}")
    if trainer.scheduler is not None:
        parts.append(f"scheduler={_name(trainer.scheduler)}")
    parts.append(f"device={str(trainer.device)!r}")
    if trainer.precision.dtype is not None:
        parts.append(f"precision={str(trainer.precision.dtype).rpartition('.')[2]!r}")
    if trainer.accumulate != 1:
        parts.append(f"accumulate={trainer.accumulate}")
    if trainer.callbacks:
        parts.append(f"callbacks=[{', '.join(map(_name, trainer.callbacks))}]")
    progress = trainer.progress
    return f"Trainer({', '.join(parts)}; epoch {progress.epoch}, step {progress.step})"
