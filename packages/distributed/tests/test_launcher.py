"""Test the launcher: arguments, environment, logs, restarts and what is left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from programs import environment

from candelabra.distributed.run import agent
from candelabra.distributed.run.arguments import read_arguments
from candelabra.distributed.run.shared_memory import sweep
from candelabra.distributed.run.workers import Worker
from candelabra.distributed.store import wire

PLAIN = "import os, sys, time\n"


def test_environment_and_output(job):
    program = """
    names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK TORCHELASTIC_RESTART_COUNT OMP_NUM_THREADS ROLE_NAME".split()
    line("env", *(os.environ[name] for name in names), dist.is_torchelastic_launched(), dist.get_node_local_rank(), sys.argv[1:])
    """
    result = job(program, 2, arguments=("--lr", "3"))
    assert result.status == 0, result.errors
    assert result.lines("env") == [
        "0 0 2 2 0 0 1 default True 0 ['--lr', '3']",
        "1 1 2 2 0 0 1 default True 1 ['--lr', '3']",
    ]


def test_two_jobs_at_once(job, tmp_path):
    program = """
    dist.init_process_group("cpu:reference"); x = candelabra.ones(1)
    for _ in range(20): dist.all_reduce(x); x.fill_(1)
    dist.all_reduce(x); line("sum", x.item())
    """
    with ThreadPoolExecutor() as pool:
        one, two = pool.map(lambda processes: job(program, processes), (1, 2))
    assert one.lines("sum") == ["1.0"], one.errors
    assert two.lines("sum") == ["2.0", "2.0"], two.errors


def test_restart(job, tmp_path):
    program = """
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    dist.init_process_group("cpu:reference"); x = candelabra.ones(1); dist.all_reduce(x)
    if attempt == 0 and dist.get_rank() == 1: os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(x); line("attempt", attempt, x.item())
    """
    result = job(program, 2, "--max-restarts", "2")
    assert result.status == 0 and result.lines("attempt") == ["1 4.0", "1 4.0"], result.errors
    assert "signal    : 9 (SIGKILL)" in result.errors and "2 restarts are left" in result.errors


def test_logs(job, tmp_path):
    program = """
    line("out", os.environ["RANK"]); print("err", os.environ["RANK"], file=sys.stderr)
    """
    result = job(
        program, 2, "--log-dir", str(tmp_path / "logs"), "--rdzv-id", "name", "--redirects", "0:3,1:0", "--tee", "1:1"
    )
    folder = tmp_path / "logs" / "name" / "attempt_0"
    assert (folder / "0" / "stdout.log").read_text() == "out 0\n" and (
        folder / "0" / "stderr.log"
    ).read_text() == "err 0\n"
    assert (folder / "1" / "stdout.log").read_text() == "out 1\n"
    assert result.out == "[default1]:out 1\n" and "err 1" in result.errors and "err 0" not in result.errors


def test_the_log_of_a_redirected_failure_is_shown(job, tmp_path):
    result = job("raise ValueError('seven')", 1, "--log-dir", str(tmp_path), "-r", "3")
    assert result.status == 1 and "ValueError: seven" in result.errors[result.errors.index("Root cause") :]


def start(script: Path, *options: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "candelabra.distributed.run", *options, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment(), **variables},
    )


def exists(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(processes: list[int]) -> bool:
    end = time.monotonic() + 30
    while any(map(exists, processes)) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(map(exists, processes))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_no_process_is_left(tmp_path, number):
    """The ranks start processes of their own; all end with the launcher, however it ends."""
    script = tmp_path / "program.py"
    script.write_text(
        PLAIN
        + "import subprocess\n"
        + "child = subprocess.Popen(['sleep', '100'])\n"
        + "print(os.getpid(), child.pid, flush=True)\ntime.sleep(100)\n"
    )
    launcher = start(script, "--nproc-per-node", "2")
    lines = [launcher.stdout.readline().split() for _ in range(2)]
    ranks = [int(line[0]) for line in lines]
    children = [int(line[1]) for line in lines]
    launcher.send_signal(number)
    launcher.wait(timeout=60)
    assert launcher.returncode == (-9 if number == signal.SIGKILL else 128 + number)
    assert gone(ranks)
    if number != signal.SIGKILL:
        assert gone(children)
    for child in children:
        if exists(child):
            os.kill(child, signal.SIGKILL)
    launcher.communicate(timeout=20)


def test_others_are_ended_after_a_failure(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        PLAIN + "if os.environ['RANK'] == '0': sys.exit(7)\nprint(os.getpid(), flush=True)\ntime.sleep(100)\n"
    )
    launcher = start(script, "--nproc-per-node", "2", "--shutdown-timeout", "1")
    process = int(launcher.stdout.readline())
    _, errors = launcher.communicate(timeout=30)
    assert launcher.returncode == 1 and gone([process])
    assert "exitcode  : 7" in errors and "Other failures" not in errors


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


@pytest.mark.parametrize("kind", ["static", "c10d"])
def test_two_machines(tmp_path, kind):
    script = tmp_path / "program.py"
    script.write_text(
        PLAIN + f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import candelabra, candelabra.distributed as dist, store_engine\nstore_engine.add()\n"
        "dist.init_process_group('cpu:reference'); x = candelabra.ones(1); dist.all_reduce(x)\n"
        "sys.stdout.write(f\"{os.environ['RANK']} {os.environ['LOCAL_RANK']} {x.item()}\\n\")\n"
        "dist.barrier()\n"  # every rank has written its line before one is killed
        "if os.environ['MODE'] == 'kill' and dist.get_rank() == 0: os.kill(os.getpid(), 9)\n"
        "dist.barrier()\n"
    )
    modes = ("ok", "kill") if kind == "static" else ("ok",)
    for mode in modes:
        for _ in range(3):
            machines, ends = two_machines(script, kind, mode)
            if not any("which is in use" in errors for _, errors in ends):  # another process took the port
                break
        lines = sorted("".join(out for out, _ in ends).splitlines())
        assert [line.split()[0] for line in lines] == ["0", "1", "2"] and lines[0].endswith(" 3.0"), ends
        assert [machine.returncode for machine in machines] == ([0, 0] if mode == "ok" else [1, 1]), ends
        if mode == "kill":
            assert "was killed by signal 9" in "".join(errors for _, errors in ends), ends


def two_machines(script, kind, mode):
    """Start a launcher for each of two machines; return them, and what they have printed."""
    port = free_port()
    if kind == "static":
        options = [
            ["--node-rank", str(node), "--master-addr", "127.0.0.1", "--master-port", str(port)] for node in range(2)
        ]
    else:
        options = [["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "job"]] * 2
    machines = [
        start(script, "--nnodes", "2", "--nproc-per-node", str(node + 1), *options[node], MODE=mode)
        for node in range(2)
    ]
    ends: list[tuple[str, str]] = []
    try:
        for machine in machines:
            ends.append(machine.communicate(timeout=10 if any("in use" in each for _, each in ends) else 100))
    except subprocess.TimeoutExpired:  # it waits for the machine that has no port
        for machine in machines:
            machine.kill()
        ends += [machine.communicate() for machine in machines[len(ends) :]]
    return machines, ends


def test_a_taken_port_is_named(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PLAIN)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        launcher = start(script, "--master-port", str(taken.getsockname()[1]))
        _, errors = launcher.communicate(timeout=30)
    assert launcher.returncode == 1 and "which is in use" in errors and "Traceback" not in errors


def test_arguments(monkeypatch):
    found = read_arguments(
        ["--nnodes", "2", "--nproc_per_node=3", "--node-rank", "1", "--master-port", "7", "-m", "package.train", "-x"]
    )
    assert (found.nodes, found.processes, found.node_rank, found.port, found.is_host) == (2, 3, 1, 7, False)
    assert found.command[1:] == ["-u", "-m", "package.train", "-x"]
    assert read_arguments(["--no-python", "tool", "--nnodes", "9"]).command == ["tool", "--nnodes", "9"]
    assert read_arguments(["--standalone", "--nproc-per-node", "cpu", "x.py"]).processes == len(os.sched_getaffinity(0))
    elastic = read_arguments(["--nnodes", "2:5", "--rdzv-backend", "c10d", "--rdzv-id", "job", "x.py"])
    assert (elastic.min_nodes, elastic.nodes, elastic.is_elastic, elastic.run_id) == (2, 5, True, "job")
    assert not read_arguments(["--nnodes", "2:2", "x.py"]).is_elastic
    monkeypatch.setenv("PET_NPROC_PER_NODE", "5")
    assert read_arguments(["x.py"]).processes == 5
    first, second = (read_arguments(["--nnodes", "2", "--rdzv-id", "job", "x.py"]).token for _ in range(2))
    assert first == second != read_arguments(["x.py"]).token


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nnodes", "1:2"], "a number of machines that changes needs --rdzv-backend c10d"),
        (["--nnodes", "1:2", "--standalone"], "for one machine"),
        (["--rdzv-conf", "join_timeout=soon"], "join_timeout must be a positive number of seconds, but is soon"),
        (["--rdzv-conf", "last_call_timeout=-1"], "last_call_timeout must be a positive number"),
        (["--nnodes", "2:1"], "must be a number or MIN:MAX"),
        (["--nnodes", "2", "--standalone"], "for one machine"),
        (["--nproc-per-node", "0"], "must be positive"),
        (["--nproc-per-node", "some"], "must be a number, auto, cpu or gpu"),
        (["--node-rank", "1"], "must be below the number of machines"),
        (["--rdzv-backend", "etcd"], "must be static or c10d"),
        (["--numa-binding", "node"], "--numa-binding is not supported"),
        (["--redirects", "5"], "--redirects must be"),
        (["--signals-to-handle", "SIGNOTHING"], "no signal SIGNOTHING"),
        (["--max-restarts", "-1"], "must not be negative"),
    ],
)
def test_wrong_arguments(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        read_arguments([*arguments, "x.py"])
    assert ended.value.code == 2 and message in capsys.readouterr().err


def test_shared_memory_of_dead_processes_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("candelabra.distributed.run.shared_memory._FOLDER", tmp_path)
    for name in ("mpich_shm_235ad580_0", "mpich_shm_235ad580_1", "mpich_shm_235ad581_0"):
        (tmp_path / name).write_text("")
    sweep("candelabra")  # the hash that MPICH has been seen to make of this name
    assert [file.name for file in tmp_path.iterdir()] == ["mpich_shm_235ad581_0"]


def test_a_machine_reports_its_stopped_process_to_the_server(monkeypatch):
    """The server sees the processes of its own machine only."""
    monkeypatch.setattr(agent, "STOPPED", 0.0)
    sent = []
    made = agent.Agent(read_arguments(["x.py"]))
    made._world = "job.0"
    made._channel = SimpleNamespace(send=lambda code, parts: sent.append((code, parts)))
    with subprocess.Popen(["sleep", "100"]) as process:
        worker = Worker(3, 0, process, -1)
        workers = SimpleNamespace(running=lambda: [worker])
        made._look_for_stopped(workers)
        assert not sent
        process.send_signal(signal.SIGSTOP)
        end = time.monotonic() + 10
        while not sent and time.monotonic() < end:
            made._look_for_stopped(workers)
        made._look_for_stopped(workers)
        process.kill()
    ((code, parts),) = sent
    assert code == wire.DEATH and parts[:3] == [b"job.0", b"3", str(process.pid).encode()]
    assert parts[3].startswith(b"was stopped and has not gone on for") and parts[4] == b"null"
