"""Pickled objects together with the file descriptors that the receiver needs."""

from __future__ import annotations

import contextlib
import os
import threading
from multiprocessing.reduction import ForkingPickler
from typing import Any


class Message:
    """A pickled object, and the files whose descriptors are sent with it."""

    __slots__ = ("data", "files", "names", "pid")

    def __init__(self, obj: Any) -> None:
        #: Files without duplicates. They stay open at least until the message is sent.
        self.files: list[Any] = []
        #: Names of files that are sent with it.
        self.names: list[str] = []
        self.pid = os.getpid()
        before = getattr(_thread, "outgoing", None)
        _thread.outgoing = self
        try:
            self.data = bytes(ForkingPickler.dumps(obj))
        finally:
            _thread.outgoing = before

    def __del__(self) -> None:
        # The message was not sent. In a forked process, the names belong to the parent.
        if self.names and self.pid == os.getpid():
            for name in self.names:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name)

    def add(self, file: Any) -> int:
        """Add a file to the message and return its index."""
        for number, known in enumerate(self.files):
            if known is file:
                return number
        self.files.append(file)
        return len(self.files) - 1

    @property
    def descriptors(self) -> list[int]:
        """The descriptors to send with the data."""
        return [file.descriptor for file in self.files]


class Received:
    """Data and descriptors of a received message. Descriptors that are not taken are closed."""

    def __init__(self, data: Any, descriptors: list[int]) -> None:
        self._data = data
        self._descriptors: list[int | None] = list(descriptors)

    def load(self) -> Any:
        """Unpickle and return the object."""
        before = getattr(_thread, "incoming", None)
        _thread.incoming = self
        try:
            return ForkingPickler.loads(self._data)
        finally:
            _thread.incoming = before
            self.close()

    def take(self, number: int) -> int:
        """Return a descriptor; the caller closes it."""
        descriptor = self._descriptors[number]
        if descriptor is None:
            # A message contains each storage once. Unpickling parts of its data separately can lead
            # here.
            raise RuntimeError(f"descriptor {number} of this message was taken before")
        self._descriptors[number] = None
        return descriptor

    def close(self) -> None:
        """Close the descriptors that were not taken."""
        left, self._descriptors = self._descriptors, [None] * len(self._descriptors)
        for descriptor in left:
            if descriptor is not None:
                os.close(descriptor)


_thread = threading.local()


def outgoing() -> Message | None:
    """Return the message that this thread is pickling, or None if it cannot carry descriptors."""
    return getattr(_thread, "outgoing", None)


def incoming() -> Received:
    """Return the message that this thread is unpickling."""
    received = getattr(_thread, "incoming", None)
    if received is None:
        raise RuntimeError(
            "these bytes name shared memory by a file descriptor that went with them; read them with recv() or get() of the pipe or queue "
            "of candelabra.multiprocessing they were sent by"
        )
    return received
