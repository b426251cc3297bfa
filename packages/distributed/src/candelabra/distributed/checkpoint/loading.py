"""Loading: each rank reads what it needs, by itself."""

from __future__ import annotations

import os
from typing import Any

import candelabra
from candelabra import Tensor

from ..groups import is_initialized, member
from ..process_group import ProcessGroup
from . import default_planner
from .contents import Contents
from .errors import CheckpointException
from .filesystem import FileSystemReader, chosen
from .flattening import fill, is_tensor
from .sharded import Sharded, Shards
from .stateful import Stateful


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: FileSystemReader | None = None,
    planner: default_planner.DefaultLoadPlanner | None = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
) -> None:
    """Load a checkpoint into a state, on any number of ranks.

    Tensors get their values in place; of sharded ones, a rank reads its parts only. Other values
    are replaced. Ranks do not wait for one another. Checkpoints of PyTorch are read, too.

    Parameters
    ----------
    state_dict : dict
        What is to be loaded: tensors, values and objects with ``load_state_dict()``, under the
        names under which they were saved.
    checkpoint_id : str or path, optional
        The folder.
    storage_reader : FileSystemReader, optional
        Instead of `checkpoint_id`.
    planner : DefaultLoadPlanner, optional
        With ``allow_partial_load=True``, what the checkpoint lacks keeps its value.
    process_group : ProcessGroup, optional
        Ranks outside of it load nothing.
    no_dist : bool
        For compatibility with PyTorch.

    Raises
    ------
    CheckpointException
        A name is missing, or is of another shape or kind.
    FileNotFoundError
        There is no complete checkpoint.
    candelabra.serialization.FileError
        A file is damaged; the error names it.

    Examples
    --------
    See `save`.
    """
    options = default_planner.checked(planner, default_planner.DefaultLoadPlanner, "load()")
    reader = chosen(storage_reader, checkpoint_id, FileSystemReader, "load()")
    if not no_dist and is_initialized() and member(process_group) is None:
        return
    states = {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()}
    with reader.open() as contents:
        loading = _Loading(contents, options.allow_partial_load)
        with candelabra.no_grad():
            fill(states, loading.visit)
    for key, value in states.items():
        if isinstance(state_dict[key], Stateful):
            state_dict[key].load_state_dict(value)
        elif value is not state_dict[key]:
            state_dict[key] = value


class _Loading:
    """Fills values in from a checkpoint."""

    def __init__(self, contents: Contents, is_partial: bool) -> None:
        self._contents = contents
        self._is_partial = is_partial
        self._objects = set(contents.object_names())

    def visit(self, name: str, value: Any) -> Any:
        """Return what the checkpoint has under a name, for a tensor in its memory."""
        stored = self._contents.tensors.get(name)
        if stored is None and name not in self._objects:
            if self._is_partial:
                return value
            raise CheckpointException(f"Missing key in checkpoint state_dict: {name}.")
        if not is_tensor(value):
            return self._contents.object(name) if stored is None else self._contents.read_whole(name)
        if stored is None:
            raise CheckpointException(f"load(): {name!r} is a tensor, and in the checkpoint it is none")
        shards = value.__sharded__() if isinstance(value, Sharded) else _whole(value)
        if tuple(shards.shape) != tuple(stored.shape):
            raise CheckpointException(
                f"Size mismatch between saved {candelabra.Size(stored.shape)} and current: "
                f"{candelabra.Size(shards.shape)} for {name}"
            )
        for offsets, local in shards.pieces:
            self._contents.read(name, list(offsets), local.detach())
        return value


def _whole(tensor: Tensor) -> Shards:
    return Shards(tensor.shape, [([0] * tensor.dim(), tensor)])
