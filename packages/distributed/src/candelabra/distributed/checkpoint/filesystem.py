"""Folders to which checkpoints are saved, and from which they are loaded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from . import index
from .contents import Contents
from .metadata import Metadata
from .opening import open_contents


class FileSystemWriter:
    """Saves checkpoints to a folder.

    Parameters
    ----------
    path : str or path
        The folder, on a file system that all ranks share.
    single_file_per_rank : bool
        For compatibility with PyTorch: each rank writes one file.
    sync_files : bool
        Whether the files are on the disk before the checkpoint counts as complete. Without, it
        outlives the end of the processes, but not that of the machine.
    thread_count, per_thread_copy_ahead : int
        Have no effect.
    cache_staged_state_dict : bool
        Has no effect.
    overwrite : bool
        Whether an earlier checkpoint in the folder may be replaced.
    serialization_format
        Has no effect: files are in the format safetensors.

    Examples
    --------
    >>> import candelabra, tempfile
    >>> import candelabra.distributed.checkpoint as dcp
    >>> folder = tempfile.mkdtemp()
    >>> _ = dcp.save({"step": 3}, storage_writer=dcp.FileSystemWriter(folder, sync_files=False))
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        serialization_format: Any = None,
    ) -> None:
        self.path = Path(path)
        self.sync_files = sync_files
        self.overwrite = overwrite

    @property
    def checkpoint_id(self) -> str | os.PathLike[str]:
        """The folder."""
        return self.path

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Set another folder."""
        if checkpoint_id is not None:
            self.path = Path(checkpoint_id)

    def has_checkpoint(self) -> bool:
        """Return whether the folder holds a complete checkpoint."""
        return (self.path / index.NAME).exists()


class FileSystemReader:
    """Loads checkpoints from a folder: those of this package, and PyTorch's.

    Parameters
    ----------
    path : str or path
        The folder.

    Examples
    --------
    >>> import candelabra, tempfile
    >>> import candelabra.distributed.checkpoint as dcp
    >>> folder = tempfile.mkdtemp()
    >>> _ = dcp.save({"weight": candelabra.ones(2, 3)}, checkpoint_id=folder)
    >>> dcp.FileSystemReader(folder).read_metadata().state_dict_metadata["weight"].size
    candelabra.Size([2, 3])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def checkpoint_id(self) -> str | os.PathLike[str]:
        """The folder."""
        return self.path

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Set another folder."""
        if checkpoint_id is not None:
            self.path = Path(checkpoint_id)

    def open(self) -> Contents:
        """Open the checkpoint in the folder."""
        return open_contents(self.path)

    def read_metadata(self) -> Metadata:
        """Return what the checkpoint holds."""

        def read() -> dict[str, Any]:
            with self.open() as contents:
                return contents.entries()

        return Metadata(read)


def chosen(given: Any, checkpoint_id: Any, kind: type[FileSystemReader | FileSystemWriter], function: str) -> Any:
    """Return the reader or writer of a call."""
    if given is None:
        if checkpoint_id is None:
            raise ValueError(f"{function}: pass checkpoint_id, or a storage reader or writer")
        return kind(checkpoint_id)
    if not isinstance(given, kind):
        raise TypeError(f"{function}: expected a {kind.__name__}, but got {type(given).__name__}")
    given.reset(checkpoint_id)
    return given
