"""Zip archives (PKWARE's APPNOTE 6.3) with aligned entries, and strict validation.

An archive is read only where its directory, the headers of its entries and the length of the file
agree, no two entries overlap or have the same name, and compressed entries are not far larger than
the file.
"""

from __future__ import annotations

import itertools
import struct
import zlib

from .errors import FileError
from .sources import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STORED, DEFLATED = 0, 8
#: Entries begin at multiples of this, so that tensors on the mapped file are aligned.
ALIGNMENT = 64
#: Compressed entries may unpack to this many bytes, and to this many times the size of the file.
FREE_BYTES, LARGEST_RATIO = 1 << 24, 7
#: How much of a compressed entry is read and unpacked at once.
_PART = 1 << 18
_MOST_ENTRIES = 1 << 20

_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF
_DATE = 0x21  # January 1, 1980, so that the same content makes the same file


class Entry:
    """One file in an archive."""

    __slots__ = ("crc", "method", "name", "offset", "packed", "size")

    def __init__(self, name: str, offset: int, size: int, packed: int, crc: int, method: int) -> None:
        self.name = name
        self.offset = offset
        self.size = size
        self.packed = packed
        self.crc = crc
        self.method = method


# ---- reading


def is_archive(source: Source) -> bool:
    """Return whether a file is, or was, a zip archive, by its first or last bytes."""
    if source.size - source.start >= 4 and source.read(source.start, 4) == b"PK\x03\x04":
        return True
    return _find_end(source) is not None


def _find_end(source: Source) -> int | None:
    length = min(source.size, _END.size + _FULL16)
    tail = source.read(source.size - length, length)
    at = tail.rfind(b"PK\x05\x06", 0, len(tail) - _END.size + 4)
    while at >= 0:
        if at + _END.size + int.from_bytes(tail[at + 20 : at + 22], "little") == len(tail):
            return source.size - length + at
        at = tail.rfind(b"PK\x05\x06", 0, at + 3)
    return None


