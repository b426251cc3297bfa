"""Test what the others get when a rank dies, stops, is absent or calls something else."""

from __future__ import annotations

import pytest

LOOP = """
rank = dist.get_rank()
x = candelabra.ones(5)
def go_on():
    while True: dist.all_reduce(x)
def told(call, kind=dist.DistBackendError):
    text = raised(kind, call)
    line("told", time.time() - float(open(sys.argv[1]).read()), text)
def mark():
    open(sys.argv[1], "w").write(repr(time.time()))
"""


def told(result, count):
    lines = result.lines("told")
    assert len(lines) == count, result.out + result.errors
    return [(float(line.split(" ")[0]), line.split(" ", 1)[1]) for line in lines]


def test_a_killed_rank_is_named_by_all_others(job, tmp_path):
    program = (
        """
    dist.init_process_group("cpu:reference")
    """
        + LOOP.replace("\n", "\n    ")
        + """
    for _ in range(5): dist.all_reduce(x)
    if rank == 1:
        time.sleep(0.2)
        line("process", os.getpid())
        mark(); os.kill(os.getpid(), signal.SIGKILL)
    told(go_on)
    text = raised(dist.DistBackendError, dist.barrier)
    assert "was killed by signal 9" in text
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), wait_for_workers=False)
    sys.exit(4)
    """
    )
    result = job(program, 3, arguments=(str(tmp_path / "mark"),))
    (process,) = result.lines("process")
    for seconds, text in told(result, 2):
        assert seconds < 10  # milliseconds, unless the machine stands still
        assert text.startswith("all_reduce(float32 5) (number 6) on rank ")
        assert (
            f"rank 1 (process {process}) was killed by signal 9; its last collective was all_reduce(float32 5) (number 5)"
            in text
        )
    assert result.status == 1
    report = result.errors[result.errors.rindex("Root cause") :]
    assert f"exitcode  : -9 (pid: {process})" in report and "signal    : 9 (SIGKILL)" in report
    assert report.index("rank      : 1") < report.index("Other failures") < report.index("exitcode  : 4")


@pytest.mark.parametrize("phase", ["before-joining", "in-a-store", "by-exception", "by-exit", "leaves"])
def test_phases(job, tmp_path, phase):
    program = (
        """
    rank = int(os.environ["RANK"])
    phase = sys.argv[2]
    if phase == "before-joining" and rank == 1:
        open(sys.argv[1], "w").write(repr(time.time())); os.kill(os.getpid(), signal.SIGKILL)
    def start(): dist.init_process_group("cpu:reference"); dist.all_reduce(candelabra.ones(1))
    if phase == "before-joining":
        open(sys.argv[1], "a").write("")
        text = raised(dist.DistBackendError, start); line("told", 0, text); sys.exit(0)
    start()
    """
        + LOOP.replace("\n", "\n    ")
        + """
    if rank == 1:
        time.sleep(0.2)
        mark()
        if phase == "in-a-store": os.kill(os.getpid(), signal.SIGTERM)
        if phase == "by-exception": raise ValueError("seven")
        if phase == "by-exit": os._exit(0)
        if phase == "leaves": dist.destroy_process_group(); time.sleep(4); sys.exit(0)
    if phase == "in-a-store":
        told(lambda: dist.group.WORLD.get_group_store().get("absent"))
    else:
        told(go_on)
    """
    )
    expected = {
        "before-joining": r"was killed by signal 9, before it joined",
        "in-a-store": r"was killed by signal 15",
        "by-exception": r"ended with exit code 1",
        "by-exit": r"has ended, or was killed",
        "leaves": r"left the process group without taking part",
    }[phase]
    result = job(program, 2, arguments=(str(tmp_path / "mark"), phase))
    ((seconds, text),) = told(result, 1)
    assert "rank 1 (process" in text and expected in text
    # The launcher says at once how a process has ended, and waits a little for that itself.
    assert seconds < 15
    if phase == "by-exception":
        assert "ValueError: seven" in result.errors[result.errors.rindex("Root cause") :]


def test_a_stopped_rank(job, tmp_path):
    program = (
        """
    dist.init_process_group("cpu:reference")
    """
        + LOOP.replace("\n", "\n    ")
        + """
    dist.barrier()
    if rank == 1: mark(); os.kill(os.getpid(), signal.SIGSTOP)
    told(go_on)
    """
    )
    result = job(program, 2, "--shutdown-timeout", "1", arguments=(str(tmp_path / "mark"),))
    ((seconds, text),) = told(result, 1)
    assert seconds < 20 and "was stopped and has not gone on for 4 s" in text
    assert result.status == 1


def test_the_time_limit_names_who_is_elsewhere(job):
    program = """
    dist.init_process_group("cpu:reference", timeout=timedelta(seconds=1.5))
    rank = dist.get_rank()
    dist.all_reduce(candelabra.ones(2))
    if rank == 0: line("told", raised(dist.DistBackendError, dist.all_reduce, candelabra.ones(7)))
    if rank == 1: raised(dist.DistBackendError, dist.barrier)
    if rank == 2: time.sleep(2.5)
    line("missing", raised(dist.DistBackendError, dist.monitored_barrier, timeout=timedelta(seconds=2), wait_all_ranks=True) if rank < 2 else "")
    """
    result = job(
        program.replace(
            "if rank == 1: raised(dist.DistBackendError, dist.barrier)",
            "if rank == 1: line('other', raised(dist.DistBackendError, dist.recv, candelabra.ones(1), 0))",
        ),
        3,
    )
    (text,) = result.lines("told")
    assert (
        text.startswith("all_reduce(float32 7) (number 2) on rank 0: timed out after 1")
        and "; rank 1 (process " in text
    )
    assert "is in recv(float32 1) (number 1)" in text
    assert "is not in a collective; its last one was all_reduce(float32 2) (number 1)" in text
    assert next(line for line in result.lines("missing") if line).endswith(
        "Ranks 2 failed to pass monitoredBarrier in 2000 ms"
    )


def test_without_a_launcher(tmp_path):
    """Rank 0 runs the server; a killed rank is named without its signal."""
    import subprocess
    import sys

    from programs import PRELUDE, environment

    script = tmp_path / "program.py"
    script.write_text(
        PRELUDE
        + """
dist.init_process_group("cpu:reference", "file://" + sys.argv[2], rank=int(sys.argv[1]), world_size=2)
dist.all_reduce(candelabra.ones(1))
if dist.get_rank() == 1: time.sleep(0.2); os.kill(os.getpid(), signal.SIGKILL)
start = time.time()
line(raised(dist.DistBackendError, dist.all_reduce, candelabra.ones(1)))
"""
    )
    ranks = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(tmp_path / "meeting")],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        for rank in range(2)
    ]
    out, _ = ranks[0].communicate(timeout=40)
    assert ranks[1].wait(10) == -9
    assert (
        f"rank 1 (process {ranks[1].pid}) has ended, or was killed; its last collective was all_reduce(float32 1) (number 1)"
        in out
    )
