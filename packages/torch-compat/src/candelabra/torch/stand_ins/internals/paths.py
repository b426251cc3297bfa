"""``torch._utils_internal``: paths of the package's files."""

from __future__ import annotations

import os
import tempfile

import candelabra

__all__ = ["get_file_path", "get_file_path_2", "get_writable_path", "resolve_library_path"]


def get_file_path(*path_components: str) -> str:
    """Return a path beside the package's folder."""
    return os.path.join(os.path.dirname(os.path.dirname(candelabra.__file__)), *path_components)


def get_file_path_2(*path_components: str) -> str:
    """Return the path that the components make."""
    return os.path.join(*path_components)


def get_writable_path(path: str) -> str:
    """Return a path if it can be written, else a new folder."""
    return path if os.access(path, os.W_OK) else tempfile.mkdtemp(suffix=os.path.basename(path))


def resolve_library_path(path: str) -> str:
    """Return the path of a library, without links."""
    return os.path.realpath(path)
