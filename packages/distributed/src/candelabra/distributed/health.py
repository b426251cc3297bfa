"""A rank's connection to the job's server: it reports what the rank does, and hears who has
failed.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from .errors import DistNetworkError
from .status_memory import Operation, StatusRecord, described
from .store import wire
from .store.addresses import process_space
from .store.client import Connection

#: Seconds between reports of what the rank does.
_BEAT = 0.05
#: Seconds for which a rank waits in a collective for one that has left the process group.
_PATIENCE = 2.0

#: Set by the launcher, which watches its processes.
WATCHED = "CANDELABRA_AGENT_PROCESS"


class Current:
    """What a rank is doing. The threads that call collectives write it, the health thread reads
    it.
    """

    __slots__ = ("_record", "finished", "operation")

    def __init__(self) -> None:
        self.operation: Operation | None = None
        #: The operation if it has ended.
        self.finished: Operation | None = None
        self._record = _record()

    def begin(self, operation: Operation) -> None:
        """Note that the rank is in an operation."""
        self.operation = operation
        if self._record is not None:
            self._record.begin(operation)

    def end(self, operation: Operation) -> None:
        """Note that an operation has ended."""
        self.finished = operation
        if self._record is not None and operation is self.operation:
            self._record.end()

    def report(self) -> list[Any]:
        """Return the report for the server: see `health_board.Activity`."""
        operation = self.operation
        if operation is None:
            return [False, -1, 0, ""]
        group, _, number, *_ = operation
        return [self.finished is not operation, group, number, described(operation)]


@cache
def _record() -> StatusRecord | None:
    """Return the process's record, which outlasts its process groups."""
    return StatusRecord.of_environment()


class HealthChannel:
    """The connection, and the thread that serves it.

    Parameters
    ----------
    host, port, token
        The server's address, and the job's token.
    world : str
        The name of the world, which is another one after each restart.
    rank : int
        This process's rank.
    current : Current
        What the rank does.
    on_failure : callable
        Called by the thread with the message, once.
    """

    def __init__(
        self,
        host: str,
        port: int,
        token: str,
        world: str,
        rank: int,
        current: Current,
        on_failure: Callable[[str], None],
    ) -> None:
        self.failure: str | None = None
        self._rank = rank
        self._current = current
        self._on_failure = on_failure
        self._left: dict[int, str] = {}
        self._left_at = 0.0
        self._states: dict[str, Any] | None = None
        self._answered = threading.Event()
        self._said_goodbye = threading.Event()
        self._is_closing = False
        self._process = os.getpid()
        details = {
            "world": world,
            "rank": rank,
            "process": self._process,
            "host": socket.gethostname(),
            "space": process_space(),
            "is_watched": WATCHED in os.environ,
        }
        self._connection = Connection(host, port, "health", [json.dumps(details).encode()], token, 30.0)
        self._sending = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="candelabra health", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        sent: Any = None
        try:
            while not self._is_closing:
                report = self._current.report()
                if report != sent:
                    self._send(wire.BEAT, [json.dumps(report).encode()])
                    sent = report
                while (found := self._connection.receive_within(_BEAT)) is not None:
                    self._take(*found)
                    if self._is_closing:
                        return
                self._look_for_the_left()
        except (DistNetworkError, OSError):
            if not self._is_closing and 0 not in self._left:
                self._fail("the job's server has ended: the launcher, or the process of rank 0 that ran it, is gone")
        finally:
            self._answered.set()
            self._said_goodbye.set()

    def _send(self, code: int, parts: list[bytes]) -> None:
        with self._sending:
            self._connection.send(code, parts)

    def _take(self, code: int, parts: list[bytes]) -> None:
        if code == wire.FAILED:
            self._fail(parts[0].decode())
        elif code == wire.LEFT:
            self._left[int(parts[0])] = parts[1].decode()
            self._left_at = time.monotonic()
        elif code == wire.JOINED:
            self._left.pop(int(parts[0]), None)
        elif code == wire.STATES:
            self._states = json.loads(parts[0])
            self._answered.set()
        elif code == wire.OK:
            self._said_goodbye.set()

    def _look_for_the_left(self) -> None:
        """Fail if this rank waits in a collective of all ranks, one of which has left."""
        operation = self._current.operation
        if (
            self._left
            and operation is not None
            and operation is not self._current.finished
            and operation[0] == 0
            and operation[3] not in ("send", "recv")
            and time.monotonic() - self._left_at > _PATIENCE
        ):
            named = ", ".join(self._left.values())
            self._fail(f"{named} left the process group without taking part in it")

    def _fail(self, message: str) -> None:
        if self.failure is None:
            self.failure = message
            self._on_failure(message)

    def states(self) -> dict[str, Any] | None:
        """Return what all ranks are doing, or None if the server does not answer within 2 s."""
        self._answered.clear()
        self._states = None
        with suppress(DistNetworkError):
            self._send(wire.STATES, [])
            self._answered.wait(2.0)
        return self._states

    def close(self) -> None:
        """Say good-bye, so that the end of the process is no failure, and close the connection."""
        if self._is_closing or os.getpid() != self._process:
            return
        if self.failure is None:
            with suppress(DistNetworkError):
                self._send(wire.BYE, [])
                self._said_goodbye.wait(2.0)
        self._is_closing = True
        self._connection.close()
        if threading.current_thread() is not self._thread:
            self._thread.join(2.0)
