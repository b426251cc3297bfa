"""save and load: tensors and plain data in files that never hold code, and the formats of PyTorch,
safetensors and NumPy.
"""

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
    skip_data,
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
    "skip_data",
]

#: Names of PyTorch's module that are not supported, with the reason.
_ABSENT = {
    "register_package": "where storages go is said by load(map_location=...), and by the backends that are installed",
    "location_tag": "str(storage.device) is the name of where a storage is",
    "default_restore_location": "where storages go is said by load(map_location=...)",
    "validate_cuda_device": "candelabra.device checks the name of a device",
    "SourceChangeWarning": "no classes are stored, and so no source",
    "StorageType": "storages have no dtype",
    "normalize_storage_type": "storages have no dtype",
    "storage_to_tensor_type": "storages have no dtype",
}


def __getattr__(name: str) -> object:
    why = f": {_ABSENT[name]}" if name in _ABSENT else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{why}")
