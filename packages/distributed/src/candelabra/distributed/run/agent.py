"""The agent of one machine: it meets those of the others, starts the processes and watches them."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from datetime import timedelta
from types import FrameType

from ..errors import DistError, DistNetworkError
from ..health import WATCHED
from ..job import WORLD
from ..status_memory import VARIABLE, StatusMemory
from ..store import PrefixStore, TCPStore, wire
from ..store.client import Connection
from ..store.health_board import STOPPED, is_stopped, stopped_text
from ..store.pmi import kvs_name
from ..store.server import StoreServer
from .arguments import Settings
from .elastic import Host, JobIsOver, Member
from .machines import Layout, Machines
from .report import report
from .shared_memory import sweep
from .workers import Worker, Workers

#: Seconds in which the others may end by themselves after a failure, if --shutdown-timeout is not
#: less.
_GRACE = 5.0
#: Seconds between looks for failures that no process's end shows.
_LOOK = 1.0


class _Stopped(BaseException):
    """The launcher got a signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Agent:
    """The launcher's part on one machine.

    Parameters
    ----------
    settings : Settings
        The command line's.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._server: StoreServer | None = None
        self._channel: Connection | None = None
        self._store: TCPStore | None = None
        self._node = settings.node_rank
        self._failures: list[Worker] = []
        #: What the ranks are told: it is not always the end of a process.
        self._news: str | None = None
        self._world = ""
        self._status: StatusMemory | None = None
        #: Set if the number of machines changes.
        self._rendezvous: Host | Member | None = None

    def run(self) -> int:
        """Run the job; return the launcher's exit status."""
        before = {number: signal.signal(number, self._take_signal) for number in self._settings.signals}
        try:
            return self._run()
        except _Stopped as stopped:
            print(f"torchrun: ended by signal {stopped.number}", file=sys.stderr)
            return 128 + stopped.number
        except DistError as error:
            print(f"torchrun: {error}", file=sys.stderr)
            return 1
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self._close()

    def _take_signal(self, number: int, frame: FrameType | None) -> None:
        # A second signal must not interrupt the end that the first has started.
        for other in self._settings.signals:
            signal.signal(other, signal.SIG_IGN)
        raise _Stopped(number)

    def _run(self) -> int:
        self._meet()
        if isinstance(self._rendezvous, Member):
            return self._follow(self._rendezvous)
        status, reason = 1, f"it failed, and has started again {self._settings.max_restarts} times (--max-restarts)"
        try:
            status = self._lead()
        except DistError as error:
            reason = str(error)
            raise
        finally:
            # A host that is told to end does not wait for the others, which lose its server.
            if self._rendezvous is not None and not isinstance(sys.exception(), _Stopped):
                self._rendezvous.close(status, "" if status == 0 else reason)
        return status

    def _lead(self) -> int:
        """Run the attempts, and return the launcher's exit status."""
        for attempt in range(self._settings.max_restarts + 1):
            if self._attempt(self._layout(attempt)):
                return 0
            print(report(self._settings.script, self._failures, self._news), file=sys.stderr, flush=True)
            if attempt < self._settings.max_restarts:
                left = self._settings.max_restarts - attempt
                print(f"torchrun: the processes start again, {left} restarts are left", file=sys.stderr, flush=True)
        return 1

    def _follow(self, rendezvous: Member) -> int:
        """Take part in the attempts for which the host chooses this machine."""
        try:
            while not self._attempt(rendezvous.next_layout()):
                print(report(self._settings.script, self._failures, self._news), file=sys.stderr, flush=True)
        except JobIsOver as over:
            if over.reason:
                print(f"torchrun: the job {self._settings.run_id} is over: {over.reason}", file=sys.stderr)
            return over.status
        return 0

    # ---- other machines

    def _meet(self) -> None:
        settings = self._settings
        is_host = settings.is_host
        if is_host is not False:
            try:
                self._server = StoreServer(settings.host, settings.port, settings.token)
            except DistNetworkError:
                # With c10d, the machine that has the address is the host.
                if is_host:
                    raise
        port = settings.port if self._server is None else self._server.port
        limit = timedelta(seconds=settings.join_timeout)
        self._store = TCPStore(settings.host, port, timeout=limit, wait_for_workers=False, token=settings.token)
        settings.port = port
        if settings.nodes > 1:
            if self._node < 0:
                self._node = self._store.add(f"{settings.run_id}/machines", 1) - 1
                if self._node >= settings.nodes and not settings.is_elastic:
                    raise DistError(f"the job {settings.run_id} has its {settings.nodes} machines already")
            if self._server is None:
                details = [str(self._node).encode()]
                self._channel = Connection(settings.host, port, "agent", details, settings.token, settings.join_timeout)
        if settings.is_elastic:
            self._rendezvous = (
                Member(self._store, settings, self._node)
                if self._server is None
                else Host(self._store, settings, self._node, self._server.health.machines)
            )

    def _layout(self, attempt: int) -> Layout:
        """Return the ranks of an attempt, when the other machines are there."""
        settings = self._settings
        if self._rendezvous is not None:
            return self._rendezvous.next_layout()
        if settings.nodes == 1:
            return Layout(attempt, 0, 1, 0, settings.processes)
        assert self._store is not None
        store = PrefixStore(f"{settings.run_id}/attempt {attempt}", self._store)
        store.set(f"processes/{self._node}", str(settings.processes))
        counts = [int(count) for count in store.multi_get([f"processes/{node}" for node in range(settings.nodes)])]
        return Layout(attempt, self._node, settings.nodes, sum(counts[: self._node]), sum(counts))

    def _environment(self, layout: Layout, local_rank: int) -> dict[str, str]:
        settings = self._settings
        rank = layout.first_rank + local_rank
        environment = dict(os.environ)
        environment.update(
            {
                "LOCAL_RANK": str(local_rank),
                "RANK": str(rank),
                "GROUP_RANK": str(layout.node),
                "ROLE_RANK": str(rank),
                "ROLE_NAME": settings.role,
                "LOCAL_WORLD_SIZE": str(settings.processes),
                "WORLD_SIZE": str(layout.size),
                "GROUP_WORLD_SIZE": str(layout.nodes),
                "ROLE_WORLD_SIZE": str(layout.size),
                "MASTER_ADDR": settings.host,
                "MASTER_PORT": str(settings.port),
                "TORCHELASTIC_RESTART_COUNT": str(layout.attempt),
                "TORCHELASTIC_MAX_RESTARTS": str(settings.max_restarts),
                "TORCHELASTIC_RUN_ID": settings.run_id,
                "TORCHELASTIC_USE_AGENT_STORE": "True",
                "CANDELABRA_JOB_TOKEN": settings.token,
                WORLD: self._world,
                WATCHED: str(os.getpid()),
            }
        )
        if settings.processes > 1:
            # Processes that each use all cores are slower than with one thread each.
            environment.setdefault("OMP_NUM_THREADS", "1")
        return environment

    # ---- one attempt

    def _attempt(self, layout: Layout) -> bool:
        settings = self._settings
        self._failures.clear()
        self._news = None
        self._world = f"{settings.run_id}.{layout.attempt}"
        ranks = list(range(layout.first_rank, layout.first_rank + settings.processes))
        environments = [self._environment(layout, place) for place in range(settings.processes)]
        self._status = StatusMemory(settings.processes)
        for place, environment in enumerate(environments):
            environment[VARIABLE] = self._status.variable(place)
        workers = Workers(settings, environments, ranks, layout.attempt, self._status.descriptor)
        try:
            return self._watch(workers, layout)
        except _Stopped as stopped:
            workers.end(stopped.number, settings.shutdown_timeout)
            raise
        finally:
            workers.end(signal.SIGTERM, settings.shutdown_timeout)
            workers.close()
            self._status.close()
            self._status = None
            sweep(kvs_name(self._world, settings.token))

    def _watch(self, workers: Workers, layout: Layout) -> bool:
        others = None
        if layout.nodes > 1 and self._store is not None:
            name = f"{self._settings.run_id}/attempt {layout.attempt}"
            is_host = self._server is not None
            others = Machines(self._store, name, layout.nodes, self._settings.monitor_interval, is_host)
            if isinstance(self._rendezvous, Host):
                others.lost = self._rendezvous.lost
        while workers.running():
            self._look_for_stopped(workers)
            workers.wait(self._settings.monitor_interval if others else _LOOK, self._note_end)
            if self._server is not None and self._news is None:
                self._news = self._server.health.failure(self._world)
            if others is not None and self._news is None and (machine := others.lost()) is not None:
                self._news = f"the machine {machine} has left the job"
            has_failed = bool(self._failures) or self._news is not None
            if has_failed and others is not None:
                others.tell_failure()
            if has_failed or (others is not None and others.have_failed()):
                limit = min(_GRACE, self._settings.shutdown_timeout)
                workers.wait_for_all(limit, self._note_end)
                if others is not None:
                    others.end_after_failure(limit)
                return False
        return others is None or others.wait_for_end()

    def _look_for_stopped(self, workers: Workers) -> None:
        """Tell another machine's server which processes are stopped; it sees only its own."""
        if self._channel is None:
            return
        now = time.monotonic()
        for worker in workers.running():
            if not is_stopped(worker.process.pid):
                worker.stopped_since = None
            elif worker.stopped_since is None:
                worker.stopped_since = now
            elif now - worker.stopped_since >= STOPPED and self._news is None:
                self._news = f"rank {worker.rank} (process {worker.process.pid}) {stopped_text()}"
                self._report(worker, stopped_text())

    def _note_end(self, worker: Worker) -> None:
        if worker.status == 0:
            return
        if not worker.was_told_to_end:
            self._failures.append(worker)
        self._report(worker, worker.ending())

    def _report(self, worker: Worker, how: str) -> None:
        activity = self._status.read(worker.local_rank) if self._status is not None else None
        if self._server is not None:
            self._server.health.report_death(self._world, worker.rank, worker.process.pid, how, activity)
        elif self._channel is not None:
            parts = [self._world, str(worker.rank), str(worker.process.pid), how, json.dumps(activity)]
            self._channel.send(wire.DEATH, [part.encode() for part in parts])

    def _close(self) -> None:
        if self._channel is not None:
            self._channel.close()
        if self._store is not None:
            self._store.close()
        if self._server is not None:
            self._server.close()
