"""State of a Trainer: contents of a checkpoint, and how to restore it."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import candelabra

from .metrics import Mean
from .progress import Progress
from .randomness import random_states
from .ranks import from_all_ranks, from_first_rank, rank_and_count
from .sharded_state import is_sharded, load_sharded, save_sharded

if TYPE_CHECKING:
    from .checkpoints import Checkpoints
    from .trainer import Trainer

FORMAT = "candelabra.trainer"
VERSION = 1


def state_of(trainer: Trainer) -> dict[str, Any]:
    """Return the state of a trainer; see `Trainer.state_dict`.

    Raises
    ------
    NotImplementedError
        The model is sharded.
    """
    if is_sharded(trainer.model):
        raise NotImplementedError(
            "state_dict() holds whole tensors, and the model is sharded: save() and checkpoints= write a folder, to which "
            "each rank adds its parts"
        )
    model = {"model": trainer.model.state_dict(), "optimizer": trainer.optimizer.state_dict()}
    return {**model, **rest_of(trainer)}


def rest_of(trainer: Trainer) -> dict[str, Any]:
    """Return the state of a trainer without that of the model and the optimizer."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "scheduler": None if trainer.scheduler is None else trainer.scheduler.state_dict(),
        "scaler": trainer.precision.state_dict(),
        "progress": dataclasses.asdict(trainer.progress),
        "history": [dict(values) for values in trainer.history],
        "evaluated": dict(trainer._evaluated),
        "running": {name: mean.state_dict() for name, mean in trainer._running.items()},
        "callbacks": {
            name: callback.state_dict()
            for name, callback in named(trainer.callbacks)
            if hasattr(callback, "state_dict")
        },
        "checkpoints": None if trainer.checkpoints is None else trainer.checkpoints.state_dict(),
        "place": _place_of(trainer),
        "random": random_states(),
    }


def _place_of(trainer: Trainer) -> dict[str, Any] | None:
    return trainer._place_state if trainer._place is None else trainer._place.state_dict()


def check_finite(trainer: Trainer) -> None:
    """Raise FloatingPointError if a parameter is not finite."""
    for name, parameter in trainer.model.named_parameters():
        if not candelabra.isfinite(parameter.detach()).all():
            raise FloatingPointError(
                f"after step {trainer.progress.step} parameter {name} is not finite; no checkpoint was written, and those "
                "before are as they were"
            )


def write_checkpoint(trainer: Trainer, checkpoints: Checkpoints, value: float | None) -> Path:
    """Write a checkpoint, which rank 0 does for all ranks if the model is not sharded.

    Parameters
    ----------
    trainer, checkpoints
        Of this rank.
    value : float, optional
        The monitored value.

    Returns
    -------
    Path
        The file, which is in a folder that all ranks share. For a sharded model it is a folder, and
        all ranks write to it.
    """
    step = trainer.progress.step
    if hasattr(trainer.optimizer, "consolidate_state_dict"):
        trainer.optimizer.consolidate_state_dict()
    rank, count = rank_and_count()
    parts_only = is_sharded(trainer.model)
    if count == 1 and not parts_only:
        return checkpoints.save(trainer.state_dict(), step, value)
    of_ranks = of_all_ranks(trainer)
    if rank != 0:
        if parts_only:
            save_sharded(trainer, None, checkpoints.path(step))
        return checkpoints.path(step)
    if parts_only:
        return checkpoints.save_by(
            lambda path: save_sharded(trainer, {**rest_of(trainer), **of_ranks}, path), step, value
        )
    return checkpoints.save({**trainer.state_dict(), **of_ranks}, step, value)


def of_all_ranks(trainer: Trainer) -> dict[str, Any]:
    """Return what differs from rank to rank, of all of them on rank 0. All ranks must call it."""
    return {"ranks": from_all_ranks({"random": random_states(), "place": _place_of(trainer)})}


