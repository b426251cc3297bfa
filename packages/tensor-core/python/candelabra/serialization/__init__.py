"""save and load: tensors and plain data in files that never hold code, and the files of PyTorch, safetensors and NumPy."""

from __future__ import annotations

from .allowing import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from .errors import FileError, UnsafeFileError
from .loading import get_unsafe_globals_in_checkpoint, load
from .numpy_files import load_npy, load_npz, save_npy, save_npz
from .options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
)
from .saving import save

__all__ = [
    "FileError",
    "LoadEndianness",
    "UnsafeFileError",
    "add_safe_globals",
    "clear_safe_globals",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "load_npy",
    "load_npz",
    "safe_globals",
    "save",
    "save_npy",
    "save_npz",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
]
