"""The contents of a checkpoint folder that is loaded, in this package's format or PyTorch's."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import OrderedDict
from math import prod
from pathlib import Path
from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.serialization import FileError
from candelabra.serialization.errors import explained

from . import index
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, TensorProperties, TensorStorageMetadata
from .rank_files import DTYPES_BY_NAME, StoredPart, StoredTensor, decoded
from .regions import RegionReader, intersection, narrowed

#: Files that are open at once.
_MOST_OPEN = 32


class Contents(ABC):
    """The contents of one checkpoint.

    Parameters
    ----------
    folder : Path
        Its folder.

    Attributes
    ----------
    tensors : dict
        The tensors by name.
    """

    tensors: dict[str, StoredTensor]

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open: OrderedDict[str, int] = OrderedDict()

    @abstractmethod
    def object_names(self) -> list[str]:
        """Return the names of what is no tensor."""

    @abstractmethod
    def object(self, name: str) -> Any:
        """Return a value that is no tensor."""

    @abstractmethod
    def _read(self, name: str, tensor: StoredTensor, part: StoredPart, start: list[int], target: Tensor) -> None:
        """Read a region of a part, which begins at `start` in the whole tensor, into `target`."""

    @abstractmethod
    def _check_file(self, name: str, size: int) -> None:
        """Raise FileError if a file cannot be the one that was saved."""

    def read(self, name: str, offsets: list[int], target: Tensor) -> None:
        """Read a region of a tensor into `target`, which has the region's sizes.

        Raises
        ------
        FileError
            Elements are missing from the checkpoint, or a file is damaged.
        """
        tensor = self.tensors[name]
        sizes = list(target.shape)
        there = 0
        for part in tensor.parts:
            common = intersection(part.offsets, part.sizes, offsets, sizes)
            if common is None:
                continue
            start, size = common
            inside = [a - b for a, b in zip(start, offsets, strict=True)]
            self._read(name, tensor, part, start, narrowed(target, inside, size))
            there += prod(size)
        if there < prod(sizes):
            raise FileError(
                f"load(): the checkpoint {self.folder} has {there} of the {prod(sizes)} elements of {name!r}"
            )

    def read_whole(self, name: str) -> Tensor:
        """Return a tensor of the checkpoint as a new one on the host."""
        tensor = self.tensors[name]
        dtype = DTYPES_BY_NAME[tensor.dtype]
        # Memory is allocated for bytes that are there.
        there = sum(os.fstat(self.descriptor(file)).st_size for file in {part.file for part in tensor.parts})
        if prod(tensor.shape) * dtype.itemsize > there:
            raise FileError(f"load(): the files of the checkpoint {self.folder} are too short for {name!r}")
        made = candelabra.empty(tensor.shape, dtype=dtype)
        self.read(name, [0] * made.dim(), made)
        return made

    def entries(self) -> dict[str, TensorStorageMetadata | BytesStorageMetadata]:
        """Return what is in the checkpoint, without reading it."""
        found: dict[str, TensorStorageMetadata | BytesStorageMetadata] = {}
        for name, tensor in self.tensors.items():
            chunks = [
                ChunkStorageMetadata(candelabra.Size(part.offsets), candelabra.Size(part.sizes))
                for part in tensor.parts
            ]
            properties = TensorProperties(DTYPES_BY_NAME[tensor.dtype])
            found[name] = TensorStorageMetadata(properties, candelabra.Size(tensor.shape), chunks)
        found.update((name, BytesStorageMetadata()) for name in self.object_names())
        return found

    def descriptor(self, name: str) -> int:
        """Return an open file of the checkpoint."""
        if name in self._open:
            self._open.move_to_end(name)
            return self._open[name]
        try:
            opened = os.open(self.folder / name, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise FileError(f"load(): {name} is missing from the checkpoint {self.folder}") from None
        self._open[name] = opened
        self._check_file(name, os.fstat(opened).st_size)
        if len(self._open) > _MOST_OPEN:
            os.close(self._open.popitem(last=False)[1])
        return opened

    def close(self) -> None:
        """Close the files."""
        while self._open:
            os.close(self._open.popitem()[1])

    def __enter__(self) -> Contents:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


class IndexedContents(Contents):
    """A checkpoint in this package's format."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._index = index.read_index(folder)
        self.tensors = self._index.tensors
        self._reader = RegionReader()

    def object_names(self) -> list[str]:
        return list(self._index.objects)

    def object(self, name: str) -> Any:
        path = self.folder / index.NAME
        with explained("load()", path, "index of a checkpoint"):
            return decoded(self._index.objects[name])

    def _check_file(self, name: str, size: int) -> None:
        if size != self._index.files[name]:
            raise FileError(
                f"load(): {self.folder / name} is damaged: it has {size} bytes instead of {self._index.files[name]}"
            )

    def _read(self, name: str, tensor: StoredTensor, part: StoredPart, start: list[int], target: Tensor) -> None:
        descriptor = self.descriptor(part.file)
        inside = [a - b for a, b in zip(start, part.offsets, strict=True)]
        with explained("load()", self.folder / part.file, "file of a checkpoint"):
            self._reader.read(descriptor, part.begin, part.sizes, DTYPES_BY_NAME[tensor.dtype], inside, target)
