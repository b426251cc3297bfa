"""Checkpoints of a job that any number of ranks can load.

Each rank saves one safetensors file. ``index.json``, written last, says where each part of each
tensor is, and makes the checkpoint complete.
"""

from __future__ import annotations

from . import state_dict
from .absent import (
    HuggingFaceStorageReader,
    HuggingFaceStorageWriter,
    LoadPlan,
    LoadPlanner,
    QuantizedHuggingFaceStorageReader,
    ReadItem,
    SavePlan,
    SavePlanner,
    StorageReader,
    StorageWriter,
    WriteItem,
    load_sharded_optimizer_state_dict,
)
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .deprecated import load_state_dict, save_state_dict
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
    "HuggingFaceStorageReader",
    "HuggingFaceStorageWriter",
    "LoadPlan",
    "LoadPlanner",
    "Metadata",
    "QuantizedHuggingFaceStorageReader",
    "ReadItem",
    "SavePlan",
    "SavePlanner",
    "Sharded",
    "Shards",
    "Stateful",
    "StorageReader",
    "StorageWriter",
    "TensorProperties",
    "TensorStorageMetadata",
    "WriteItem",
    "async_save",
    "load",
    "load_sharded_optimizer_state_dict",
    "load_state_dict",
    "save",
    "save_state_dict",
    "state_dict",
]
