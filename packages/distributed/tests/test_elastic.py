"""Test jobs whose number of machines changes: a launcher for each machine, on this one."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from programs import PRELUDE, environment

from candelabra.distributed import DistError
from candelabra.distributed.run import elastic
from candelabra.distributed.run.arguments import read_arguments
from candelabra.distributed.run.elastic import Host, JobIsOver, Member
from candelabra.distributed.run.machines import Machines
from candelabra.distributed.store import TCPStore


class Machine:
    """A launcher, whose output is in files."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.out, self.errors = folder / "out", folder / "errors"
        folder.mkdir()
        with self.out.open("w") as out, self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=errors, stdin=subprocess.DEVNULL, env=environment(), start_new_session=True
            )

    def end(self) -> tuple[int, str, str]:
        status = self.process.wait(60)
        return status, self.out.read_text(), self.errors.read_text()


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Callable[..., list[Machine]]]:
    """Start a job: machines(program, count, *options); the first machine is the host."""
    started: list[Machine] = []

    def run(program: str, count: int, *options: str, processes: int = 1, conf: str = "") -> list[Machine]:
        script = tmp_path / "program.py"
        script.write_text(PRELUDE + program)
        for attempt in range(10):
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            made = []
            for number in range(count):
                details = f"is_host={int(number == 0)},{conf}"
                command = [
                    sys.executable, "-m", "candelabra.distributed.run", "--rdzv-backend", "c10d", "--rdzv-id", "job",
                    "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-conf", details.rstrip(","),
                    "--nproc-per-node", str(processes), *options, str(script), str(tmp_path),
                ]  # fmt: skip
                made.append(Machine(command, tmp_path / f"{attempt}-{number}"))
                started.append(made[-1])
            if made[0].process.poll() is None or "which is in use" not in made[0].errors.read_text():
                return made
        raise AssertionError("no free port")

    yield run
    for machine in started:
        if machine.process.poll() is None:
            machine.process.kill()
            machine.process.wait()


TRAIN = """
attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
dist.init_process_group("cpu:reference")
x = candelabra.ones(1)
dist.all_reduce(x)
line("attempt", attempt, "sum", x.item(), "machines", os.environ["GROUP_WORLD_SIZE"])
dist.barrier()  # every rank has written its line before a machine is lost
"""


def test_a_lost_machine_restarts_the_job_with_the_others(machines):
    """The last machine is lost with its launcher, and its ranks."""
    program = (
        TRAIN
        + """
if attempt == "0" and os.environ["GROUP_RANK"] == "2":
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)
dist.barrier()
"""
    )
    found = [machine.end() for machine in machines(program, 3, "--nnodes", "2:3", "--max-restarts", "1")]
    statuses = sorted(status for status, _, _ in found)
    assert statuses == [-9, 0, 0], found
    lines = sorted(line for _, out, _ in found for line in out.splitlines())
    assert lines == ["attempt 0 sum 3.0 machines 3"] * 3 + ["attempt 1 sum 2.0 machines 2"] * 2
    assert "1 restarts are left" in found[0][2] and "First failure: " in found[0][2]


def test_a_late_machine_joins_at_the_next_start(machines, tmp_path):
    """MAX is 2: the third machine waits until another one is lost."""
    program = (
        TRAIN
        + """
if attempt == "0" and os.environ["GROUP_RANK"] == "1":
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)
dist.barrier()
"""
    )
    found = [machine.end() for machine in machines(program, 3, "--nnodes", "1:2", "--max-restarts", "1")]
    assert sorted(status for status, _, _ in found) == [-9, 0, 0], found
    lines = sorted(line for _, out, _ in found for line in out.splitlines())
    # The one that has waited may still connect when the host starts again.
    assert lines[:2] == ["attempt 0 sum 2.0 machines 2"] * 2
    assert lines[2:] in (["attempt 1 sum 2.0 machines 2"] * 2, ["attempt 1 sum 1.0 machines 1"])


def test_failures_use_the_restarts_up(machines):
    program = TRAIN + "if dist.get_rank() == 1: sys.exit(3)\ndist.barrier()\n"
    found = [machine.end() for machine in machines(program, 2, "--nnodes", "1:2", "--max-restarts", "1", processes=2)]
    assert [status for status, _, _ in found] == [1, 1], found
    lines = sorted(line for _, out, _ in found for line in out.splitlines())
    assert lines == ["attempt 0 sum 4.0 machines 2"] * 4 + ["attempt 1 sum 4.0 machines 2"] * 4
    assert "exitcode  : 3" in found[0][2] + found[1][2]
    assert "the job job is over: it failed, and has started again 1 times (--max-restarts)" in found[1][2]


def test_too_few_machines(machines):
    (machine,) = machines("", 1, "--nnodes", "2:3", conf="join_timeout=0.5")
    status, _, errors = machine.end()
    assert status == 1 and "Traceback" not in errors
    assert "timed out after 0.5 s (--rdzv-conf join_timeout): 1 machines are there" in errors
    assert "--nnodes wants at least 2" in errors


# ---- the rendezvous alone


