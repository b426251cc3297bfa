"""Checkpoints of ``torch.distributed.checkpoint``: ``.metadata``, a pickle, is read by the
unpickler that makes plain data only, and ``.distcp`` files hold an archive of ``torch.save`` for
each part.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.serialization import FileError, UnsafeFileError
from candelabra.serialization.errors import explained
from candelabra.serialization.limits import Budget
from candelabra.serialization.places import Places
from candelabra.serialization.pytorch_archive import prefix_of
from candelabra.serialization.pytorch_archive import read as read_archive
from candelabra.serialization.sources import Source, opened
from candelabra.serialization.unpickler import BUILDERS, Machine, Named
from candelabra.serialization.zip_files import Archive, is_archive

from .contents import Contents
from .rank_files import DTYPE_NAMES, StoredPart, StoredTensor, check_part
from .regions import narrowed

METADATA = ".metadata"
_LARGEST = 1 << 30
_WHAT = "metadata of a PyTorch checkpoint"


class _Record:
    """An object of one of PyTorch's data classes: its name and its fields."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.fields: Any = {}

    def field(self, name: str) -> Any:
        if not isinstance(self.fields, dict) or name not in self.fields:
            raise FileError(f"a {self.kind} without {name}")
        return self.fields[name]


def _set_fields(target: Any, state: Any, budget: Budget) -> None:
    target.fields = state


BUILDERS[_Record] = _set_fields

_KINDS = ("Metadata", "TensorStorageMetadata", "BytesStorageMetadata", "TensorProperties", "ChunkStorageMetadata", "MetadataIndex", "StorageMeta")  # fmt: skip
_METADATA_MODULE = "torch.distributed.checkpoint.metadata"


def _maker(kind: str) -> Named:
    return Named(kind, lambda *arguments: _Record(kind))


def _size(numbers: Any = ()) -> tuple[int, ...]:
    if not isinstance(numbers, (list, tuple)) or not all(type(n) is int and 0 <= n < 1 << 63 for n in numbers):
        raise FileError("a size of what are no numbers")
    return tuple(numbers)


def _path(*parts: Any) -> str:
    return os.path.join("", *[part for part in parts if isinstance(part, str)])


_NAMES = {(_METADATA_MODULE, kind): _maker(kind) for kind in _KINDS}
_NAMES[_METADATA_MODULE, "_MEM_FORMAT_ENCODING"] = Named("_MEM_FORMAT_ENCODING", lambda *number: None)
_NAMES["torch.distributed.checkpoint.filesystem", "_StorageInfo"] = _maker("_StorageInfo")
_NAMES["torch", "Size"] = Named("torch.Size", _size)
_NAMES["torch.serialization", "_get_layout"] = Named("_get_layout", lambda *name: None)
for _module in ("pathlib", "pathlib._local"):
    for _kind in ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath"):
        _NAMES[_module, _kind] = Named(f"pathlib.{_kind}", _path)


def _find(module: str, name: str) -> Any:
    found = _NAMES.get((module, name))
    if found is not None:
        return found
    dtype = getattr(candelabra, name, None) if module == "torch" else None
    if isinstance(dtype, candelabra.dtype):
        return dtype
    raise UnsafeFileError(f"it holds {module[:200]}.{name[:200]}, which no metadata needs", f"{module}.{name}"[:400])


def _no_storage(identity: Any) -> Any:
    raise FileError("it refers to a storage")


class _KeyBudget(Budget):
    """Bounds the work of a pickle in which data classes are keys."""

    def key(self, value: Any) -> Any:
        if isinstance(value, _Record):
            # It is hashed by its identity; its fields are looked at later.
            return value
        return super().key(value)


class _Window(Source):
    """The bytes of a part of a file."""

    def __init__(self, descriptor: int, begin: int, size: int) -> None:
        self._file = descriptor
        self._begin = begin
        self.size = size

    def fill(self, offset: int, target: memoryview) -> None:
        done = 0
        while done < len(target):
            count = os.preadv(self._file, [target[done:]], self._begin + offset + done)
            if count == 0:
                raise FileError("it became shorter while it was read")
            done += count


