"""Test that repeated kill -9 of either side leaks nothing."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import processes
import pytest

import candelabra as c
import candelabra.multiprocessing as mp
from candelabra.multiprocessing import named_files

ROUNDS = 100


def kill(process) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    process.close()


def test_receiver_is_killed(strategy):
    ctx = mp.get_context("fork")
    before = processes.what_there_is()
    for _ in range(ROUNDS):
        receiver, sender = ctx.Pipe(duplex=False)
        process = ctx.Process(target=processes.hold, args=(receiver,))
        process.start()
        receiver.close()
        # The receiver has some, some are in transit, and some never arrive.
        sender.send([c.ones(4), c.ones(5)])
        sender.send(c.ones(6))
        kill(process)
        with pytest.raises(BrokenPipeError, match="the receiver is gone"):
            sender.send(c.ones(7))
        sender.close()
    assert processes.what_there_is() == before


def test_sender_is_killed(strategy):
    ctx = mp.get_context("fork")
    before = processes.what_there_is()
    for _ in range(ROUNDS):
        receiver, sender = ctx.Pipe(duplex=False)
        process = ctx.Process(target=processes.share_forever, args=(sender, strategy))
        process.start()
        sender.close()
        kept = [receiver.recv() for _ in range(3)]
        kill(process)
        # Received tensors stay valid. Tensors in transit arrive unchanged or not at all.
        with pytest.raises((EOFError, mp.SenderGoneError)):
            kept.extend(iter(receiver.recv, None))
        assert all(x.sum().item() == 100 for x in kept)
        receiver.close()
        del kept
    assert processes.what_there_is() == before


def test_a_queue_outlives_who_is_killed_reading_it():
    ctx = mp.get_context("fork")
    received, answers = ctx.Queue(), ctx.SimpleQueue()
    for _ in range(5):
        process = ctx.Process(target=processes.add_one, args=(received, answers))
        process.start()
        x = c.zeros(2)
        received.put(x)
        assert answers.get().tolist() == [1, 1]
        # The process now waits for the next item, where it would hold the lock of a plain queue.
        time.sleep(0.02)
        kill(process)
    process = ctx.Process(target=processes.add_one, args=(received, answers))
    process.start()
    received.put(c.zeros(2))
    received.put(None)
    assert answers.get().tolist() == [1, 1]
    process.join(30)
    assert process.exitcode == 0


def orphans_say(method: str, kind: str, go: str = "") -> str:
    """What the children of a killed process write; returns when all of them have ended."""
    code = f"import processes; processes.be_killed_with_receivers({method!r}, {kind!r}, {go!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=os.path.dirname(__file__), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("fork", "Queue"),
        ("fork", "SimpleQueue"),
        ("fork", "JoinableQueue"),
        ("spawn", "Queue"),
        ("forkserver", "Queue"),
    ],
)
def test_receivers_end_when_their_parent_was_killed(method, kind):
    assert sorted(orphans_say(method, kind).split()) == ["end"] * 3 + ["refused"] * 3


def test_receivers_wait_for_senders_that_outlive_the_parent(tmp_path):
    assert orphans_say("fork", "Queue", str(tmp_path / "go")) == "[1.0, 1.0, 1.0] end"


WAYS_TO_WAIT = {
    "apply": lambda pool: pool.apply(processes.be_killed, (0,)),
    "map": lambda pool: pool.map(processes.be_killed, [0]),
    "imap": lambda pool: list(pool.imap(processes.be_killed, [0])),
    "imap_unordered": lambda pool: list(pool.imap_unordered(processes.be_killed, [0])),
}


@pytest.mark.parametrize("way", WAYS_TO_WAIT)
def test_a_pool_tells_of_a_worker_that_is_killed(way):
    told = []
    with mp.get_context("fork").Pool(2) as pool:
        assert pool.map(abs, [-1, 2]) == [1, 2]
        with pytest.raises(RuntimeError, match=r"of the pool was ended by signal 9, and the task that it had is lost"):
            WAYS_TO_WAIT[way](pool)
        # The pool has started a new worker.
        assert pool.map(abs, [-1, 2, -3, 4]) == [1, 2, 3, 4]
        with pytest.raises(RuntimeError, match="signal 9"):
            pool.map_async(processes.be_killed, [0], error_callback=told.append).get(30)
    assert len(told) == 1


@pytest.mark.parametrize("way", ["imap", "imap_unordered"])
def test_a_pool_works_on_after_an_iteration_was_lost_before_its_end(way):
    lost = threading.Event()

    def tasks():
        yield 0
        assert lost.wait(60)

    with mp.get_context("fork").Pool(2) as pool:
        results = getattr(pool, way)(processes.be_killed, tasks())
        with pytest.raises(RuntimeError, match="signal 9"):
            next(results)
        lost.set()
        assert pool.map_async(abs, [-1, 2, -3, 4]).get(60) == [1, 2, 3, 4]
        assert list(results) == []


def test_a_pool_tells_of_a_worker_that_exits():
    with mp.get_context("fork").Pool(1) as pool:
        with pytest.raises(RuntimeError, match="exited with code 3"):
            pool.apply(os._exit, (3,))
        lost = pool.apply_async(os._exit, (4,))
        pool.close()
        pool.join()
        with pytest.raises(RuntimeError, match="exited with code 4"):
            lost.get(1)


SCRIPT = """
import sys
import candelabra, candelabra.multiprocessing as mp
mp.set_sharing_strategy(sys.argv[1])
kept = [candelabra.ones(1000).share_memory_() for _ in range(5)]
print("shared", flush=True)
sys.stdin.read()
"""


def test_everybody_is_killed(strategy):
    before = processes.what_there_is()
    started = [
        subprocess.Popen([sys.executable, "-c", SCRIPT, strategy], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    for process in started:
        assert process.stdout.readline() == b"shared\n"
    assert len(processes.named_files()) == before[1] + (10 if strategy == "file_system" else 0)
    for process in started:
        process.kill()
        process.communicate()
    assert processes.what_there_is() == before


def test_an_ordinary_end_leaves_nothing(strategy):
    before = len(processes.named_files())
    process = subprocess.run([sys.executable, "-c", SCRIPT, strategy], input=b"", capture_output=True, timeout=30)
    assert process.returncode == 0, process.stderr
    assert len(processes.named_files()) == before


def test_memory_outlives_its_maker(strategy):
    ctx = mp.get_context("fork")
    receiver, sender = ctx.Pipe(duplex=False)
    process = ctx.Process(target=processes.share_forever, args=(sender, strategy))
    process.start()
    sender.close()
    x = receiver.recv()
    kill(process)
    named_files.sweep()
    # The tensor can still be sent to another process.
    here, there = mp.Pipe()
    here.send(x)
    y = there.recv()
    y.fill_(2)
    assert x.tolist() == [2] * 100


def test_forked_processes_own_what_they_inherit():
    mp.set_sharing_strategy("file_system")
    try:
        x = c.ones(3).share_memory_()
        here, there = mp.Pipe()
        child = os.fork()
        if child == 0:
            try:
                there.send(x[1:])
                there.recv_bytes()
            finally:
                os._exit(0)
        del x
        gc.collect()
        y = here.recv()
        here.send_bytes(b"read")
        assert os.waitpid(child, 0)[1] == 0 and y.tolist() == [1, 1]
        assert y.storage_offset() == 1
    finally:
        mp.set_sharing_strategy("file_descriptor")
