"""The format of PyTorch before version 1.6: a sequence of pickles, followed by the bytes of the
storages.

The pickles are a magic number, the version of the protocol, properties of the machine, the object,
and the keys of its storages. Each storage follows as the number of its elements in eight bytes, and
the elements.
"""

from __future__ import annotations

import io
import pickle

from .errors import FileError
from .options import skipping
from .places import Piece, storage_memory
from .pytorch_archive import LARGEST_PICKLE
from .pytorch_objects import NUMBERS, Bytes, Objects, StorageClass
from .pytorch_pickler import TensorPickler
from .unpickler import EndOfText, Machine
from .zip_files import write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .places import Places
    from .sources import Source

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001


# ---- reading


class _Pickles:
    """The sequence of pickles in a file."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.at = source.start

    def next(self, run: Callable[[bytes], tuple[Any, int]]) -> Any:
        """Run the next pickle. Its length is not known before, so it is read in growing pieces."""
        whole = min(self._source.size - self.at, LARGEST_PICKLE)
        length = 1 << 16
        while True:
            text = self._source.read(self.at, min(length, whole))
            try:
                found, end = run(text)
            except EndOfText:
                if length >= whole:
                    raise
                length *= 8
            else:
                self.at += end
                return found


def _refuse(*_: Any) -> Any:
    raise FileError("a pickle in its head that is more than numbers and text")


def _plain(text: bytes) -> tuple[Any, int]:
    machine = Machine(text, _refuse, _refuse)
    return machine.run(), machine.at


def is_legacy(source: Source) -> bool:
    """Return whether a file begins with the magic number."""
    if source.size - source.start < 16:
        return False
    try:
        # The number takes 15 bytes in protocol 2, and 26 in protocol 4.
        head = source.read(source.start, min(64, source.size - source.start))
        return bool(_plain(head)[0] == MAGIC_NUMBER)
    except (FileError, ValueError):
        return False


class _Storages:
    """The storages that a pickle refers to, before and after they are read."""

    def __init__(self) -> None:
        self.described: dict[str, tuple[Any, str, int]] = {}
        self.loaded: dict[str, Any] | None = None

    def __call__(self, pid: Any) -> Bytes:
        if isinstance(pid, tuple):  # texts of Python 2 that are read with encoding="bytes"
            pid = tuple(part.decode("latin-1") if isinstance(part, bytes) else part for part in pid)
        if (
            not isinstance(pid, tuple)
            or len(pid) not in (5, 6)
            or pid[0] != "storage"
            or not isinstance(pid[1], StorageClass)
        ):
            raise FileError(
                "an unknown kind of storage"
                if not _is_module(pid)
                else "it holds a module; save its state_dict() instead"
            )
        kind, key, location, count = pid[1:5]
        view = pid[5] if len(pid) == 6 else None
        if (
            not isinstance(key, str)
            or not isinstance(location, str)
            or type(count) is not int
            or not 0 <= count < 1 << 60
        ):
            raise FileError("an unknown kind of storage")
        if self.loaded is None:
            known = self.described.setdefault(key, (kind.dtype, location, count))
            if known != (kind.dtype, location, count):
                raise FileError(f"storage {key} is described in two ways")
            return Bytes(None, kind.dtype)
        flat = self.loaded.get(key)
        if flat is None:
            raise FileError(f"storage {key} is missing")
        if view is not None:
            # Storages could once be views of others.
            if (
                not isinstance(view, tuple)
                or len(view) != 3
                or not all(type(n) is int and 0 <= n < 1 << 60 for n in view[1:])
            ):
                raise FileError("a part of a storage without a place")
            begin, end = view[1] * kind.dtype.itemsize, (view[1] + view[2]) * kind.dtype.itemsize
            if end > flat.numel():
                raise FileError("a part of a storage that reaches beyond it")
            flat = flat[begin:end]
        return Bytes(flat, kind.dtype)


def _is_module(pid: Any) -> bool:
    return isinstance(pid, tuple) and len(pid) > 0 and pid[0] == "module"


def read(source: Source, places: Places, encoding: str = "utf-8") -> Any:
    """Return the object in a file."""
    pickles = _Pickles(source)
    if pickles.next(_plain) != MAGIC_NUMBER:
        raise FileError("it does not begin with PyTorch's magic number")
    version = pickles.next(_plain)
    if version != PROTOCOL_VERSION:
        raise FileError(f"its protocol is {str(version)[:40]} instead of {PROTOCOL_VERSION}")
    machine = pickles.next(_plain)
    if not isinstance(machine, dict):
        raise FileError("it does not say on what machine it was written")
    swapped = machine.get("little_endian") is False
    storages = _Storages()
    begin = pickles.at
    # The pickle names the storages, which come after it. It is run once to find them, and again
    # with them.
    pickles.next(lambda text: Objects(storages).run(text, encoding))
    text = source.read(begin, pickles.at - begin)
    keys = pickles.next(_plain)
    if not isinstance(keys, list) or len(set(map(_key, keys))) != len(keys):
        raise FileError("the list of its storages makes no sense")
    at = pickles.at
    # Check all lengths before anything is read.
    pieces: dict[str, Piece] = {}
    for key in keys:
        if key not in storages.described:
            raise FileError(f"storage {key} is not described")
        dtype, _, count = storages.described[key]
        written = int.from_bytes(source.read(at, 8), "big" if swapped else "little", signed=True)
        if written != count:
            raise FileError(f"storage {key} has {written} elements instead of {count}")
        begin, nbytes = at + 8, count * dtype.itemsize
        source.check(begin, nbytes)
        pieces[key] = Piece(nbytes, lambda memory, begin=begin: source.fill(begin, memory))  # type: ignore[misc]
        at = begin + nbytes
    loaded = {}
    for key, piece in pieces.items():
        dtype, location, _ = storages.described[key]
        loaded[key] = places.place(piece, location, NUMBERS.get(dtype.name, 1) if swapped else 1)
    storages.loaded = loaded
    found, _ = Objects(storages).run(text, encoding)
    source.finished(at)
    return found


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise FileError("the list of its storages makes no sense")
    return key


# ---- writing


def prepare(obj: Any) -> Callable[[Any], None]:
    """Return a function that writes a file that every version of PyTorch reads."""
    if skipping():
        raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
    text = io.BytesIO()
    pickler = TensorPickler(text, legacy=True)
    pickler.dump_tensors(obj)
    machine = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": True,
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    head = b"".join(pickle.dumps(part, 2) for part in (MAGIC_NUMBER, PROTOCOL_VERSION, machine))

    def write(stream: Any) -> None:
        write_all(stream, head)
        write_all(stream, text.getbuffer())
        write_all(stream, pickle.dumps([str(number) for number in range(len(pickler.storages))], 2))
        for storage, dtype in zip(pickler.storages, pickler.dtypes):
            write_all(stream, (storage.nbytes() // dtype.itemsize).to_bytes(8, "little"))
            memory = memoryview(storage_memory(storage))
            write_all(stream, memory[: memory.nbytes // dtype.itemsize * dtype.itemsize])

    return write
