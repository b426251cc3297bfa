"""Checkpoints of models of whose parameters each rank has a part: a folder, in which each rank
writes a file.
"""

from __future__ import annotations

import importlib
import io
import os
from typing import TYPE_CHECKING, Any

import candelabra

from .ranks import from_first_rank

if TYPE_CHECKING:
    from .trainer import Trainer


def is_sharded(model: Any) -> bool:
    """Return whether a rank has a part only of some tensor of a model."""
    return any(hasattr(value, "__sharded__") for value in model.state_dict().values())


def _functions() -> tuple[Any, Any]:
    """Return the modules of candelabra-distributed that save and load, and that name states."""
    name = "candelabra.distributed.checkpoint"
    return importlib.import_module(name), importlib.import_module(f"{name}.state_dict")


def save_sharded(trainer: Trainer, rest: dict[str, Any] | None, path: str | os.PathLike[str]) -> None:
    """Save the model and the optimizer in parts. All ranks must call it.

    Parameters
    ----------
    trainer : Trainer
        Of this rank.
    rest : dict or None
        The other state, on rank 0.
    path : str or path
        The folder. An earlier checkpoint in it stays until this one is complete.
    """
    checkpoint, states = _functions()
    stream = io.BytesIO()
    if rest is not None:
        candelabra.save(rest, stream)
    rest_bytes = from_first_rank(stream.getvalue())
    model, optimizer = states.get_state_dict(trainer.model, trainer.optimizer)
    whole = {
        "model": model,
        "optimizer": optimizer,
        "trainer": candelabra.frombuffer(bytearray(rest_bytes), dtype=candelabra.uint8),
    }
    checkpoint.save(whole, checkpoint_id=path)


def load_sharded(trainer: Trainer, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Load the model and the optimizer, of which this rank reads its parts; return the other state.

    Parameters
    ----------
    trainer : Trainer
        Of any number of ranks, with a model that is sharded in any way, or not at all.
    path : str or path
        The folder.

    Raises
    ------
    ValueError
        It is no checkpoint of a trainer.
    """
    checkpoint, states = _functions()
    saved = checkpoint.FileSystemReader(path).read_metadata().state_dict_metadata.get("trainer")
    if saved is None:
        raise ValueError(f"load(): {path} is no checkpoint of a Trainer")
    model, optimizer = states.get_state_dict(trainer.model, trainer.optimizer)
    rest = candelabra.empty(saved.size, dtype=candelabra.uint8)
    whole = {"model": model, "optimizer": optimizer, "trainer": rest}
    checkpoint.load(whole, checkpoint_id=path)
    states.set_state_dict(
        trainer.model, trainer.optimizer, model_state_dict=whole["model"], optim_state_dict=whole["optimizer"]
    )
    state: dict[str, Any] = candelabra.load(io.BytesIO(bytes(rest.tolist())))
    return state
