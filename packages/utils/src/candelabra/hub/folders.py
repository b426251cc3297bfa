"""The folder for files of hubs."""

from __future__ import annotations

import os
from typing import Any

ENV_TORCH_HOME = "TORCH_HOME"
ENV_XDG_CACHE_HOME = "XDG_CACHE_HOME"
DEFAULT_CACHE_DIR = "~/.cache"

_directory: str | None = None


def torch_home() -> str:
    """Return the folder for files of PyTorch: ``$TORCH_HOME``, or ``~/.cache/torch``."""
    cache = os.environ.get(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR)
    return os.path.expanduser(os.environ.get(ENV_TORCH_HOME, os.path.join(cache, "torch")))


def get_dir() -> str:
    """Return the folder for files of hubs: what `set_dir` said, else ``$TORCH_HOME/hub``, else
    ``~/.cache/torch/hub``.
    """
    return os.path.join(torch_home(), "hub") if _directory is None else _directory


def set_dir(d: Any) -> None:
    """Say which folder `get_dir` returns."""
    global _directory
    _directory = None if d is None else os.path.expanduser(os.fspath(d))
