"""Checkpoints of PyTorch: reads and writes archives of ``torch.save``, without PyTorch and without
running code from a file.

Such an archive is a zip file that holds a pickle, ``data.pkl``, and the bytes of each storage,
``data/0`` and so on, in a folder.
"""

from __future__ import annotations

import io

from .errors import FileError
from .options import LoadEndianness, get_default_load_endianness, write_checksums
from .places import Piece, add_storage
from .pytorch_objects import NUMBERS, Bytes, Objects, StorageClass
from .pytorch_pickler import TensorPickler
from .zip_files import STORED, ArchiveWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .places import Places
    from .zip_files import Archive

# The pickle of a state dict is small. A larger one was made to exhaust memory.
LARGEST_PICKLE = 1 << 28


# ---- reading


def prefix_of(archive: Archive) -> str | None:
    """Return the folder in an archive of ``torch.save``, or None for another archive."""
    for name in archive.entries:
        if name.count("/") == 1 and name.endswith("/data.pkl"):
            return name.removesuffix("data.pkl")
    return None


def read_pickle(archive: Archive, prefix: str) -> bytes:
    """Return the pickle of an archive."""
    return archive.read(f"{prefix}data.pkl", LARGEST_PICKLE)


def _swapped(archive: Archive, prefix: str) -> bool:
    """Return whether numbers are stored in the byte order that is not this machine's, which is
    little-endian.
    """
    if f"{prefix}byteorder" not in archive.entries:
        return get_default_load_endianness() is LoadEndianness.BIG
    order = archive.read(f"{prefix}byteorder", 64)
    if order not in (b"little", b"big"):
        raise FileError("its numbers are of another byte order than little or big")
    return order == b"big"


class StorageReader:
    """Reads the storages of an archive to where they go."""

    def __init__(self, archive: Archive, prefix: str, places: Places) -> None:
        if f"{prefix}constants.pkl" in archive.entries:
            raise FileError(
                "it is a program of TorchScript (torch.jit.save), and programs are not read; save the state_dict() of the module"
            )
        self._archive = archive
        self._prefix = prefix
        self._places = places
        self._swapped = _swapped(archive, prefix)
        self._loaded: dict[tuple[str, str], Any] = {}

    def read(self, dtype: Any, key: Any, location: Any, count: Any) -> Any:
        """Return the bytes of a storage of `count` elements as a flat tensor."""
        if not isinstance(key, str) or not isinstance(location, str) or type(count) is not int:
            raise FileError("an unknown kind of storage")
        if (key, location) not in self._loaded:
            archive, entry = self._archive, self._archive.entry(f"{self._prefix}data/{key}")
            piece = Piece(
                entry.size,
                lambda memory: archive.fill(entry, memory),
                archive.source if entry.method == STORED else None,
                entry.offset,
            )
            if any(known == key for known, _ in self._loaded):
                raise FileError(f"storage {key} is on two devices")
            swap = NUMBERS.get(dtype.name, 1) if self._swapped else 1
            self._loaded[key, location] = self._places.place(piece, location, swap)
        flat = self._loaded[key, location]
        if count < 0 or count * dtype.itemsize > flat.numel():
            raise FileError(f"storage {key} has {flat.numel()} bytes, fewer than its {count} elements need")
        return flat


def read(archive: Archive, prefix: str, places: Places, encoding: str = "utf-8") -> Any:
    """Return the object in an archive."""
    reader = StorageReader(archive, prefix, places)

    def storage(pid: Any) -> Bytes:
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or not isinstance(pid[1], StorageClass):
            raise FileError("an unknown kind of storage")
        return Bytes(reader.read(pid[1].dtype, *pid[2:5]), pid[1].dtype)

    packed = archive.entry(f"{prefix}data.pkl").packed
    return Objects(storage).run(read_pickle(archive, prefix), encoding, packed)[0]


# ---- writing


def prepare(obj: Any, name: str, byteorder: bool = True) -> Callable[[Any], None]:
    """Return a function that writes an archive that ``torch.load`` reads. `name` is the folder in
    it.
    """
    text = io.BytesIO()
    pickler = TensorPickler(text)
    pickler.dump_tensors(obj)

    def write(stream: Any) -> None:
        archive = ArchiveWriter(stream, write_checksums())
        archive.add(f"{name}/data.pkl", text.getbuffer())
        archive.add(f"{name}/.format_version", b"1")
        archive.add(f"{name}/.storage_alignment", b"64")
        if byteorder:
            archive.add(f"{name}/byteorder", b"little")
        for number, storage in enumerate(pickler.storages):
            add_storage(archive, f"{name}/data/{number}", storage)
        archive.add(f"{name}/version", b"3\n")
        archive.close()

    return write
