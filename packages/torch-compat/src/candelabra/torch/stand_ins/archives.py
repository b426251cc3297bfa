"""``torch._C.PyTorchFileReader`` and ``PyTorchFileWriter``: records of PyTorch's archives."""

from __future__ import annotations

import ctypes
import os
import zipfile
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import candelabra.serialization as _serialization  # noqa: F401
from candelabra import _C, Tensor, UntypedStorage
from candelabra.serialization.errors import FileError
from candelabra.serialization.sources import opened
from candelabra.serialization.zip_files import Archive, ArchiveWriter

__all__ = ["PyTorchFileReader", "PyTorchFileWriter"]

_SERIALIZATION_ID = ".data/serialization_id"


class PyTorchFileReader:
    """Reads the records of an archive.

    Parameters
    ----------
    file
        A path, or a file that can be read and sought.

    Raises
    ------
    RuntimeError
        If it cannot be opened, or is no archive with one folder.
    """

    def __init__(self, file: Any) -> None:
        self._open = ExitStack()
        try:
            source = self._open.enter_context(opened(file, "PyTorchFileReader"))
            self._archive = Archive(source)
        except OSError as error:
            raise RuntimeError(
                f"open file failed because of errno {error.errno} on fopen: {error.strerror}, file path: {file}"
            ) from error
        except (FileError, zipfile.BadZipFile) as error:
            raise RuntimeError(f"PytorchStreamReader failed reading zip archive: {error}") from error
        folders = {name.partition("/")[0] for name in self._archive.entries}
        if len(folders) != 1:
            raise RuntimeError("PytorchStreamReader failed reading zip archive: it has not exactly one folder")
        self._prefix = f"{folders.pop()}/"

    def _entry(self, name: str) -> Any:
        found = self._archive.entries.get(self._prefix + name)
        if found is None:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        return found

    def get_all_records(self) -> list[str]:
        """Return the names of the records."""
        return [name[len(self._prefix) :] for name in self._archive.entries]

    def has_record(self, name: str) -> bool:
        """Return whether there is a record of a name."""
        return self._prefix + name in self._archive.entries

    def get_record(self, name: str) -> bytes:
        """Return the bytes of a record."""
        entry = self._entry(name)
        data = bytearray(entry.size)
        self._archive.fill(entry, memoryview(data))
        return bytes(data)

    def get_record_size(self, name: str) -> int:
        """Return the number of bytes of a record."""
        return self._entry(name).size  # type: ignore[no-any-return]

    def get_record_offset(self, name: str) -> int:
        """Return where the bytes of a record begin in the file."""
        return self._entry(name).offset  # type: ignore[no-any-return]

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Tensor:
        """Return an empty tensor whose storage has the bytes of a record: elements of a dtype, or
        bytes for ``UntypedStorage``.
        """
        is_typed = isinstance(dtype, _C.dtype)
        size, wanted = self._entry(name).size, numel * (dtype.itemsize if is_typed else 1)
        if size != wanted:
            raise RuntimeError(
                f"record size ({size} bytes) does not match expected size ({wanted} bytes = {numel} elements) for dtype {dtype}"
            )
        storage = UntypedStorage(self.get_record(name))
        return _C.tensor_on_storage(storage, dtype if is_typed else _C.uint8)[:0]

    def serialization_id(self) -> str:
        """Return the number of the contents, or an empty text."""
        return self.get_record(_SERIALIZATION_ID).decode() if self.has_record(_SERIALIZATION_ID) else ""


class PyTorchFileWriter:
    """Writes records to an archive.

    Parameters
    ----------
    file
        A path, a file that can be written, or a function that is given bytes.
    compute_crc32
        Whether checksums are written.
    storage_alignment
        Records begin at multiples of it: 64.

    Raises
    ------
    RuntimeError
        If the file cannot be opened, or the alignment is another.
    """

    def __init__(self, file: Any, compute_crc32: bool = True, storage_alignment: int = 64) -> None:
        if storage_alignment != 64:
            raise RuntimeError(f"PyTorchFileWriter(): records are aligned to 64 bytes, not to {storage_alignment}")
        self._name, self._stream, self._is_ours = "archive", file, False
        if isinstance(file, str | os.PathLike):
            path = os.fspath(file)
            try:
                self._stream, self._is_ours = open(path, "wb"), True  # noqa: SIM115 (closed at the end)
            except OSError as error:
                raise RuntimeError(f"Parent directory or file {path} cannot be opened: {error.strerror}") from error
            self._name = os.path.splitext(os.path.basename(path))[0] or "archive"
        elif not hasattr(file, "write"):
            self._stream = _Function(file)
        self._writer: ArchiveWriter | None = ArchiveWriter(self._stream, compute_crc32)
        self._records: dict[str, int] = {}
        self._version = 3

    def archive_name(self) -> str:
        """Return the name of the folder in the archive."""
        return self._name

    def get_all_written_records(self) -> set[str]:
        """Return the names of the records."""
        return set(self._records)

    def set_min_version(self, version: int) -> None:
        """Set the least version that is written."""
        self._version = max(self._version, version)

    def serialization_id(self) -> str:
        """Return a number of the names and the contents of the records."""
        names = zlib.crc32("".join(self._records).encode())
        contents = zlib.crc32(b"".join(crc.to_bytes(4, "little") for crc in self._records.values()))
        return f"{names:020d}{contents:020d}"

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Write a record: the first bytes of a text, bytes, a storage, or memory at an address.

        Raises
        ------
        RuntimeError
            If there are fewer bytes, a record has that name, or the archive is complete.
        """
        if self._writer is None:
            raise RuntimeError("write_record(): the archive is complete")
        if name in self._records:
            raise RuntimeError(f"write_record(): there is a record {name} already")
        if isinstance(data, int):
            view = memoryview((ctypes.c_char * size).from_address(data)).cast("B")
        else:
            raw = (
                data.encode()
                if isinstance(data, str)
                else data
                if isinstance(data, bytes)
                else data.untyped().tobytes()
            )
            view = memoryview(raw)
        if len(view) < size:
            raise RuntimeError(f"write_record(): {name} has {len(view)} bytes, not {size}")
        self._writer.add(f"{self._name}/{name}", view[:size])
        self._records[name] = zlib.crc32(view[:size])

    def write_record_metadata(self, name: str, size: int) -> None:
        """Reserve the space of a record, which is written later; until then it holds zeros."""
        self.write_record(name, bytes(size), size)

    def write_end_of_file(self) -> None:
        """Write the version, the order of bytes and the directory of the archive."""
        if self._writer is None:
            raise RuntimeError("write_end_of_file(): the archive is complete")
        number = self.serialization_id()
        for name, data in (("version", f"{self._version}\n"), ("byteorder", "little"), (_SERIALIZATION_ID, number)):
            if name not in self._records:
                self.write_record(name, data, len(data))
        self._writer.close()
        self._writer = None
        if self._is_ours:
            self._stream.close()


class _Function:
    """A stream that gives what is written to a function."""

    def __init__(self, function: Callable[[bytes], Any]) -> None:
        self._function = function

    def write(self, data: Any) -> int:
        self._function(bytes(data))
        return len(data)
