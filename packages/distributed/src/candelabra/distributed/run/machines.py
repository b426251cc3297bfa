"""What the machines of a job tell one another by the store during an attempt."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import DistError
from ..store import PrefixStore, Store


@dataclass(frozen=True)
class Layout:
    """The ranks of one attempt, and this machine's part of them.

    Attributes
    ----------
    attempt : int
        How often the job has started again.
    node, nodes : int
        This machine's number, and the number of machines.
    first_rank : int
        The rank of this machine's first process.
    size : int
        The number of all processes.
    """

    attempt: int
    node: int
    nodes: int
    first_rank: int
    size: int


class Machines:
    """News of the other machines.

    Parameters
    ----------
    store : Store
        The job's.
    name : str
        The name of the attempt, which no other attempt of the job has.
    nodes : int
        The number of machines.
    interval : float
        Seconds between looks.
    is_host : bool
        Whether this machine runs the server.
    lost : callable
        Returns the name of a machine that has left the job, or None; only the host knows.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        nodes: int,
        interval: float,
        is_host: bool,
        lost: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._store = PrefixStore(name, store)
        self._nodes = nodes
        self._interval = interval
        self._is_host = is_host
        self.lost = lost

    def tell_failure(self) -> None:
        """Tell that a process of this machine has failed."""
        self._store.set("failed", socket.gethostname())

    def have_failed(self) -> bool:
        """Return whether a process of any machine has failed."""
        return self._store.check(["failed"])

    def end_after_failure(self, limit: float) -> None:
        """Tell that the processes of this machine have ended after a failure.

        The host waits at most `limit` seconds for the other machines: their processes read from its
        server why they are ended.
        """
        pause, last = threading.Event(), time.monotonic() + limit
        # A host that is gone waits for no one, and this machine reports its failures all the same.
        with contextlib.suppress(DistError):
            over = self._store.add("over", 1)
            while self._is_host and over < self._nodes and self.lost() is None and time.monotonic() < last:
                pause.wait(self._interval)
                over = self._store.add("over", 0)

    def wait_for_end(self) -> bool:
        """Wait until the processes of all machines have ended; return whether none has failed."""
        ended = self._store.add("ended", 1)
        pause = threading.Event()
        while ended < self._nodes:
            if self.have_failed():
                return False
            pause.wait(self._interval)
            ended = self._store.add("ended", 0)
            if ended < self._nodes and self.lost() is not None:
                self.tell_failure()
        seen = self._store.add("seen", 1)
        # The host's server must have answered all before it closes.
        while self._is_host and seen < self._nodes and self.lost() is None:
            pause.wait(self._interval)
            seen = self._store.add("seen", 0)
        return True
