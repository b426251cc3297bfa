"""Test that a loader with killed workers leaks no process, descriptor or shared memory."""

from __future__ import annotations

import collections
import gc
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import loading_datasets as datasets

import candelabra.multiprocessing as mp
from candelabra.multiprocessing import named_files
from candelabra.utils.data import DataLoader

pytestmark = pytest.mark.host_only("worker processes are forked, which the runtime of a device does not survive")

ROUNDS = 25


@pytest.fixture(params=sorted(mp.get_all_sharing_strategies()))
def strategy(request, tmp_path_factory, monkeypatch):
    # Separate this test's files from those of other programs.
    monkeypatch.setattr(named_files, "ROOT", str(tmp_path_factory.mktemp("shared")))
    monkeypatch.setattr(named_files, "_directory", None)
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)
    gc.collect()


def what_there_is() -> tuple[int, int, int]:
    """Return the counts of descriptors, shared-memory mappings and named files of this process."""
    gc.collect()
    named_files.sweep()
    named_files.forget_lost_names()
    with open("/proc/self/maps") as maps:
        mapped = sum("memfd:candelabra" in line or str(named_files.ROOT) in line for line in maps)
    files = [path for path in Path(named_files.ROOT).rglob("*") if path.is_file()]
    return len(os.listdir("/proc/self/fd")), mapped, len(files)


def children() -> set[int]:
    """Return the child processes that this one has not reaped."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return {int(word) for word in file.read().split()}


def test_workers_are_killed(strategy):
    list(DataLoader(datasets.Squares(8), 2, num_workers=2))
    before, started = what_there_is(), children()  # first collect the loaders of earlier tests
    draw = random.Random(2)
    for _ in range(ROUNDS):
        it = iter(DataLoader(datasets.Squares(100_000), 2, num_workers=2))
        kept = [next(it) for _ in range(draw.randrange(4))]
        pids = [process.pid for process in it._processes]
        victim = draw.choice(pids)
        os.kill(victim, signal.SIGKILL)
        killed = time.monotonic()
        with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid {victim}\) is killed by signal: Killed"):
            collections.deque(it, maxlen=0)
        assert time.monotonic() - killed < 3
        del it, kept
        gc.collect()
        assert not children() & set(pids)
    assert children() <= started
    assert what_there_is() == before


def test_letting_go_of_a_batch_runs_no_python(strategy):
    """An interrupt in a finalizer's frame would be lost, and the program would continue."""
    it = iter(DataLoader(datasets.Squares(40), 4, num_workers=2))
    held = [next(it) for _ in range(3)]
    frames = []
    sys.setprofile(lambda frame, event, argument: frames.append(frame.f_code.co_qualname) if event == "call" else None)
    held.clear()
    sys.setprofile(None)
    assert frames == []
    assert len(list(it)) == 7


SCRIPT = """
    import os, sys
    sys.path.insert(0, {folder!r})
    from candelabra.multiprocessing import named_files, set_sharing_strategy
    named_files.ROOT = {root!r}
    set_sharing_strategy({strategy!r})
    from loading_datasets import Squares
    from candelabra.utils.data import DataLoader
    it = iter(DataLoader(Squares(1000000), 4, num_workers=2))
    kept = [next(it) for _ in range(3)]
    print(*[process.pid for process in it._processes], flush=True)
    for batch in it:
        pass
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_program_ends(strategy, number):
    script = textwrap.dedent(
        SCRIPT.format(folder=str(Path(__file__).parent), root=str(named_files.ROOT), strategy=strategy)
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    pids = [int(word) for word in process.stdout.readline().split()]
    assert len(pids) == 2
    os.kill(process.pid, number)
    process.communicate(timeout=30)
    end = time.monotonic() + 10
    while [pid for pid in pids if alive(pid)] and time.monotonic() < end:
        time.sleep(0.02)
    assert [pid for pid in pids if alive(pid)] == []
    named_files.sweep()
    assert [path for path in Path(named_files.ROOT).rglob("*") if path.is_file()] == []


def alive(pid: int) -> bool:
    """Return whether a process is running. A zombie is not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
