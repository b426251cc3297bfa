"""A store in a file, for processes that see the same file system."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from contextlib import suppress

from ..errors import DistStoreError
from . import wire
from .base import Deadline, Store, missing_keys
from .table import CHANGING, Missing, Table

_POLL = 0.01


class FileStore(Store):
    """A store in a file, to which all processes append their changes.

    Parameters
    ----------
    file_name : str
        A file that all processes can open and lock; it is created. Use another one for each job.
    world_size : int
        The number of processes. The last of them to close its store removes the file. Without it
        the file stays.

    Examples
    --------
    >>> import os, tempfile
    >>> from candelabra.distributed import FileStore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = FileStore(os.path.join(folder, "meeting"), 1)
    ...     store.set("word", "seven")
    ...     store.get("word")
    b'seven'
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self._path = os.fspath(file_name)
        self._world_size = world_size
        self._table = Table()
        self._position = 0
        self._lock = threading.Lock()
        self._descriptor: int | None = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @property
    def path(self) -> str:
        """The file's name."""
        return self._path

    def _request(self, code: int, parts: list[bytes], timeout: float) -> list[bytes]:
        deadline = Deadline(timeout)
        while True:
            with self._lock:
                try:
                    return self._apply(code, parts)
                except Missing:
                    pass
                except ValueError as error:
                    raise DistStoreError(str(error)) from None
            if not deadline.left():
                raise missing_keys(code, parts, timeout)
            time.sleep(min(_POLL, deadline.left()))

    def _apply(self, code: int, parts: list[bytes]) -> list[bytes]:
        if self._descriptor is None:
            raise DistStoreError(f"the store of {self._path} is closed")
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            self._read_changes()
            reply, _ = self._table.apply(code, parts)
            if code in CHANGING:
                record = wire.frame(code, parts)
                # A writer that was killed in the middle has left an incomplete record.
                os.ftruncate(self._descriptor, self._position)
                os.pwrite(self._descriptor, record, self._position)
                self._position += len(record)
            return reply
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _read_changes(self) -> None:
        assert self._descriptor is not None
        end = os.fstat(self._descriptor).st_size
        if end <= self._position:
            return
        buffer = bytearray(os.pread(self._descriptor, end - self._position, self._position))
        before = len(buffer)
        while (record := wire.take_frame(buffer)) is not None:
            self._table.apply(*record)
        self._position += before - len(buffer)

    def close(self) -> None:
        """Close the file; the last process removes it."""
        with self._lock:
            if self._descriptor is None:
                return
            closed = 0
            if self._world_size > 0:
                with suppress(OSError):
                    closed = int(self._apply(wire.ADD, [b"closed stores", b"1"])[0])
            os.close(self._descriptor)
            self._descriptor = None
        if self._world_size > 0 and closed >= self._world_size:
            with suppress(FileNotFoundError):
                os.unlink(self._path)

    def __del__(self) -> None:
        if getattr(self, "_descriptor", None) is not None:
            self.close()

    def clone(self) -> FileStore:
        return FileStore(self._path)
