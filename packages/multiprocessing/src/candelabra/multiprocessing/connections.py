"""Pipes that transfer file descriptors, and deliver each message completely or not at all.

A pipe is a pair of ``SOCK_SEQPACKET`` sockets. The kernel transfers each message atomically. A
process can therefore be killed at any time without leaving a partial message, and several processes
can use one end without a lock. Descriptors of shared memory are sent with the message
(``SCM_RIGHTS``). While a message is in transit, the kernel owns them: the sender may exit, and
unread descriptors are closed.
"""

from __future__ import annotations

import array
import errno
import io
import os
import socket
import struct
from collections.abc import Callable
from multiprocessing import connection, reduction
from typing import Any

from .memory import out_of_descriptors
from .messages import Message, Received
from .named_files import watch

#: Longer messages are written to an anonymous file, whose descriptor is sent instead.
INLINE = 32768
#: The kernel accepts at most 253 descriptors per message. More descriptors are sent over a socket
#: that is itself sent with the message.
MOST_DESCRIPTORS = 250
# Flags of the message, and the number of its own descriptors; they precede auxiliary descriptors.
_HEADER = struct.Struct("!BI")
_LONG, _MANY = 1, 2
_BUFFER = INLINE + _HEADER.size
_INT = array.array("i").itemsize
_TIME = struct.Struct("ll")  # seconds and microseconds
_ROOM = socket.CMSG_SPACE(253 * _INT)


