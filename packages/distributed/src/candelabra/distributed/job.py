"""This process's part in a job: the server it knows, its health channel and its engines."""

from __future__ import annotations

import atexit
import json
import os
import secrets
import socket
import threading
from contextlib import suppress
from datetime import timedelta
from typing import Any

from candelabra import device

from .engines import registry
from .engines.interface import Engine
from .errors import DistBackendError, DistStoreError
from .health import Current, HealthChannel
from .status_memory import Operation, described
from .store import PrefixStore, Store, TCPStore
from .store.addresses import host_identity
from .store.base import Deadline
from .store.client import Connection
from .store.server import StoreServer

#: Set by the launcher: the name under which it reports how processes have ended.
WORLD = "CANDELABRA_WORLD"
#: Seconds for which an error of an engine waits for the news of a rank that has failed.
_NEWS = 0.5
#: Seconds between looks for the failure of a rank while others are waited for.
_LOOK = 0.5
#: MPI starts once in a process. Later process groups use the same one.
_mpi_is_running = False


def base_store(store: Store) -> Store:
    """Return the store below all prefixes."""
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    return store


def own_address() -> str:
    """Return an address by which other machines reach this one, or the loopback address."""
    with suppress(OSError):
        return socket.gethostbyname(socket.gethostname())
    return "127.0.0.1"