def save_to(trainer: Trainer, path: Any) -> None:
    """Write the state of a trainer to a file; that of a sharded model to a folder, by all ranks."""
    if not is_sharded(trainer.model):
        candelabra.save(trainer.state_dict(), path)
        return
    of_ranks = of_all_ranks(trainer)
    save_sharded(trainer, {**rest_of(trainer), **of_ranks} if rank_and_count()[0] == 0 else None, path)


def load_from(trainer: Trainer, path: Any) -> None:
    """Restore the state of a trainer from a file, or from a folder."""
    if isinstance(path, str | os.PathLike) and os.path.isdir(path):
        set_rest(trainer, load_sharded(trainer, path))
    else:
        trainer.load_state_dict(candelabra.load(path, map_location=trainer.device))


def newest_checkpoint(checkpoints: Checkpoints) -> Path | None:
    """Return the newest checkpoint that rank 0 sees, and remove unfinished ones."""
    found = None
    if rank_and_count()[0] == 0:
        checkpoints.remove_remnants()
        found = checkpoints.latest()
    return from_first_rank(found)


def set_state(trainer: Trainer, state: dict[str, Any]) -> None:
    """Restore the state of a trainer; see `Trainer.load_state_dict`.

    Raises
    ------
    ValueError
        If the state is not that of a trainer, comes from a later version, or is whole and the model
        is sharded.
    """
    _check_format(state)
    if is_sharded(trainer.model):
        raise ValueError(
            "load_state_dict(): the state has whole tensors, and the model is sharded: load it before the model is sharded, "
            "or by candelabra.distributed.checkpoint.state_dict.set_model_state_dict"
        )
    trainer.model.load_state_dict(state["model"])
    trainer.optimizer.load_state_dict(state["optimizer"])
    set_rest(trainer, state)


def _check_format(state: Any) -> None:
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError("load_state_dict(): this is no state of a Trainer")
    if state["version"] > VERSION:
        raise ValueError(
            f"load_state_dict(): the state is of version {state['version']}, and this Trainer reads up to {VERSION}"
        )


def set_rest(trainer: Trainer, state: dict[str, Any]) -> None:
    """Restore the state of a trainer, but for that of the model and the optimizer."""
    _check_format(state)
    if trainer.scheduler is not None and state["scheduler"] is not None:
        trainer.scheduler.load_state_dict(state["scheduler"])
    trainer.precision.load_state_dict(state["scaler"])
    trainer.progress = Progress(**state["progress"])
    trainer.history = [dict(values) for values in state["history"]]
    trainer._evaluated = dict(state["evaluated"])
    trainer._running = {}
    for name, saved in state["running"].items():
        trainer._running[name] = Mean()
        trainer._running[name].load_state_dict(saved)
    for name, callback in named(trainer.callbacks):
        if name in state["callbacks"] and hasattr(callback, "load_state_dict"):
            callback.load_state_dict(state["callbacks"][name])
    if trainer.checkpoints is not None and state["checkpoints"] is not None:
        trainer.checkpoints.load_state_dict(state["checkpoints"])
    trainer._place_state, trainer._random = _own_part(state)


def _own_part(state: dict[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return this rank's position in the data, and its generators; None for generators that the
    saved run had not.
    """
    rank, count = rank_and_count()
    of_ranks = state.get("ranks") or [{"random": state["random"], "place": state["place"]}]
    random = of_ranks[rank]["random"] if rank < len(of_ranks) else None
    return of_ranks[rank if len(of_ranks) == count else 0]["place"], random


def named(callbacks: list[Any]) -> list[tuple[str, Any]]:
    """Return callbacks with names made of the type and a count.

    The names match states to callbacks even if callbacks of other types were added.
    """
    counts: dict[str, int] = {}
    pairs = []
    for callback in callbacks:
        kind = type(callback).__name__
        counts[kind] = counts.get(kind, 0) + 1
        pairs.append((f"{kind}-{counts[kind]}", callback))
    return pairs
