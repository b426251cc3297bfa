"""``torch.load(weights_only=False)`` of files from before PyTorch 1.6.

The bytes of the storages follow the pickle that names them, so memory is filled after the objects
have been made.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import candelabra
import candelabra.serialization as _serialization  # noqa: F401
from candelabra.composite.methods.tensor_protocol import bytes_tensor
from candelabra.serialization.errors import FileError
from candelabra.serialization.options import skipping
from candelabra.serialization.places import Piece, Places
from candelabra.serialization.pytorch_legacy import MAGIC_NUMBER, PROTOCOL_VERSION
from candelabra.serialization.pytorch_objects import NUMBERS
from candelabra.serialization.sources import Source
from candelabra.storage import TypedStorage


class _Stream:
    """The bytes of a source as a file, as unpicklers read them."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.at = source.start

    def read(self, count: int = -1) -> bytes:
        left = self._source.size - self.at
        count = left if count < 0 else min(count, left)
        self.at += count
        return self._source.read(self.at - count, count)

    def readinto(self, target: Any) -> int:
        data = self.read(len(target))
        target[: len(data)] = data
        return len(data)

    def readline(self) -> bytes:
        begin, found = self.at, b""
        while not found.endswith(b"\n"):
            piece = self.read(256)
            line, newline, _ = piece.partition(b"\n")
            found += line + newline
            if not piece:
                break
        self.at = begin + len(found)
        return found


def _text(part: Any) -> Any:
    """Return a text of Python 2 that was read with ``encoding="bytes"``."""
    return part.decode("ascii") if isinstance(part, bytes) else part


class _Storages:
    """The storages that a pickle names, with the host memory that is still to be filled."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._known: dict[str, TypedStorage] = {}
        self.pending: dict[str, tuple[memoryview, Any, Any]] = {}

    def __call__(self, pid: Any) -> Any:
        if isinstance(pid, tuple) and pid[:1] == ("module",):
            return pid[1]  # a class of modules, with its source
        if not isinstance(pid, tuple) or len(pid) not in (5, 6) or _text(pid[0]) != "storage":
            raise FileError(f"Unknown saved id type: {pid!r}")
        kind, key, location, count = pid[1:5]
        location = _text(location)
        dtype = kind.dtype if isinstance(getattr(kind, "dtype", None), candelabra.dtype) else candelabra.uint8
        if key not in self._known:
            memory: list[memoryview] = [memoryview(b"")]
            piece = Piece(count * dtype.itemsize, lambda target: memory.__setitem__(0, target))
            flat = self._places.place(piece, location)
            self.pending[key] = (memory[0], flat, dtype)
            self._known[key] = TypedStorage(wrap_storage=flat.untyped_storage(), dtype=dtype, _internal=True)
        found = self._known[key]
        if len(pid) == 6 and pid[5] is not None:
            raise FileError(
                "a storage in it is a part of another, as before PyTorch 0.4: torch.load(weights_only=True) reads it"
            )
        return found

    def fill(self, key: str, source: Source, offset: int, swapped: bool) -> int:
        """Read one storage at an offset of the file; return where it ends."""
        memory, flat, dtype = self.pending[key]
        count = int.from_bytes(source.read(offset, 8), "big" if swapped else "little")
        nbytes = count * dtype.itemsize
        if nbytes != flat.numel():
            raise FileError(f"storage {key} has {nbytes} bytes instead of {flat.numel()}")
        if nbytes and not skipping():
            source.fill(offset + 8, memory)
            if swapped and NUMBERS.get(dtype.name, 1) > 1:
                numbers = array({2: "H", 4: "I", 8: "Q"}[NUMBERS[dtype.name]])
                numbers.frombytes(memory)
                numbers.byteswap()
                memory[:] = memoryview(numbers).cast("B")
            if flat.device.type != "cpu":
                flat.copy_(bytes_tensor(memory, flat.device))
        return offset + 8 + nbytes


def load(
    source: Source,
    places: Places,
    pickle_module: Any,
    arguments: dict[str, Any],
    unpickler: Callable[..., Any],
) -> Any:
    """Return the object in a file."""
    stream = _Stream(source)
    magic, version, machine = (pickle_module.load(stream, **arguments) for _ in range(3))
    if magic != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    if version != PROTOCOL_VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    storages = _Storages(places)
    found = unpickler(stream, pickle_module, storages, arguments).load()
    keys = pickle_module.load(stream, **arguments)
    at = stream.at
    for key in keys:
        at = storages.fill(key, source, at, machine.get("little_endian") is False)
    source.finished(at)
    return found
