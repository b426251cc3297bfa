"""Objects as bytes together with the file descriptors that they need at the other end."""

from __future__ import annotations

import contextlib
import os
import threading
from multiprocessing.reduction import ForkingPickler
from typing import Any


class Message:
    """A pickled object, and the files whose descriptors go with it."""

    __slots__ = ("data", "files", "names", "pid")

    def __init__(self, obj: Any) -> None:
        #: The files, each once; they stay open at least as long as the message is not sent.
        self.files: list[Any] = []
        #: Names of files that go with it.
        self.names: list[str] = []
        self.pid = os.getpid()
        before = getattr(_thread, "outgoing", None)
        _thread.outgoing = self
        try:
            self.data = bytes(ForkingPickler.dumps(obj))
        finally:
            _thread.outgoing = before

    def __del__(self) -> None:
        # One that could not be made or was not sent; of a copy in a process that was forked, the
        # names are not this process's.
        if self.names and self.pid == os.getpid():
            for name in self.names:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name)

    def add(self, file: Any) -> int:
        """Take a file along and return its number."""
        for number, known in enumerate(self.files):
            if known is file:
                return number
        self.files.append(file)
        return len(self.files) - 1

    @property
    def descriptors(self) -> list[int]:
        """What is sent with the data."""
        return [file.descriptor for file in self.files]


class Received:
    """The descriptors that came with a message; what nobody takes is closed."""

    def __init__(self, data: Any, descriptors: list[int]) -> None:
        self._data = data
        self._descriptors: list[int | None] = list(descriptors)

    def load(self) -> Any:
        """Make the object."""
        before = getattr(_thread, "incoming", None)
        _thread.incoming = self
        try:
            return ForkingPickler.loads(self._data)
        finally:
            _thread.incoming = before
            self.close()

    def take(self, number: int) -> int:
        """Hand over a descriptor to the caller, who closes it."""
        descriptor = self._descriptors[number]
        if descriptor is None:
            # A message has each storage once; this one is made by somebody who pickles parts of it
            # apart.
            raise RuntimeError(f"descriptor {number} of this message was taken before")
        self._descriptors[number] = None
        return descriptor

    def close(self) -> None:
        """Close what was not taken."""
        left, self._descriptors = self._descriptors, [None] * len(self._descriptors)
        for descriptor in left:
            if descriptor is not None:
                os.close(descriptor)


_thread = threading.local()


def outgoing() -> Message | None:
    """The message that this thread is pickling now, if it is one that can take descriptors
    along.
    """
    return getattr(_thread, "outgoing", None)


def incoming() -> Received:
    """The message that this thread is unpickling now."""
    received = getattr(_thread, "incoming", None)
    if received is None:
        raise RuntimeError(
            "these bytes name shared memory by a file descriptor that went with them; read them with recv() or get() of the pipe or queue "
            "of candelabra.multiprocessing they were sent by"
        )
    return received