class Job:
    """This process's part in a job.

    Parameters
    ----------
    store : Store
        By which the ranks meet; with the prefix of this initialization.
    rank, size : int
        This process's number, and the number of processes.
    is_alone : bool
        No other process is met: the engine simulates them.
    """

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta, is_alone: bool) -> None:
        self.store = store
        self.rank = rank
        self.size = size
        self.current = Current()
        self.failure: str | None = None
        self.health: HealthChannel | None = None
        self._server: StoreServer | None = None
        self._engines: dict[str, Engine] = {}
        self._lock = threading.RLock()
        self._news = threading.Event()
        self._address: tuple[str, int, str] | None = None
        self._world = ""
        self._is_closed = False
        self._timeout = timeout
        #: MPI is started by the variables of a foreign launcher.
        self.has_foreign_manager = False
        if not is_alone:
            self._meet(timeout)

    def _meet(self, timeout: timedelta) -> None:
        base = base_store(self.store)
        if isinstance(base, TCPStore):
            self._address = (base.host, base.port, base.token)
        elif self.rank == 0:
            token = secrets.token_hex(16)
            host = own_address()
            self._server = StoreServer(host, 0, token)
            self._address = (host, self._server.port, token)
            self.store.set("server", json.dumps(self._address))
        else:
            host, port, token = json.loads(self.store.get("server"))
            self._address = (host, port, token)
        if world := os.environ.get(WORLD):
            self._world = world
        elif self.rank == 0:
            self._world = secrets.token_hex(8)
            self.store.set("world", self._world)
        else:
            self._world = self.store.get("world").decode()
        host, port, token = self._address
        self.health = HealthChannel(host, port, token, self._world, self.rank, self.current, self._fail)

    def engine(self, name: str, where: device) -> Engine:
        """Return the engine for a backend's name, started on first use. All ranks must call it."""
        with self._lock:
            if name not in self._engines:
                engine = registry.engine_of(name)
                if self.failure is not None:
                    raise DistBackendError(self.failure)
                self._start(engine, where)
                self._engines[name] = engine
                if self.failure is not None:
                    engine.fail(self.failure)
            return self._engines[name]

    def _start(self, engine: Engine, where: device) -> None:
        global _mpi_is_running
        if self.has_foreign_manager or self._address is None or engine.name != "mpi" or _mpi_is_running:
            engine.start(self.rank, self.size, None if self.has_foreign_manager else {}, where)
            return
        self._meet_before_start(engine.name)
        host, port, token = self._address
        details = [self._world, str(self.size), str(self.rank), host_identity()]
        connection = Connection(host, port, "pmi", [part.encode() for part in details], token, 30.0)
        connection.socket.settimeout(None)
        variables = {
            # MPI owns the connection from now on, and uses it until the process ends.
            "PMI_FD": str(connection.socket.detach()),
            "PMI_RANK": str(self.rank),
            "PMI_SIZE": str(self.size),
        }
        foreign = [name for name in os.environ if name.startswith(("PMI_", "PMIX_"))]
        kept = {name: os.environ.pop(name) for name in foreign}
        try:
            engine.start(self.rank, self.size, variables, where)
        except (RuntimeError, TimeoutError) as error:
            raise self.explained(error, "the start of mpi") from self.cause(error)
        finally:
            os.environ.update(kept)
        _mpi_is_running = True
        # Called before the handler by which the engine finalizes MPI.
        atexit.register(self._leave_without_finalizing, engine)

    def _meet_before_start(self, name: str) -> None:
        """Wait for all ranks: in MPI_Init, a rank could not be told that another one has failed."""
        if self.store.add(f"{name}/arrived", 1) == self.size:
            self.store.set(f"{name}/all", b"")
        deadline = Deadline(self._timeout.total_seconds())
        while self.failure is None:
            try:
                self.store.wait([f"{name}/all"], timedelta(seconds=min(_LOOK, deadline.left())))
                return
            except DistBackendError:
                self._news.wait(_NEWS)
            except DistStoreError:
                if not deadline.left():
                    raise DistBackendError(
                        f"the start of {name} on rank {self.rank}: after {self._timeout.total_seconds():g} s, "
                        f"{self.store.add(f'{name}/arrived', 0)} of {self.size} ranks are there"
                    ) from None
        raise DistBackendError(f"the start of {name} on rank {self.rank}: {self.failure}")

    def _leave_without_finalizing(self, engine: Engine) -> None:
        """Keep a process that ends by an exception from waiting in MPI_Finalize for ranks that wait
        for it.
        """
        if not self._is_closed:
            engine.fail("the process ends")

    def _fail(self, message: str) -> None:
        """Take the news that a rank has failed; called by the health thread."""
        self.failure = message
        self._news.set()
        for engine in list(self._engines.values()):
            engine.fail(message)

    def cause(self, error: Exception) -> Exception | None:
        """Return the error of an engine if it says more than that a rank has failed."""
        return error if self.failure is None else None

    def explained(self, error: Exception, what: str) -> RuntimeError:
        """Return the error that a program gets for one of an engine."""
        if isinstance(error, NotImplementedError):
            return NotImplementedError(f"{what}: {error}")
        start = f"{what} on rank {self.rank}: "
        if self.health is not None and not isinstance(error, TimeoutError):
            self._news.wait(_NEWS)  # the engine may notice the end of a rank before the news of it
        if self.failure is not None:
            return DistBackendError(start + self.failure)
        if isinstance(error, TimeoutError):
            return DistBackendError(f"{start}{error}{self._who_is_missing()}")
        return DistBackendError(f"{start}{error}")

    def _who_is_missing(self) -> str:
        """Return which ranks are not in the same collective as this one."""
        states = self.health.states() if self.health is not None else None
        own = self.current.operation
        if states is None or own is None:
            return ""
        return missing_text(states, own, self.rank)

    def close(self) -> None:
        """Leave the job."""
        self._is_closed = True
        for engine in self._engines.values():
            engine.stop()
        if self.health is not None:
            self.health.close()
        if self._server is not None:
            # MPI asks it once more at the end of the process.
            atexit.register(self._server.close)


def missing_text(states: dict[str, Any], own: Operation, own_rank: int) -> str:
    """Return which ranks are elsewhere than this one, as the end of a message."""
    text = described(own)
    others = []
    for rank, (named, is_inside, group, number, activity) in sorted(
        states["activities"].items(), key=lambda i: int(i[0])
    ):
        if int(rank) == own_rank or (is_inside and activity == text):
            continue
        if is_inside and group == own[0] and number == own[2]:
            others.append(f"{named} is in {activity} instead")
        elif is_inside:
            others.append(f"{named} is in {activity}")
        elif activity:
            others.append(f"{named} is not in a collective; its last one was {activity}")
        else:
            others.append(f"{named} has called no collective yet")
    others.extend(f"{named} has left the process group" for _, named in sorted(states["left"].items()))
    return "; " + "; ".join(others) if others else ""
