"""The server of a job: one thread that serves stores, MPI's process manager and health reports.

It runs in the launcher, or in the process of rank 0 if there is no launcher. Every connection first
proves that it knows the job's token.
"""

from __future__ import annotations

import heapq
import hmac
import itertools
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from . import wire
from .addresses import listen, notice_dead_peers
from .health_board import HealthBoard
from .pmi import PmiService
from .table import Missing, Table

#: Seconds between looks at processes that may be stopped.
_TICK = 0.5


class Peer:
    """A connection on the server's side."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.nonce = os.urandom(wire.NONCE_BYTES)
        self.incoming = bytearray()
        self.outgoing = bytearray()
        self.kind = ""
        #: What the service of this kind of connection keeps about it.
        self.state: Any = None
        self.waiting: Waiter | None = None

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return self.socket.fileno()


class Waiter:
    """A request that waits for a key."""

    __slots__ = ("code", "is_done", "parts", "peer")

    def __init__(self, peer: Peer, code: int, parts: list[bytes]) -> None:
        self.peer = peer
        self.code = code
        self.parts = parts
        self.is_done = False


class StoreServer:
    """A server with a thread of its own.

    Parameters
    ----------
    host, port
        Where it listens; port 0 for a free one.
    token : str
        The job's token.
    listener : socket, optional
        A socket that listens already.

    Attributes
    ----------
    port : int
        The port on which it listens.
    health : HealthBoard
        What it knows about the ranks.
    """

    def __init__(self, host: str, port: int, token: str, listener: socket.socket | None = None) -> None:
        self._listener = listen(host, port) if listener is None else listener
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._token = token
        self._table = Table()
        self._waiters: dict[bytes, list[Waiter]] = {}
        self._deadlines: list[tuple[float, int, Waiter]] = []
        self._numbers = itertools.count()
        self._selector = selectors.EpollSelector()
        self._calls: list[Callable[[], None]] = []
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._wake_receiver.setblocking(False)
        self._is_closing = False
        self.health = HealthBoard(self)
        self._pmi = PmiService(self, token)
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._selector.register(self._wake_receiver, selectors.EVENT_READ, None)
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="candelabra store", daemon=True)
        self._thread.start()

    # ---- the thread

    def _run(self) -> None:
        next_tick = time.monotonic() + _TICK
        while not self._is_closing:
            end = next_tick
            if self._deadlines:
                end = min(end, self._deadlines[0][0])
            for key, events in self._selector.select(max(0.0, end - time.monotonic())):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._wake_receiver:
                    self._run_calls()
                else:
                    self._serve(key.data, events)
            now = time.monotonic()
            self._expire(now)
            if now >= next_tick:
                next_tick = now + _TICK
                self.health.look(now)
            else:
                self.health.settle(now)
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, Peer):
                key.data.socket.close()
        self._selector.close()
        self._listener.close()
        self._wake_receiver.close()
        self._wake_sender.close()

    def call(self, function: Callable[[], None]) -> None:
        """Run a function in the server's thread."""
        self._calls.append(function)
        with suppress(OSError):
            self._wake_sender.send(b"x")

    def _run_calls(self) -> None:
        with suppress(BlockingIOError):
            self._wake_receiver.recv(4096)
        while self._calls:
            self._calls.pop(0)()

    def close(self) -> None:
        """Close all connections and end the thread."""
        # A process that was forked off has no such thread.
        if self._is_closing or os.getpid() != self._process:
            return
        self._is_closing = True
        with suppress(OSError):
            self._wake_sender.send(b"x")
        if threading.current_thread() is not self._thread:
            self._thread.join(5)

    # ---- connections

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setblocking(False)
            notice_dead_peers(connection)
            peer = Peer(connection)
            self._selector.register(connection, selectors.EVENT_READ, peer)
            self.send_bytes(peer, wire.MAGIC + peer.nonce)

    def _serve(self, peer: Peer, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._flush(peer)
        if not events & selectors.EVENT_READ:
            return
        try:
            data = peer.socket.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.drop(peer)
            return
        peer.incoming += data
        try:
            self._take_requests(peer)
        except (ValueError, UnicodeDecodeError, IndexError) as error:
            self.send(peer, wire.REFUSED, [str(error).encode()])
            self.drop(peer)

    def _take_requests(self, peer: Peer) -> None:
        while peer.socket.fileno() >= 0:
            if peer.kind == "pmi":
                self._pmi.receive(peer)
                return
            found = wire.take_frame(peer.incoming, wire.MAX_FRAME if peer.kind else wire.MAX_HELLO)
            if found is None:
                return
            code, parts = found
            if not peer.kind:
                self._greet(peer, code, parts)
            elif peer.kind == "store":
                self._request(peer, code, parts)
            else:
                self.health.receive(peer, code, parts)

    def _greet(self, peer: Peer, code: int, parts: list[bytes]) -> None:
        if code != wire.HELLO or len(parts) < 2:
            raise ValueError("the connection did not introduce itself")
        kind = parts[0].decode()
        if not hmac.compare_digest(parts[1], wire.proof(self._token, peer.nonce, kind)):
            raise ValueError("it has another job token (CANDELABRA_JOB_TOKEN)")
        if kind == "pmi":
            self._pmi.greet(peer, parts[2:])
        elif kind in ("health", "agent"):
            self.health.greet(peer, kind, parts[2:])
        elif kind != "store":
            raise ValueError(f"there are no connections of kind {kind!r}")
        peer.kind = kind
        if kind != "health":  # the board has answered
            self.send(peer, wire.OK, [])

    def drop(self, peer: Peer) -> None:
        """Close a connection."""
        if peer.socket.fileno() < 0:
            return
        self._selector.unregister(peer.socket)
        peer.socket.close()
        if peer.waiting is not None:
            peer.waiting.is_done = True
        if peer.kind == "pmi":
            self._pmi.lost(peer)
        elif peer.kind in ("health", "agent"):
            self.health.lost(peer)

    def send(self, peer: Peer, code: int, parts: list[bytes]) -> None:
        """Send a frame, as soon as the connection takes it."""
        self.send_bytes(peer, wire.frame(code, parts))

    def send_bytes(self, peer: Peer, data: bytes) -> None:
        """Send bytes, as soon as the connection takes them."""
        if peer.socket.fileno() < 0:
            return
        had_some = bool(peer.outgoing)
        peer.outgoing += data
        if not had_some:
            self._flush(peer)

    def _flush(self, peer: Peer) -> None:
        try:
            while peer.outgoing:
                sent = peer.socket.send(peer.outgoing)
                del peer.outgoing[:sent]
        except BlockingIOError:
            pass
        except OSError:
            peer.outgoing.clear()  # the end of the connection is read next
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.outgoing else 0)
        if self._selector.get_key(peer.socket).events != wanted:
            self._selector.modify(peer.socket, wanted, peer)

    # ---- requests of stores

    def _request(self, peer: Peer, code: int, parts: list[bytes]) -> None:
        if not parts or peer.waiting is not None:
            raise ValueError("a store sends one request at a time, with its time limit")
        limit = int(parts[0]) / 1000
        waiter = Waiter(peer, code, parts[1:])
        peer.waiting = waiter
        if not self._attempt(waiter):
            heapq.heappush(self._deadlines, (time.monotonic() + limit, next(self._numbers), waiter))

    def _attempt(self, waiter: Waiter) -> bool:
        """Carry a request out and answer, or make it wait for the key that is missing."""
        try:
            reply, changed = self._table.apply(waiter.code, waiter.parts)
        except Missing as missing:
            self._waiters.setdefault(missing.key, []).append(waiter)
            return False
        except ValueError as error:
            self._answer(waiter, wire.REFUSED, [str(error).encode()])
            return True
        self._answer(waiter, wire.OK, reply)
        for key in changed:
            for other in self._waiters.pop(key, ()):
                if not other.is_done:
                    self._attempt(other)
        return True

    def _answer(self, waiter: Waiter, code: int, parts: list[bytes]) -> None:
        waiter.is_done = True
        waiter.peer.waiting = None
        self.send(waiter.peer, code, parts)

    def _expire(self, now: float) -> None:
        while self._deadlines and (self._deadlines[0][0] <= now or self._deadlines[0][2].is_done):
            waiter = heapq.heappop(self._deadlines)[2]
            if not waiter.is_done:
                self._answer(waiter, wire.TIMED_OUT, [])

    def fail_waiters(self, world: str, message: str) -> None:
        """Answer all waiting requests with the failure of a rank of a world."""
        self._pmi.fail(world)
        waiting, self._waiters = self._waiters, {}
        for waiters in waiting.values():
            for waiter in waiters:
                if not waiter.is_done:
                    self._answer(waiter, wire.JOB_FAILED, [message.encode()])

    def forget(self, prefix: str) -> None:
        """Remove the keys of a world that has ended."""
        start = prefix.encode()
        for keys in (self._table.values, self._table.queues):
            for key in [key for key in keys if key.startswith(start)]:
                del keys[key]