class _Borrowed:
    """A socket object for a descriptor that it does not own."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fileno=descriptor)
        if self._socket.gettimeout() is not None:
            # Ignore socket.setdefaulttimeout().
            self._socket.setblocking(True)

    def __enter__(self) -> socket.socket:
        return self._socket

    def __exit__(self, *_: object) -> None:
        self._socket.detach()


def _rights(descriptors: list[int]) -> list[tuple[int, int, Any]]:
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    found = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) // _INT * _INT])
    return list(found)


def _send(descriptor: int, data: Any, descriptors: list[int]) -> None:
    kind = 0
    carriers: list[int] = []
    sent = descriptors
    try:
        if len(data) > INLINE:
            kind |= _LONG
            carriers.append(os.memfd_create("candelabra-message", os.MFD_CLOEXEC))
            with open(carriers[-1], "wb", closefd=False) as file:
                file.write(data)
            data = b""
        if len(descriptors) > MOST_DESCRIPTORS:
            kind |= _MANY
            first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            carriers.append(second.detach())
            with first:
                # The message is sent last, so all descriptors are available when it arrives.
                first.setblocking(False)
                for start in range(0, len(descriptors), MOST_DESCRIPTORS):
                    first.sendmsg([b"+"], _rights(descriptors[start : start + MOST_DESCRIPTORS]))
            sent = []
        with _Borrowed(descriptor) as open_socket:
            open_socket.sendmsg([_HEADER.pack(kind, len(descriptors)), data], _rights(sent + carriers))
    except (BrokenPipeError, ConnectionResetError) as error:
        raise BrokenPipeError(
            errno.EPIPE, "the receiver is gone: no process has the other end of this pipe open"
        ) from error
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ETOOMANYREFS):
            raise out_of_descriptors(error) from error
        raise
    finally:
        for carrier in carriers:
            os.close(carrier)


def _receive_many(descriptor: int, count: int) -> list[int]:
    found: list[int] = []
    with _Borrowed(descriptor) as open_socket:
        open_socket.setblocking(False)
        while len(found) < count:
            data, ancillary, _, _ = open_socket.recvmsg(1, _ROOM, socket.MSG_CMSG_CLOEXEC)
            batch = _descriptors(ancillary)
            found += batch
            if not data or not batch:
                break
    return found


def _receive(descriptor: int, wait: bool, when_idle: Callable[[], None] | None = None) -> tuple[Any, list[int]]:
    """Return the next message; raise BlockingIOError if there is none and `wait` is false."""
    flags = socket.MSG_CMSG_CLOEXEC | (0 if wait else socket.MSG_DONTWAIT)
    with _Borrowed(descriptor) as open_socket:
        while True:
            try:
                message, ancillary, _, _ = open_socket.recvmsg(_BUFFER, _ROOM, flags)
                break
            except ConnectionResetError:
                # Reported once if the other end was closed with unread data. Messages it sent can
                # still be read.
                continue
            except BlockingIOError:
                if not wait:
                    raise
                if when_idle is not None:
                    when_idle()
    found = _descriptors(ancillary)
    if not message:
        raise EOFError("all processes that could send have closed their end of the pipe")
    carriers: list[int] = []
    try:
        kind, count = _HEADER.unpack_from(message)
        carried = (1 if kind & _LONG else 0) + (1 if kind & _MANY else 0)
        complete = len(found) == (0 if kind & _MANY else count) + carried
        if complete:
            carriers = found[len(found) - carried :]
            del found[len(found) - carried :]
            if kind & _MANY:
                found += _receive_many(carriers[-1], count)
                complete = len(found) == count
        if not complete:
            # The kernel drops descriptors that exceed the limit of this process.
            raise out_of_descriptors(OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
        if not kind & _LONG:
            return memoryview(message)[_HEADER.size :], found
        with open(carriers[0], "rb", closefd=False) as file:
            file.seek(0)
            return memoryview(file.read()), found
    except BaseException:
        for left in found:
            os.close(left)
        raise
    finally:
        for carrier in carriers:
            os.close(carrier)


class Connection(connection.Connection):
    """One end of a pipe, with the methods of `multiprocessing.connection.Connection`.

    Tensors that are sent share their memory.
    """

    _handle: int | None

    def close(self) -> None:
        """Close this end; thread-safe, and further calls have no effect."""
        # Remove the handle atomically: after close(), the number can refer to another file.
        handle = self.__dict__.pop("_handle", None)
        if handle is not None:
            os.close(handle)

    def __del__(self) -> None:
        self.close()

    def send(self, obj: Any) -> None:
        """Send an object; raise BrokenPipeError if no process can receive it."""
        self._check_closed()  # type: ignore[attr-defined]
        self._check_writable()  # type: ignore[attr-defined]
        self.send_message(Message(obj))

    def send_message(self, message: Message) -> None:
        """Send a message that is already pickled."""
        if not message.names:
            _send(self.fileno(), message.data, message.descriptors)
            return
        try:
            token = watch(message.names)
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise out_of_descriptors(error) from error
            raise
        message.names = []
        try:
            _send(self.fileno(), message.data, [*message.descriptors, token])
        finally:
            os.close(token)

    def recv(self) -> Any:
        """Wait for the next object and return it; raise EOFError if no process can send."""
        return self.receive_message().load()

    def receive_message(self, wait: bool = True, when_idle: Callable[[], None] | None = None) -> Received:
        """Return the next message; raise BlockingIOError if there is none and `wait` is false.

        `when_idle` is called while there is no message, as often as `wake_each` says.
        """
        self._check_closed()  # type: ignore[attr-defined]
        self._check_readable()  # type: ignore[attr-defined]
        return Received(*_receive(self.fileno(), wait, when_idle))

    def wake_each(self, seconds: int) -> None:
        """Wake receivers that wait so often, in all processes that hold this end."""
        with _Borrowed(self.fileno()) as open_socket:
            open_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIME.pack(seconds, 0))

    def _send_bytes(self, buf: Any) -> None:
        _send(self.fileno(), buf, [])

    def _recv_bytes(self, maxsize: int | None = None) -> Any:
        data, descriptors = _receive(self.fileno(), True)
        # The caller wants only bytes, so close descriptors that came with the message.
        for descriptor in descriptors:
            os.close(descriptor)
        if maxsize is not None and len(data) > maxsize:
            return None
        buffer = io.BytesIO()
        buffer.write(data)
        return buffer


def Pipe(duplex: bool = True) -> tuple[Connection, Connection]:
    """Return the two ends of a pipe.

    Parameters
    ----------
    duplex : bool
        Whether both ends send and receive. Otherwise the first receives and the second sends.

    Examples
    --------
    >>> import candelabra, candelabra.multiprocessing as mp
    >>> here, there = mp.Pipe()
    >>> here.send(candelabra.ones(2))
    >>> there.recv()
    tensor([1., 1.])
    """
    try:
        first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise out_of_descriptors(error) from error
        raise
    for end in (first, second):
        end.setblocking(True)
        # The kernel limits this to its maximum.
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    return Connection(first.detach(), writable=duplex), Connection(second.detach(), readable=duplex)


def _reduce_connection(end: Connection) -> Any:
    return _rebuild_connection, (reduction.DupFd(end.fileno()), end.readable, end.writable)


def _rebuild_connection(duplicate: Any, readable: bool, writable: bool) -> Connection:
    return Connection(duplicate.detach(), readable, writable)


reduction.register(Connection, _reduce_connection)
