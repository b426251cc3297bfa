"""A connection to a store's server."""

from __future__ import annotations

import select
import socket
import threading
import time
from contextlib import suppress

from ..errors import DistBackendError, DistNetworkError, DistStoreError
from . import wire
from .addresses import notice_dead_peers, resolve
from .base import missing_keys

_RETRY = 0.05
#: Seconds that a server may take to answer beyond the time limit of a request.
_SLACK = 30.0


class Connection:
    """An authenticated connection.

    Parameters
    ----------
    host, port
        The server's address.
    kind : str
        ``store``, ``pmi``, ``health`` or ``agent``.
    details : list of bytes
        What a connection of this kind tells the server.
    token : str
        The job's token.
    timeout : float
        Seconds in which the server must have started.
    """

    def __init__(self, host: str, port: int, kind: str, details: list[bytes], token: str, timeout: float) -> None:
        self.host = host
        self.port = port
        self.lock = threading.Lock()
        self._buffer = bytearray()
        self._closed = False
        self.socket = self._connect(timeout)
        try:
            self._introduce(kind, details, token)
        except BaseException:
            self.socket.close()
            raise

    def _connect(self, timeout: float) -> socket.socket:
        end = time.monotonic() + timeout
        while True:
            problem: OSError | None = None
            for family, address in resolve(self.host, self.port):
                made = socket.socket(family, socket.SOCK_STREAM)
                made.settimeout(max(0.1, min(10.0, end - time.monotonic())))
                try:
                    made.connect(address)
                except OSError as error:
                    made.close()
                    problem = error
                    continue
                notice_dead_peers(made)
                return made
            if time.monotonic() + _RETRY > end:
                raise DistNetworkError(
                    f"the store at {self.host}:{self.port} could not be reached within {timeout:g} s: {problem}"
                )
            time.sleep(_RETRY)

    def _introduce(self, kind: str, details: list[bytes], token: str) -> None:
        self.socket.settimeout(_SLACK)
        greeting = self._exactly(len(wire.MAGIC) + wire.NONCE_BYTES)
        if not greeting.startswith(wire.MAGIC):
            raise DistNetworkError(f"what listens at {self.host}:{self.port} is no store of Candelabra")
        nonce = bytes(greeting[len(wire.MAGIC) :])
        self.socket.sendall(wire.frame(wire.HELLO, [kind.encode(), wire.proof(token, nonce, kind), *details]))
        code, parts = self.receive(_SLACK)
        if code != wire.OK:
            reason = parts[0].decode() if parts else "no reason was given"
            raise DistNetworkError(f"the store at {self.host}:{self.port} refused this process: {reason}")

    def _exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            self._receive_more()
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def _receive_more(self) -> None:
        try:
            data = self.socket.recv(1 << 16)
        except TimeoutError:
            raise DistNetworkError(f"the store at {self.host}:{self.port} does not answer") from None
        except OSError as error:
            raise self._gone(error) from None
        if not data:
            raise self._gone(None)
        self._buffer += data

    def _gone(self, error: OSError | None) -> DistNetworkError:
        self._closed = True
        why = f" ({error.strerror})" if error is not None else ""
        return DistNetworkError(f"the store at {self.host}:{self.port} has closed the connection{why}")

    def send(self, code: int, parts: list[bytes]) -> None:
        """Send a frame."""
        try:
            self.socket.sendall(wire.frame(code, parts))
        except OSError as error:
            raise self._gone(error) from None

    def receive(self, timeout: float | None) -> tuple[int, list[bytes]]:
        """Return the next frame."""
        self.socket.settimeout(timeout)
        while (found := wire.take_frame(self._buffer)) is None:
            self._receive_more()
        return found

    def receive_within(self, timeout: float) -> tuple[int, list[bytes]] | None:
        """Return the next frame if it arrives within `timeout` seconds, or else None."""
        found = wire.take_frame(self._buffer)
        if found is not None or not select.select([self.socket], [], [], timeout)[0]:
            return found
        self._receive_more()
        return wire.take_frame(self._buffer)

    def request(self, code: int, parts: list[bytes], timeout: float) -> list[bytes]:
        """Carry a store's request out on the server.

        Raises
        ------
        DistStoreError
            The keys did not appear in time, or the request is refused.
        DistBackendError
            A rank of the job has failed while the request was waiting.
        """
        with self.lock:
            if self._closed:
                raise DistNetworkError(f"the connection to the store at {self.host}:{self.port} is closed")
            self.send(code, [str(round(timeout * 1000)).encode(), *parts])
            try:
                answer, reply = self.receive(timeout + _SLACK)
            except BaseException:
                # A reply that arrives later would be taken for that of the next request.
                self.close()
                raise
        if answer == wire.OK:
            return reply
        if answer == wire.TIMED_OUT:
            raise missing_keys(code, parts, timeout)
        text = reply[0].decode() if reply else f"the server answered {answer}"
        raise DistBackendError(text) if answer == wire.JOB_FAILED else DistStoreError(text)

    def close(self) -> None:
        """Close the connection; a thread that waits for it gets an error."""
        self._closed = True
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
