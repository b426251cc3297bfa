"""Test that spawn and start_processes raise the children's errors here."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import time

import processes
import pytest

import candelabra as c
import candelabra.multiprocessing as mp
from candelabra.multiprocessing import named_files


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_write_shared_memory(strategy, method):
    x = c.zeros(2).share_memory_()
    assert mp.start_processes(processes.write_index, args=(x,), nprocs=2, start_method=method) is None
    assert x.tolist() == [1, 2]


def test_traceback_of_the_child():
    start = time.monotonic()
    with pytest.raises(
        mp.ProcessRaisedException, match="(?s)Process 1 terminated.*in raise_in_second.*ValueError: a clear reason"
    ) as caught:
        mp.spawn(processes.raise_in_second, args=("a clear reason",), nprocs=2)
    assert caught.value.error_index == 1 and caught.value.error_pid == caught.value.pid > 0
    # The other process is terminated.
    assert time.monotonic() - start < 20


def test_long_tracebacks_do_not_wait_for_a_reader():
    with pytest.raises(mp.ProcessRaisedException, match="x{100}"):
        mp.start_processes(processes.raise_in_second, args=("x" * 1_000_000,), nprocs=2, start_method="fork")


def test_exit_code():
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with exit code 7") as caught:
        mp.start_processes(processes.exit_with, args=(7,), start_method="fork")
    assert caught.value.exit_code == 7 and caught.value.signal_name is None


def test_killed():
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with signal SIGKILL") as caught:
        mp.start_processes(processes.be_killed, start_method="fork")
    assert caught.value.exit_code == -9 and caught.value.signal_name == "SIGKILL"


def test_without_join():
    x = c.zeros(3).share_memory_()
    context = mp.start_processes(
        processes.write_index, args=(x,), nprocs=3, join=False, daemon=True, start_method="fork"
    )
    assert len(context.pids()) == 3 and all(process.daemon for process in context.processes)
    while not context.join(timeout=10):
        pass
    assert context.join() and x.tolist() == [1, 2, 3]


def test_timeout_and_grace_period():
    context = mp.start_processes(processes.refuse_to_end, nprocs=2, join=False, start_method="fork")
    assert context.join(timeout=0.01) is False
    with (
        pytest.warns(UserWarning, match="is killed"),
        pytest.raises(mp.ProcessRaisedException, match="the other one fails"),
    ):
        context.join(grace_period=0.2)
    assert not any(process.is_alive() for process in context.processes)


# Background processes of a shell, and their children, ignore interrupts by default.
SCRIPT = """
import os, signal, sys, time
import candelabra.multiprocessing as mp

signal.signal(signal.SIGINT, signal.default_int_handler)

def wait(index, pipe):
    pipe.send(os.getpid())
    time.sleep(60)

if __name__ == "__main__":
    here, there = mp.Pipe()
    import threading
    threading.Thread(target=lambda: print(here.recv(), here.recv(), flush=True)).start()
    mp.start_processes(wait, args=(there,), nprocs=2, start_method="fork")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_processes_end_with_their_parent(number):
    parent = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    children = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(children) == 2
    parent.send_signal(number)
    parent.wait(20)
    parent.stdout.close()
    deadline = time.monotonic() + 10
    while any(named_files._start_time(pid) is not None for pid in children):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_another_start_method_is_warned_of():
    with pytest.warns(FutureWarning, match="start_processes"):
        mp.spawn(processes.exit_with, args=(0,), start_method="fork")
    with pytest.raises(ValueError, match="cannot find context"):
        mp.start_processes(processes.exit_with, args=(0,), start_method="telepathy")


def test_exceptions_pickle():
    raised = pickle.loads(pickle.dumps(mp.ProcessRaisedException("text", 1, 2)))
    assert (str(raised), raised.error_index, raised.pid) == ("text", 1, 2)
    exited = pickle.loads(pickle.dumps(mp.ProcessExitedException("text", 1, 2, -9, "SIGKILL")))
    assert (exited.exit_code, exited.signal_name) == (-9, "SIGKILL")
    assert issubclass(mp.ProcessExitedException, mp.ProcessException)


def test_descent_without_locks():
    """Hogwild (Niu, Recht, Ré, Wright 2011): steps that race still lead to the minimum."""
    weight = c.full((8, 2), 10.0).share_memory_()
    mp.start_processes(processes.descend, args=(weight, 300), nprocs=3, start_method="fork")
    assert (weight - 1.0).abs().max().item() < 1e-3
