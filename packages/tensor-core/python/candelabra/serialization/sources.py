"""Seekable input files: paths, or Python file objects."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat

from .errors import FileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Any

    Target = str | os.PathLike[str] | IO[bytes]

#: Bytes per read from a file object.
_PIECE = 1 << 26


class Source:
    """The bytes of a file. Sizes in the file are checked against `size` before anything is
    allocated for them.
    """

    size: int
    #: Where reading begins, for formats without a directory at the end.
    start: int = 0
    #: The file to map; None if it cannot be mapped.
    descriptor: int | None = None

    def fill(self, offset: int, target: memoryview) -> None:
        """Read as many bytes as `target` holds."""
        raise NotImplementedError

    def read(self, offset: int, count: int) -> bytes:
        """Read `count` bytes."""
        self.check(offset, count)
        held = bytearray(count)
        self.fill(offset, memoryview(held))
        return bytes(held)

    def check(self, offset: int, count: int) -> None:
        """Raise an error if the file does not have so many bytes at the offset."""
        if offset < 0 or count < 0 or offset + count > self.size:
            raise FileError(f"it ends at {self.size} bytes, before {count} bytes at {offset}")

    def finished(self, offset: int) -> None:
        """Position a file object behind the content."""


class PathSource(Source):
    """A file of the file system."""

    def __init__(self, descriptor: int, size: int) -> None:
        self.descriptor = descriptor
        self.size = size

    def fill(self, offset: int, target: memoryview) -> None:
        assert self.descriptor is not None
        done = 0
        while done < len(target):
            count = os.preadv(self.descriptor, [target[done : done + _PIECE]], offset + done)
            if count == 0:
                raise FileError("it became shorter while it was read")
            done += count


class ObjectSource(Source):
    """A file object that can seek."""

    def __init__(self, file: Any) -> None:
        self._file = file
        #: Fills a buffer without another copy; not of all file objects.
        self._read_into = getattr(file, "readinto", None)
        self.start = file.tell()
        self.size = file.seek(0, io.SEEK_END)
        if self.size is None:
            self.size = file.tell()

    def fill(self, offset: int, target: memoryview) -> None:
        self._file.seek(offset)
        done = 0
        while self._read_into is not None and done < len(target):
            count = self._read_into(target[done : done + _PIECE])
            if not count:
                raise FileError("it ended while it was read")
            done += count
        while done < len(target):
            piece = self._file.read(min(len(target) - done, _PIECE))
            if not isinstance(piece, (bytes, bytearray, memoryview)):
                raise FileError(f"reading gives {type(piece).__name__} instead of bytes; open it in binary mode")
            if not piece:
                raise FileError("it ended while it was read")
            target[done : done + len(piece)] = piece
            done += len(piece)

    def finished(self, offset: int) -> None:
        self._file.seek(offset)


@contextlib.contextmanager
def opened(f: Any, function: str, writable: bool = False) -> Iterator[Source]:
    """Open a path, or wrap a file object.

    Raises
    ------
    AttributeError
        If `f` is neither a path nor a file object that can seek.
    OSError
        If the file cannot be opened.
    """
    if not isinstance(f, (str, bytes, os.PathLike)):
        for needed in ("read", "seek", "tell"):
            if not hasattr(f, needed):
                raise AttributeError(
                    f"'{type(f).__name__}' object has no attribute '{needed}'. You can only torch.load from a file that is seekable. Please "
                    "pre-load the data into a buffer like io.BytesIO and try to load from it instead."
                )
        try:
            source = ObjectSource(f)
        except io.UnsupportedOperation as error:
            raise AttributeError(
                f"{function} takes files that are seekable ({error}): read it into an io.BytesIO before"
            ) from error
        yield source
        return
    descriptor = os.open(f, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fsdecode(f))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(
                errno.ESPIPE, f"{function} takes ordinary files; read it into an io.BytesIO before", os.fsdecode(f)
            )
        yield PathSource(descriptor, status.st_size)
    finally:
        os.close(descriptor)
