"""Rendezvous of a job whose number of machines changes.

A machine that comes pushes an arrival to one queue of the store and waits for its assignment. The
host, which runs the store's server, takes the arrivals when an attempt starts. Who comes later
waits in the queue for the next attempt.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from ..errors import DistBackendError, DistError, DistStoreError, QueueEmptyError
from ..store import TCPStore
from .arguments import Settings
from .machines import Layout

#: Seconds between the host's looks for arrivals.
_LOOK = 0.05
#: Seconds for which a machine waits in one request for its assignment.
_WAIT = 60.0


@dataclass(frozen=True)
class Arrival:
    """A machine that wants to take part.

    Attributes
    ----------
    machine : int
        A number that no other machine of the job has had.
    number : int
        How often this machine has arrived.
    """

    machine: int
    number: int
    host: str
    processes: int


class JobIsOver(Exception):
    """The host has ended the job.

    Parameters
    ----------
    status : int
        The launcher's exit status.
    reason : str
        Why, in words; empty after a success.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Member:
    """The rendezvous for a machine that does not run the server.

    Parameters
    ----------
    store : TCPStore
        The job's.
    settings : Settings
        The command line's.
    machine : int
        This machine's number, which no other one of the job has had.
    """

    def __init__(self, store: TCPStore, settings: Settings, machine: int) -> None:
        self._store = store
        self._settings = settings
        self._machine = machine
        self._arrivals = 0

    def next_layout(self) -> Layout:
        """Arrive, and wait for a place in the next attempt.

        There is no time limit: a machine that comes late waits while the others work. The host ends
        the wait when the job ends, and a host that is lost closes the connection.

        Raises
        ------
        JobIsOver
            There is no next attempt.
        """
        self._arrivals += 1
        arrival = Arrival(self._machine, self._arrivals, socket.gethostname(), self._settings.processes)
        self._store.queue_push(_queue(self._settings), json.dumps(asdict(arrival)))
        key = _assignment(self._settings, arrival)
        while True:
            try:
                self._store.wait([key], timedelta(seconds=_WAIT))
                break
            except (DistStoreError, DistBackendError):
                continue  # the time of one request is over, or a rank of the running attempt has failed
        return _read(json.loads(self._store.get(key)))


class Host:
    """The rendezvous for the machine that runs the server.

    Parameters
    ----------
    store : TCPStore
        The job's.
    settings : Settings
        The command line's.
    machine : int
        This machine's number.
    connected : callable
        Returns the numbers of the other machines whose connections are up.
    """

    def __init__(self, store: TCPStore, settings: Settings, machine: int, connected: Callable[[], set[int]]) -> None:
        self._store = store
        self._settings = settings
        self._connected = connected
        self._own = Arrival(machine, 0, socket.gethostname(), settings.processes)
        self._waiting: list[Arrival] = []
        self._chosen: list[Arrival] = []
        self._attempt = -1

    def next_layout(self) -> Layout:
        """Wait for machines, and give each its place in the next attempt.

        The first attempt starts when MAX machines are there, or MIN when the last call is over.
        Later ones start when all machines that are connected are there, and at least MIN.

        Raises
        ------
        DistError
            Fewer than MIN machines came within the time limit.
        """
        self._attempt += 1
        found = self._gather()
        self._chosen, self._waiting = found[: self._settings.nodes], found[self._settings.nodes :]
        size = sum(arrival.processes for arrival in self._chosen)
        first, own = 0, None
        for node, arrival in enumerate(self._chosen):
            layout = Layout(self._attempt, node, len(self._chosen), first, size)
            first += arrival.processes
            if arrival is self._own:
                own = layout
            else:
                self._store.set(_assignment(self._settings, arrival), json.dumps(asdict(layout)))
        assert own is not None
        return own

    def _gather(self) -> list[Arrival]:
        """Return the machines that are there, this one first."""
        settings = self._settings
        start = time.monotonic()
        enough_since: float | None = None
        while True:
            self._take_arrivals()
            now = time.monotonic()
            connected = self._connected()
            found = [self._own, *(arrival for arrival in self._waiting if arrival.machine in connected)]
            if len(found) >= settings.nodes:
                return found
            if len(found) < settings.min_nodes:
                enough_since = None
            elif self._attempt and connected <= {arrival.machine for arrival in found}:
                return found
            elif enough_since is None:
                enough_since = now
            elif not self._attempt and now - enough_since >= settings.last_call_timeout:
                return found
            if now - start > settings.join_timeout:
                if len(found) >= settings.min_nodes:
                    return found
                raise DistError(
                    f"the rendezvous of the job {settings.run_id} timed out after {settings.join_timeout:g} s "
                    f"(--rdzv-conf join_timeout): {len(found)} machines are there, and --nnodes wants at least "
                    f"{settings.min_nodes}"
                )
            time.sleep(_LOOK)

    def _take_arrivals(self) -> None:
        while True:
            try:
                text = self._store.queue_pop(_queue(self._settings), block=False)
            except QueueEmptyError:
                return
            self._waiting.append(Arrival(**json.loads(text)))

    def lost(self) -> str | None:
        """Return the name of a machine of this attempt that has left, or None."""
        connected = self._connected()
        for arrival in self._chosen:
            if arrival is not self._own and arrival.machine not in connected:
                return arrival.host
        return None

    def close(self, status: int, reason: str) -> None:
        """Tell all machines that wait, or come back, that the job is over; wait until they have
        left, at most the time limit.
        """
        end = time.monotonic() + self._settings.close_timeout
        while self._connected() and time.monotonic() < end:
            self._take_arrivals()
            for arrival in self._waiting:
                self._store.set(_assignment(self._settings, arrival), json.dumps({"status": status, "reason": reason}))
            self._waiting.clear()
            time.sleep(_LOOK)


def _queue(settings: Settings) -> str:
    return f"{settings.run_id}/arrivals"


def _assignment(settings: Settings, arrival: Arrival) -> str:
    return f"{settings.run_id}/assignment/{arrival.machine}/{arrival.number}"


def _read(found: dict[str, Any]) -> Layout:
    if "status" in found:
        raise JobIsOver(found["status"], found["reason"])
    return Layout(**found)
