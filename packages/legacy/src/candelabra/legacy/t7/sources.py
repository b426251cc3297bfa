"""Numbers and bytes of a file, in binary or as text. Memory is bounded by its length."""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Callable
from typing import Any

import candelabra
from candelabra import Tensor

from .nodes import ELEMENTS, RAW_IN_TEXT, T7ReaderException

#: Elements of text that are converted at a time.
_CHUNK = 1 << 16
_TOKEN = re.compile(rb"[ \t\r\n]*([^ \t\r\n]{1,400})(?![^ \t\r\n])")


class Source:
    """The bytes of a file and a position."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.position = 0

    def take(self, count: int, what: str) -> memoryview:
        """Return the next bytes."""
        if count < 0 or count > len(self.data) - self.position:
            left = len(self.data) - self.position
            raise T7ReaderException(f"{what} needs {count} bytes, but the file has {left} more")
        taken = self.data[self.position : self.position + count]
        self.position += count
        return taken

    def integer(self) -> int:
        """Return an int."""
        raise NotImplementedError

    def long(self) -> int:
        """Return a long."""
        raise NotImplementedError

    def longs(self, count: int) -> list[int]:
        """Return several longs."""
        return [self.long() for _ in range(count)]

    def double(self) -> float:
        """Return a double."""
        raise NotImplementedError

    def text(self, count: int) -> bytes:
        """Return characters."""
        return bytes(self.take(count, "a string"))

    def elements(self, stem: str, count: int) -> Tensor:
        """Return the elements of a storage as a vector."""
        raise NotImplementedError


class BinarySource(Source):
    """A binary file, little-endian."""

    def __init__(self, data: memoryview, long_size: int) -> None:
        super().__init__(data)
        self.long_code = {4: "<i", 8: "<q"}[long_size]
        self.long_size = long_size

    def _number(self, code: str) -> int | float:
        value: int | float = struct.unpack(code, self.take(struct.calcsize(code), "a number"))[0]
        return value

    def integer(self) -> int:
        return int(self._number("<i"))

    def long(self) -> int:
        return int(self._number(self.long_code))

    def double(self) -> float:
        return float(self._number("<d"))

    def elements(self, stem: str, count: int) -> Tensor:
        code, dtype = ELEMENTS[stem]
        narrow = stem == "Long" and self.long_size == 4
        size = 4 if narrow else struct.calcsize(f"<{code}")
        data = self.take(count * size if count > 0 else min(count, 0), "a storage")
        if not count:
            return candelabra.empty(0, dtype=dtype)
        read = candelabra.int32 if narrow else dtype
        # The copy is writable, and the file's bytes can go.
        return candelabra.frombuffer(bytearray(data), dtype=read).to(dtype)


class TextSource(Source):
    """A file of text: numbers between white space, strings as they are."""

    def _token(self) -> bytes:
        match = _TOKEN.match(self.data, self.position)
        if match is None:
            raise T7ReaderException("a number is missing: the file ends, or is no text file of Torch 7")
        self.position = match.end()
        return match.group(1)

    def _end_of_line(self) -> None:
        if self.data[self.position : self.position + 1] == b"\n":
            self.position += 1

    def _integer(self) -> int:
        token = self._token()
        try:
            return int(token)
        except ValueError:
            raise T7ReaderException(f"{token[:20]!r} is not a whole number") from None

    def _float(self) -> float:
        token = self._token()
        try:
            return float(token)
        except ValueError:
            raise T7ReaderException(f"{token[:20]!r} is not a number") from None

    def integer(self) -> int:
        value = self._integer()
        self._end_of_line()
        return value

    def long(self) -> int:
        return self.integer()

    def longs(self, count: int) -> list[int]:
        values = [self._integer() for _ in range(count)]
        if count:
            self._end_of_line()
        return values

    def double(self) -> float:
        value = self._float()
        self._end_of_line()
        return value

    def text(self, count: int) -> bytes:
        taken = super().text(count)
        if count:
            self._end_of_line()
        return taken

    def elements(self, stem: str, count: int) -> Tensor:
        code, dtype = ELEMENTS[stem]
        left = len(self.data) - self.position
        if count < 0 or count > left:
            raise T7ReaderException(f"a storage of {count} elements needs more than the {left} bytes left in the file")
        if not count:
            return candelabra.empty(0, dtype=dtype)
        if stem in RAW_IN_TEXT:
            return candelabra.frombuffer(bytearray(self.text(count)), dtype=dtype)
        # Halves are read as floats: array has no code for them.
        values = array("f" if code == "e" else code)
        read: Callable[[], Any] = self._float if code in "fde" else self._integer
        for start in range(0, count, _CHUNK):
            try:
                values.extend(read() for _ in range(start, min(start + _CHUNK, count)))
            except OverflowError:
                raise T7ReaderException(f"a number is too large for a {stem}Storage") from None
        self._end_of_line()
        read_type = candelabra.float32 if code == "e" else dtype
        return candelabra.frombuffer(values, dtype=read_type).clone().to(dtype)


def open_source(data: memoryview, long_size: int, ascii: bool | None) -> Source:
    """Return a source for the bytes of a file; the first byte says which, unless it is given."""
    if ascii is None:
        # In binary, the first byte is the code of a type, which is less than 9.
        ascii = bool(len(data)) and data[0] in b"0123456789"
    return TextSource(data) if ascii else BinarySource(data, long_size)
