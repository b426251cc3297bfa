"""Functions by the names that PyTorch had before `save` and `load`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from candelabra import _C

from ..process_group import ProcessGroup
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .loading import load
from .metadata import Metadata
from .saving import save


def save_state_dict(
    state_dict: Mapping[str, Any],
    storage_writer: FileSystemWriter,
    process_group: ProcessGroup | None = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: DefaultSavePlanner | None = None,
) -> Metadata:
    """Do what `save` does.

    Deprecated as in PyTorch. `coordinator_rank` has no effect: rank 0 completes a checkpoint.
    """
    _C.warn(
        "'save_state_dict' is deprecated and will be removed in future versions. Please use 'save' instead.",
        FutureWarning,
    )
    return save(
        state_dict, storage_writer=storage_writer, planner=planner, process_group=process_group, no_dist=no_dist
    )


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: FileSystemReader,
    process_group: ProcessGroup | None = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: DefaultLoadPlanner | None = None,
) -> None:
    """Do what `load` does.

    Deprecated as in PyTorch. `coordinator_rank` has no effect: each rank reads by itself.
    """
    _C.warn(
        "'load_state_dict' is deprecated and will be removed in future versions. Please use 'load' instead.",
        FutureWarning,
    )
    load(state_dict, storage_reader=storage_reader, planner=planner, process_group=process_group, no_dist=no_dist)