class PyTorchContents(Contents):
    """A checkpoint that PyTorch has saved."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.tensors = {}
        #: Where the archives of values are: file, begin and bytes.
        self._objects: dict[str, tuple[str, int, int]] = {}
        self._lengths: dict[StoredPart, int] = {}
        self._held: tuple[StoredPart, Tensor] | None = None
        path = folder / METADATA
        with opened(path, "load()") as source, explained("load()", path, _WHAT):
            if source.size > _LARGEST:
                raise FileError(f"it has {source.size} bytes")
            text = source.read(0, source.size)
            found = Machine(text, _find, _no_storage, _KeyBudget(len(text))).run()
            if not isinstance(found, _Record) or found.kind != "Metadata":
                raise FileError("it describes no checkpoint")
            self._take(found.field("state_dict_metadata"), found.field("storage_data"))

    def _take(self, described: Any, storage: Any) -> None:
        if not isinstance(described, dict) or not isinstance(storage, dict):
            raise FileError("its entries are not described")
        places: dict[tuple[str, tuple[int, ...] | None], tuple[str, int, int]] = {}
        for key, value in storage.items():
            if not isinstance(key, _Record) or not isinstance(value, _Record):
                raise FileError("an entry without a place")
            offset = key.fields.get("offset")
            places[str(key.field("fqn")), None if offset is None else _size(offset)] = _place(value)
        for name, entry in described.items():
            if not isinstance(name, str) or not isinstance(entry, _Record):
                raise FileError("an entry without a name")
            if entry.kind == "BytesStorageMetadata":
                self._objects[name] = _known(places, name, None)
            elif entry.kind == "TensorStorageMetadata":
                self.tensors[name] = self._tensor(name, entry, places)
            else:
                raise FileError(f"{name[:100]!r} is a {entry.kind}")

    def _tensor(self, name: str, entry: _Record, places: Any) -> StoredTensor:
        properties, chunks = entry.field("properties"), entry.field("chunks")
        fields = properties.fields if isinstance(properties, _Record) else None
        dtype = fields[0] if isinstance(fields, tuple) and fields else None
        if not isinstance(dtype, candelabra.dtype) or dtype not in DTYPE_NAMES or not isinstance(chunks, list):
            raise FileError(f"the tensor {name[:100]!r} is of a dtype that is not there")
        tensor = StoredTensor(DTYPE_NAMES[dtype], _size(entry.field("size")), [])
        for chunk in chunks:
            if not isinstance(chunk, _Record) or chunk.kind != "ChunkStorageMetadata":
                raise FileError(f"a part of {name[:100]!r} is not described")
            offsets = _size(chunk.field("offsets"))
            file, begin, length = _known(places, name, offsets)
            part = StoredPart(file, begin, offsets, _size(chunk.field("sizes")))
            check_part(name, tensor, part)
            self._lengths[part] = length
            tensor.parts.append(part)
        return tensor

    def object_names(self) -> list[str]:
        return list(self._objects)

    def object(self, name: str) -> Any:
        return self._load(*self._objects[name])

    def _check_file(self, name: str, size: int) -> None:
        """PyTorch notes no size of the files; each archive is checked by itself."""

    def _load(self, file: str, begin: int, length: int) -> Any:
        descriptor = self.descriptor(file)
        with explained("load()", self.folder / file, "file of a PyTorch checkpoint"):
            size = os.fstat(descriptor).st_size
            if begin + length > size:
                raise FileError(f"it ends at {size} bytes, before {length} bytes at {begin}")
            source = _Window(descriptor, begin, length)
            if not is_archive(source):
                raise FileError("a part is no archive of torch.save")
            archive = Archive(source)
            prefix = prefix_of(archive)
            if prefix is None:
                raise FileError("a part is no archive of torch.save")
            return read_archive(archive, prefix, Places("cpu"))

    def _read(self, name: str, tensor: StoredTensor, part: StoredPart, start: list[int], target: Tensor) -> None:
        if self._held is None or self._held[0] is not part:
            self._held = None
            found = self._load(part.file, part.begin, self._lengths[part])
            if not isinstance(found, Tensor) or list(found.shape) != list(part.sizes):
                raise FileError(f"load(): {self.folder / part.file} is damaged: a part of {name!r} has another shape")
            self._held = (part, found.detach())
        inside = [a - b for a, b in zip(start, part.offsets, strict=True)]
        target.copy_(narrowed(self._held[1], inside, list(target.shape)))

    def close(self) -> None:
        self._held = None
        super().close()


def _place(info: _Record) -> tuple[str, int, int]:
    file, begin, length = info.field("relative_path"), info.field("offset"), info.field("length")
    if not isinstance(file, str) or Path(file).name != file:
        raise FileError(f"the file {str(file)[:100]!r} is not in the folder")
    if not all(type(number) is int and 0 <= number < 1 << 63 for number in (begin, length)):
        raise FileError("a part with an impossible place")
    if info.fields.get("transform_descriptors"):
        raise FileError("its files are compressed by an extension, which is not read")
    return file, begin, length


def _known(places: Any, name: str, offsets: tuple[int, ...] | None) -> tuple[str, int, int]:
    found: tuple[str, int, int] | None = places.get((name, offsets))
    if found is None:
        raise FileError(f"a part of {name[:100]!r} is in no file")
    return found
