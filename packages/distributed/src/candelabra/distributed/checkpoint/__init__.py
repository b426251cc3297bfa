"""Checkpoints of a job that any number of ranks can load.

Each rank saves one safetensors file. ``index.json``, written last, says where each part of each
tensor is, and makes the checkpoint complete.
"""

from __future__ import annotations

from . import state_dict
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .errors import CheckpointException
from .filesystem import FileSystemReader, FileSystemWriter
from .loading import load
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)
from .saving import async_save, save
from .sharded import Sharded, Shards
from .stateful import Stateful

__all__ = [
    "BytesStorageMetadata",
    "CheckpointException",
    "ChunkStorageMetadata",
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "FileSystemReader",
    "FileSystemWriter",
    "Metadata",
    "Sharded",
    "Shards",
    "Stateful",
    "TensorProperties",
    "TensorStorageMetadata",
    "async_save",
    "load",
    "save",
    "state_dict",
]