class Archive:
    """The entries of an archive by name."""

    def __init__(self, source: Source, largest: int | None = None) -> None:
        self.source = source
        self.entries: dict[str, Entry] = {}
        end = _find_end(source)
        if end is None:
            raise FileError("the end of an archive is missing")
        start, length, count, base = self._directory(end)
        ranges = self._read_directory(source.read(start, length), count, base, start)
        ranges.sort()
        for (_, stop), (begin, _) in itertools.pairwise(ranges):
            if begin < stop:
                raise FileError("entries overlap")
        unpacked = sum(entry.size for entry in self.entries.values() if entry.method == DEFLATED)
        if unpacked > (FREE_BYTES + LARGEST_RATIO * source.size if largest is None else largest):
            raise FileError(
                f"{source.size} bytes claim to unpack to {unpacked}. If you trust it, unpack it yourself, or read arrays by "
                f"load_npz(f, largest={unpacked})"
            )
        #: PyTorch can be set to write no checksums.
        self.checked = any(entry.crc for entry in self.entries.values())

    def _directory(self, end: int) -> tuple[int, int, int, int]:
        """Return the directory's offset and length, the number of entries, and an offset to add to
        those in it.
        """
        source = self.source
        _, disk, directory_disk, here, count, length, offset, _ = _END.unpack(source.read(end, _END.size))
        stop = end
        at = end - _LOCATOR.size - _END64.size
        # PyTorch always writes the 64-bit form.
        if at >= 0 and source.read(end - _LOCATOR.size, 4) == b"PK\x06\x07" and source.read(at, 4) == b"PK\x06\x06":
            _, _, _, _, disk, directory_disk, here, count, length, offset = _END64.unpack(source.read(at, _END64.size))
            stop = at
        if disk or directory_disk or here != count:
            raise FileError("an archive in several parts")
        start = stop - length
        base = start - offset
        if start < 0 or base < 0:
            raise FileError("the directory of the archive is not where it should be")
        if count > _MOST_ENTRIES or count * _CENTRAL.size > length:
            raise FileError(f"{count} entries in a directory of {length} bytes")
        return start, length, count, base

    def _read_directory(self, text: bytes, count: int, base: int, stop: int) -> list[tuple[int, int]]:
        ranges = []
        at = 0
        for _ in range(count):
            if at + _CENTRAL.size > len(text):
                raise FileError("the directory of the archive is too short")
            fields = _CENTRAL.unpack_from(text, at)
            signature, flags, method, crc, packed, size = fields[0], fields[3], fields[4], *fields[7:10]
            name_length, extra_length, comment_length, header = fields[10], fields[11], fields[12], fields[16]
            begin = at + _CENTRAL.size
            at = begin + name_length + extra_length + comment_length
            if signature != b"PK\x01\x02" or at > len(text):
                raise FileError("the directory of the archive makes no sense")
            raw = text[begin : begin + name_length]
            extra = text[begin + name_length : begin + name_length + extra_length]
            size, packed, header = _large(extra, size, packed, header)
            entry = self._entry(raw, flags, method, crc, size, packed, base + header)
            if entry.offset + packed > stop:
                raise FileError(f"{entry.name} reaches beyond the archive")
            if entry.name in self.entries:
                raise FileError(f"two entries with the name {entry.name}")
            self.entries[entry.name] = entry
            ranges.append((base + header, entry.offset + packed))
        if at != len(text):
            raise FileError("the directory of the archive is too long")
        return ranges

    def _entry(self, raw: bytes, flags: int, method: int, crc: int, size: int, packed: int, header: int) -> Entry:
        name = raw.decode("utf-8")
        if flags & 0x2041:
            raise FileError(f"{name} is encrypted")
        if method not in (STORED, DEFLATED):
            raise FileError(f"{name} is compressed by method {method}, which is not read")
        if method == STORED and packed != size:
            raise FileError(f"{name} has {packed} bytes instead of {size}")
        local = _LOCAL.unpack(self.source.read(header, _LOCAL.size))
        if local[0] != b"PK\x03\x04" or local[3] != method or local[9] != len(raw):
            raise FileError(f"the header of {name} does not agree with the directory")
        if self.source.read(header + _LOCAL.size, len(raw)) != raw:
            raise FileError(f"the header of {name} has another name than the directory")
        return Entry(name, header + _LOCAL.size + len(raw) + local[10], size, packed, crc, method)

    def entry(self, name: str) -> Entry:
        """Return the entry of this name."""
        found = self.entries.get(name)
        if found is None:
            raise FileError(f"there is no {name} in it")
        return found

    def read(self, name: str, limit: int) -> bytes:
        """Return the bytes of an entry of at most `limit` bytes."""
        entry = self.entry(name)
        if entry.size > limit:
            raise FileError(f"{name} is too large: {entry.size} bytes")
        held = bytearray(entry.size)
        self.fill(entry, memoryview(held))
        return bytes(held)

    def fill(self, entry: Entry, target: memoryview) -> None:
        """Read an entry into memory of its size, and verify its checksum."""
        reader = EntryReader(self, entry)
        reader.fill(0, target)
        reader.finish()

    def verify(self, entry: Entry, checksum: int) -> None:
        """Raise an error unless an entry has this checksum, or none."""
        # PyTorch's files have no checksum of the storages whose space was only reserved.
        checked = self.checked and (entry.crc or "/data/" not in entry.name)
        if checked and checksum != entry.crc:
            raise FileError(f"the checksum of {entry.name} is wrong")


class EntryReader(Source):
    """The bytes of an entry, read from beginning to end without a copy of the whole.

    The first bytes can be read again, as formats with a header need it.
    """

    _KEPT = 1 << 14

    def __init__(self, archive: Archive, entry: Entry) -> None:
        self.size = entry.size
        self._archive, self._entry = archive, entry
        self._stream = zlib.decompressobj(-15) if entry.method == DEFLATED else None
        self._packed, self._at, self._crc = 0, 0, 0
        self._kept = bytearray()

    def fill(self, offset: int, target: memoryview) -> None:
        self.check(offset, len(target))
        again = self._kept[offset : offset + len(target)]
        target[: len(again)] = again
        rest = target[len(again) :]
        if not len(rest):
            return
        if offset + len(again) != self._at:
            raise FileError(f"{self._entry.name} is read twice")
        is_first = len(self._kept) == self._at
        self._next(rest)
        if is_first and self._at <= self._KEPT:
            self._kept += rest

    def finish(self) -> None:
        """Read what is left, and verify the length and the checksum."""
        while self._at < self.size:
            self._next(memoryview(bytearray(min(self.size - self._at, _PART))))
        while self._stream is not None and not self._stream.eof:
            if self._unpack(1):
                raise self._wrong_size()
        self._archive.verify(self._entry, self._crc)

    def _next(self, target: memoryview) -> None:
        if self._stream is None:
            self._archive.source.fill(self._entry.offset + self._at, target)
        else:
            done = 0
            while done < len(target):
                data = self._unpack(min(len(target) - done, _PART))
                target[done : done + len(data)] = data
                done += len(data)
        self._at += len(target)
        self._crc = zlib.crc32(target, self._crc)

    def _unpack(self, most: int) -> bytes:
        """Return the next unpacked bytes, or none if more must be read."""
        assert self._stream is not None
        packed = self._stream.unconsumed_tail
        if not packed:
            count = min(_PART, self._entry.packed - self._packed)
            packed = self._archive.source.read(self._entry.offset + self._packed, count)
            self._packed += count
        data = self._stream.decompress(packed, most)
        if not data and (self._stream.eof or not packed):
            raise self._wrong_size()
        return data

    def _wrong_size(self) -> FileError:
        return FileError(f"{self._entry.name} does not unpack to its {self.size} bytes")