class Rendezvous:
    """A host and members in one process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, nodes: str, **settings: float) -> None:
        monkeypatch.setattr(elastic, "_LOOK", 0.001)
        self.settings = read_arguments(["--nnodes", nodes, "--rdzv-backend", "c10d", "--rdzv-id", "job", "x.py"])
        for name, value in settings.items():
            setattr(self.settings, name, value)
        self.store = TCPStore("127.0.0.1", 0, is_master=True, token="t")
        self.connected: set[int] = set()
        self.host = Host(self.store, self.settings, 7, lambda: self.connected)

    def arrive(self, machine: int, number: int = 1, processes: int = 1) -> None:
        self.connected.add(machine)
        arrival = {"machine": machine, "number": number, "host": f"m{machine}", "processes": processes}
        self.store.queue_push("job/arrivals", elastic.json.dumps(arrival))

    def told(self, machine: int, number: int = 1):
        return elastic._read(elastic.json.loads(self.store.get(f"job/assignment/{machine}/{number}")))


def test_numbers_of_ranks(monkeypatch):
    meeting = Rendezvous(monkeypatch, "1:3")
    meeting.settings.processes = 2
    meeting.host = Host(meeting.store, meeting.settings, 7, lambda: meeting.connected)
    meeting.arrive(3, processes=4)
    meeting.arrive(5)
    meeting.arrive(9)  # one too many
    own = meeting.host.next_layout()
    assert (own.attempt, own.node, own.nodes, own.first_rank, own.size) == (0, 0, 3, 0, 7)
    first, second = meeting.told(3), meeting.told(5)
    assert (first.node, first.first_rank, first.size) == (1, 2, 7)
    assert (second.node, second.first_rank, second.size) == (2, 6, 7)
    assert not meeting.store.check(["job/assignment/9/1"])


def test_a_spare_machine_takes_the_place_of_a_lost_one(monkeypatch):
    meeting = Rendezvous(monkeypatch, "1:2")
    meeting.arrive(1)
    meeting.arrive(2)
    assert meeting.host.next_layout().nodes == 2 and meeting.host.lost() is None
    meeting.connected.remove(1)
    assert meeting.host.lost() == "m1"
    own = meeting.host.next_layout()
    assert (own.attempt, own.nodes) == (1, 2) and meeting.told(2).node == 1


def test_a_restart_waits_for_the_machines_that_are_connected(monkeypatch):
    """A machine that still ends its processes arrives later than the host."""
    meeting = Rendezvous(monkeypatch, "1:3", last_call_timeout=0.001)
    meeting.arrive(1)
    meeting.host._connected = lambda: {1}
    assert meeting.host.next_layout().nodes == 2
    looks = []

    def connected():
        looks.append(None)
        if len(looks) == 3:
            meeting.arrive(1, 2)
        return {1}

    meeting.host._connected = connected
    assert meeting.host.next_layout().nodes == 2 and len(looks) >= 4


def test_the_last_call(monkeypatch):
    meeting = Rendezvous(monkeypatch, "1:3", last_call_timeout=0.01)
    assert meeting.host.next_layout().nodes == 1
    meeting = Rendezvous(monkeypatch, "2:3", join_timeout=0.01)
    with pytest.raises(DistError, match="timed out after 0.01 s"):
        meeting.host.next_layout()


def test_who_waits_is_told_that_the_job_is_over(monkeypatch):
    meeting = Rendezvous(monkeypatch, "1:2", last_call_timeout=0.001)
    meeting.host.next_layout()
    meeting.arrive(4)
    member = Member(meeting.store.clone(), meeting.settings, 4)
    meeting.settings.close_timeout = 0.01
    meeting.host.close(1, "it failed")
    with pytest.raises(JobIsOver, match="it failed") as over:
        member.next_layout()
    assert over.value.status == 1


def test_a_member_waits_on_after_a_failure_of_the_running_attempt(monkeypatch):
    meeting = Rendezvous(monkeypatch, "1:2")
    waits = []

    class Store:
        def wait(self, keys: list[str], timeout: timedelta) -> None:
            waits.append(keys)
            if len(waits) == 1:
                raise elastic.DistBackendError("rank 1 was killed")
            if len(waits) == 2:
                raise elastic.DistStoreError("wait timeout")

        def queue_push(self, key: str, value: str) -> None:
            pass

        def get(self, key: str) -> str:
            return '{"status": 0, "reason": ""}'

    with pytest.raises(JobIsOver) as over:
        Member(Store(), meeting.settings, 1).next_layout()
    assert over.value.status == 0 and waits == [["job/assignment/1/1"]] * 3


def test_a_machine_that_is_lost_at_the_end_fails_the_attempt():
    store = TCPStore("127.0.0.1", 0, is_master=True, token="t")
    others = Machines(store, "job/attempt 0", 2, 0.001, True, lambda: "m1")
    assert not others.wait_for_end() and others.have_failed()


def test_connections_of_launchers_are_known():
    store = TCPStore("127.0.0.1", 0, is_master=True, token="t")
    health = store.server.health
    peer = SimpleNamespace(state=None, kind="agent")
    health.greet(peer, "agent", [b"3"])
    assert health.machines() == {3}
    health.lost(peer)
    assert health.machines() == set()
