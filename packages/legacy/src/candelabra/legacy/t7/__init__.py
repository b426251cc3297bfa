"""Torch 7's files: tensors, storages, tables and modules, in binary or as text."""

from __future__ import annotations

from .loading import load_lua
from .nodes import T7ReaderException, Torch7Object
from .writing import save_lua

__all__ = ["T7ReaderException", "Torch7Object", "load_lua", "save_lua"]