def _large(extra: bytes, size: int, packed: int, header: int) -> tuple[int, int, int]:
    """Sizes and offsets beyond 32 bits are in an extra field."""
    wanted = [number == _FULL32 for number in (size, packed, header)]
    if not any(wanted):
        return size, packed, header
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1 and length >= 8 * sum(wanted) and at + 4 + length <= len(extra):
            numbers = iter(struct.unpack_from(f"<{sum(wanted)}Q", extra, at + 4))
            size, packed, header = (
                next(numbers) if large else old for large, old in zip(wanted, (size, packed, header))
            )
            return size, packed, header
        at += 4 + length
    return size, packed, header


# ---- writing


def write_all(stream: Any, data: Any) -> None:
    """Write all bytes to a stream that may write fewer per call."""
    view = memoryview(data)
    if view.ndim != 1 or view.itemsize != 1:
        view = view.cast("B")
    while len(view):
        count = stream.write(view)
        if not isinstance(count, int) or count >= len(view):
            return
        view = view[count:]


class ArchiveWriter:
    """Writes an archive sequentially; the stream need not be seekable."""

    def __init__(self, stream: Any, checksums: bool = True) -> None:
        self._stream = stream
        self._checksums = checksums
        self._at = 0
        self._directory: list[bytes] = []
        self._names: set[str] = set()

    def _write(self, data: Any) -> None:
        write_all(self._stream, data)
        self._at += memoryview(data).nbytes

    def add(self, name: str, data: Any, compress: bool = False) -> None:
        """Write an entry."""
        if name in self._names:
            raise ValueError(f"there is a file {name} in the archive already")
        self._names.add(name)
        view = memoryview(data)
        view = view.cast("B") if view.nbytes else memoryview(b"")
        crc = zlib.crc32(view) if self._checksums else 0
        size, method = view.nbytes, STORED
        if compress:
            packing = zlib.compressobj(6, zlib.DEFLATED, -15)
            view, method = memoryview(packing.compress(view) + packing.flush()), DEFLATED
        packed, header, raw = view.nbytes, self._at, name.encode()
        if len(raw) > _FULL16:
            raise ValueError("the name of a file in an archive is longer than 65535 bytes")
        flags = 0 if raw.isascii() else 0x800
        wide = size >= _FULL32 or packed >= _FULL32
        extra = struct.pack("<2H2Q", 1, 16, size, packed) if wide else b""
        gap = -(header + _LOCAL.size + len(raw) + len(extra)) % ALIGNMENT
        if gap:
            # An extra field has a header of four bytes.
            gap += ALIGNMENT if gap < 4 else 0
            extra += struct.pack("<2H", 0x4246, gap - 4) + bytes(gap - 4)
        shown = (_FULL32, _FULL32) if wide else (packed, size)
        version = 45 if wide else 20
        self._write(
            _LOCAL.pack(b"PK\x03\x04", version, flags, method, 0, _DATE, crc, *shown, len(raw), len(extra))
            + raw
            + extra
        )
        self._write(view)
        far = header >= _FULL32
        numbers = ([size, packed] if wide else []) + ([header] if far else [])
        extra = struct.pack(f"<2H{len(numbers)}Q", 1, 8 * len(numbers), *numbers) if numbers else b""
        central = _CENTRAL.pack(
            b"PK\x01\x02", 45, 45 if numbers else 20, flags, method, 0, _DATE, crc, *shown, len(raw), len(extra), 0, 0, 0, 0,
            _FULL32 if far else header,
        )  # fmt: skip
        self._directory.append(central + raw + extra)

    def close(self) -> None:
        """Write the directory."""
        start = self._at
        self._write(b"".join(self._directory))
        count, length = len(self._directory), self._at - start
        if count >= _FULL16 or length >= _FULL32 or start >= _FULL32:
            at = self._at
            self._write(_END64.pack(b"PK\x06\x06", _END64.size - 12, 45, 45, 0, 0, count, count, length, start))
            self._write(_LOCATOR.pack(b"PK\x06\x07", 0, at, 1))
        shown = min(count, _FULL16)
        self._write(_END.pack(b"PK\x05\x06", 0, 0, shown, shown, min(length, _FULL32), min(start, _FULL32), 0))
