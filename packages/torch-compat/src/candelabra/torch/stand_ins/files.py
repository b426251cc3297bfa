"""``torch.serialization``: files of any object, in PyTorch's format."""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import candelabra
import candelabra.serialization as _serialization  # noqa: F401
from candelabra.serialization.pytorch_legacy import MAGIC_NUMBER, PROTOCOL_VERSION
from candelabra.storage import CLASS_NAMES

from ..files.loading import load
from ..files.rebuilding import _get_layout
from ..files.saving import DEFAULT_PROTOCOL, save
from ..files.versions import check_module_version_greater_or_equal
from .archives import PyTorchFileReader, PyTorchFileWriter

__all__ = [
    "DEFAULT_PROTOCOL", "INT_SIZE", "LONG_SIZE", "MAGIC_NUMBER", "PROTOCOL_VERSION", "SHORT_SIZE", "SourceChangeWarning", "StorageType",
    "_get_layout", "_is_zipfile", "_open_file_like", "_open_zipfile_reader", "_open_zipfile_writer", "check_module_version_greater_or_equal", "default_restore_location", "load", "location_tag", "mkdtemp",
    "normalize_storage_type", "register_package", "save", "storage_to_tensor_type", "validate_cuda_device", "validate_hpu_device",
]  # fmt: skip

LONG_SIZE, INT_SIZE, SHORT_SIZE = (struct.Struct(f"={code}").size for code in "lih")


class SourceChangeWarning(Warning):
    """The class of a warning of PyTorch; here the source of a class is not stored."""


class StorageType:
    """The dtype of a class of storages, by the name of the class.

    Examples
    --------
    >>> from candelabra.torch.stand_ins.files import StorageType
    >>> StorageType("FloatStorage").dtype
    candelabra.float32
    """

    def __init__(self, name: str) -> None:
        self.dtype = getattr(candelabra, name).dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


@contextlib.contextmanager
def _open_file_like(name_or_buffer: Any, mode: str) -> Iterator[Any]:
    """Open a path; a file or a buffer is flushed afterwards if it is written."""
    if isinstance(name_or_buffer, str | os.PathLike):
        with open(name_or_buffer, mode) as opened:
            yield opened
        return
    yield name_or_buffer
    if "w" in mode:
        name_or_buffer.flush()


@contextlib.contextmanager
def _open_zipfile_reader(name_or_buffer: Any) -> Iterator[PyTorchFileReader]:
    """Open an archive to read its records."""
    yield PyTorchFileReader(name_or_buffer)


@contextlib.contextmanager
def _open_zipfile_writer(name_or_buffer: Any) -> Iterator[PyTorchFileWriter]:
    """Open an archive to write records; it is complete when the context ends."""
    writer = PyTorchFileWriter(name_or_buffer)
    yield writer
    writer.write_end_of_file()
    if hasattr(name_or_buffer, "flush"):
        name_or_buffer.flush()


@contextlib.contextmanager
def mkdtemp() -> Iterator[str]:
    """Make a folder that exists while the context does."""
    path = tempfile.mkdtemp()
    try:
        yield path
    finally:
        shutil.rmtree(path)


def location_tag(storage: Any) -> str:
    """Return the name of the device of a storage."""
    return str(storage.device)


def default_restore_location(storage: Any, location: str) -> Any:
    """Return a storage on the device of a name; the storage itself if it is there.

    Raises
    ------
    RuntimeError
        If there is no such device.
    """
    return storage.to(device=candelabra.device(location))


def register_package(
    priority: int, tagger: Callable[[Any], str | None], deserializer: Callable[[Any, str], Any]
) -> None:
    """Raise NotImplementedError: the installed backends say where storages can be."""
    raise NotImplementedError(
        "torch.serialization.register_package(): devices are known by their backends here; say where storages go with "
        "torch.load(map_location=function)"
    )


def validate_cuda_device(location: str) -> int:
    """Return the number of the CUDA device of a name.

    Raises
    ------
    RuntimeError
        If it is not available.
    """
    return _validated(location, "cuda")


def validate_hpu_device(location: str) -> int:
    """Raise RuntimeError: no backend drives such a device."""
    return _validated(location, "hpu")


def _validated(location: str, kind: str) -> int:
    module = getattr(candelabra, kind, None)
    if module is None or not module.is_available():
        raise RuntimeError(
            f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}.is_available() is False. If you are running on a "
            "CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
        )
    index = candelabra.device(location).index or 0
    count = module.device_count()
    if index >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on {kind.upper()} device {index} but torch.{kind}.device_count() is {count}. Please use "
            "torch.load with map_location to map your storages to an existing device."
        )
    return index


def normalize_storage_type(storage_type: type) -> Any:
    """Return the class of storages of this name."""
    return getattr(candelabra, "UntypedStorage" if storage_type is candelabra.UntypedStorage else storage_type.__name__)


def storage_to_tensor_type(storage: Any) -> Any:
    """Return the old class of tensors that a typed storage belongs to."""
    return getattr(candelabra, CLASS_NAMES[storage.dtype.name].replace("Storage", "Tensor"))


def _is_zipfile(f: Any) -> bool:
    """Return whether a file begins like a zip archive. Its position is kept."""
    start = f.tell()
    found = bool(f.read(4) == b"PK\x03\x04")
    f.seek(start)
    return found
