"""The choice of a checkpoint's format by the files in its folder."""

from __future__ import annotations

from pathlib import Path

from . import index
from .contents import Contents, IndexedContents
from .pytorch_contents import METADATA, PyTorchContents


def open_contents(folder: Path) -> Contents:
    """Open the checkpoint in a folder.

    Raises
    ------
    FileNotFoundError
        There is none, or it was never completed.
    FileError
        It is damaged.
    """
    if (folder / index.NAME).exists():
        return IndexedContents(folder)
    if (folder / METADATA).exists():
        return PyTorchContents(folder)
    if not folder.exists():
        raise FileNotFoundError(f"load(): there is no folder {folder}")
    raise FileNotFoundError(
        f"load(): {folder} holds no complete checkpoint: neither {index.NAME} nor PyTorch's {METADATA} is there"
    )
