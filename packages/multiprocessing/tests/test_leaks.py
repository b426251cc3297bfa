"""Test that nothing leaks when both sides are killed, the last owner ends, or resources run out."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import resource
import signal
import time
from pathlib import Path

import numpy as np
import processes
import pytest

import candelabra as c
import candelabra.multiprocessing as mp
from candelabra.multiprocessing import named_files

#: Rounds per strategy.
ROUNDS = 50


def exchange(receiver, sender, ready) -> None:
    """Make, send and receive tensors, keeping some, until this process is killed."""
    kept = []
    while True:
        sender.send([c.ones(100), c.ones(200)[3:]])
        kept = [*kept[-3:], receiver.recv()]
        time.sleep(0.0002)
        if ready is not None:
            ready.send_bytes(b"!")
            ready = None


def memory_files_of(pids) -> list[str]:
    """Return the shared memory that these processes have open or mapped."""
    found = []
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                target = os.readlink(f"/proc/{pid}/fd/{name}")
                found += [target] if "memfd:candelabra" in target else []
            with open(f"/proc/{pid}/maps") as maps:
                found += [line for line in maps if "memfd:candelabra" in line or str(named_files.ROOT) in line]
    return found


def test_both_sides_are_killed(strategy):
    ctx = mp.get_context("fork")
    before, mine = processes.what_there_is(), memory_files_of([os.getpid()])
    draw = random.Random(1)
    pids = []
    for _ in range(ROUNDS):
        one, other = ctx.Pipe(duplex=False), ctx.Pipe(duplex=False)
        told, tell = ctx.Pipe(duplex=False)
        pair = [
            ctx.Process(target=exchange, args=(one[0], other[1], tell)),
            ctx.Process(target=exchange, args=(other[0], one[1], None)),
        ]
        for process in pair:
            process.start()
        for connection in (*one, *other, tell):
            connection.close()
        assert told.recv_bytes() == b"!"
        told.close()
        time.sleep(draw.random() * 0.004)
        for process in draw.sample(pair, 2):
            os.kill(process.pid, signal.SIGKILL)
        for process in pair:
            process.join()
            pids.append(process.pid)
            process.close()
    assert processes.what_there_is() == before
    assert memory_files_of([os.getpid()]) == mine and memory_files_of(pids) == []


def keep_first(receiver, answers) -> None:
    """Keep a tensor, and report its sum on request. End when told to."""
    x = receiver.recv()
    while answers.recv_bytes() == b"?":
        answers.send_bytes(str(x.sum().item()).encode())
    del x


def make_and_send(senders) -> None:
    """Send one tensor to all, and wait to be killed."""
    x = c.full((1000,), 2.0).share_memory_()
    for sender in senders:
        sender.send(x)
    time.sleep(60)


@pytest.mark.parametrize("end", ["killed", "ended"])
def test_the_last_owner_removes_the_memory(strategy, end):
    ctx = mp.get_context("fork")
    before = processes.what_there_is()
    pipes = [ctx.Pipe(duplex=False) for _ in range(3)]
    asked = [ctx.Pipe() for _ in range(3)]
    keepers = [ctx.Process(target=keep_first, args=(pipe[0], ask[1])) for pipe, ask in zip(pipes, asked)]
    maker = ctx.Process(target=make_and_send, args=([pipe[1] for pipe in pipes],))
    for process in (*keepers, maker):
        process.start()
    for (receiver, sender), (_, there) in zip(pipes, asked):
        receiver.close(), sender.close(), there.close()
    for here, _ in asked:
        here.send_bytes(b"?")
        assert here.recv_bytes() == b"2000.0"
    # Kill the maker, then end one owner after the other. The remaining owners keep the memory.
    os.kill(maker.pid, signal.SIGKILL)
    maker.join()
    for number, keeper in enumerate(keepers):
        named_files.sweep()
        for here, _ in asked[number:]:
            here.send_bytes(b"?")
            assert here.recv_bytes() == b"2000.0"
        if strategy == "file_system":
            files = {os.stat(path).st_ino for path in processes.named_files()}
            assert len(files) == 1
        if end == "killed":
            os.kill(keeper.pid, signal.SIGKILL)
        else:
            asked[number][0].send_bytes(b".")
        keeper.join(30)
        assert keeper.exitcode == (-signal.SIGKILL if end == "killed" else 0)
        asked[number][0].close()
    if end == "ended":
        # No sweep is needed when the owners end normally.
        assert len(processes.named_files()) == before[1]
    for process in (*keepers, maker):
        process.close()
    assert processes.what_there_is() == before


def test_a_child_is_killed_before_it_begins():
    mp.set_sharing_strategy("file_system")
    try:
        before = processes.what_there_is()
        x = c.ones(10).share_memory_()
        for _ in range(30):
            child = os.fork()
            if child == 0:
                os._exit(0)
            # Often this is before the child has taken over the names that were made for it.
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        held = processes.what_there_is()
        assert held == (before[0], before[1] + 1)
        assert list(Path(named_files.ROOT).rglob("fork-*")) == []
        del x
        assert processes.what_there_is() == before
    finally:
        mp.set_sharing_strategy("file_descriptor")


def test_files_are_sent_as_files(tmp_path):
    path = tmp_path / "numbers"
    x = c.from_file(path, shared=True, size=4)
    receiver, sender = mp.Pipe(duplex=False)
    before = os.listdir("/proc/self/fd")
    child = os.fork()
    if child == 0:
        try:
            y = receiver.recv()
            y[1:] += 5
        finally:
            os._exit(0)
    sender.send(x)
    assert os.waitpid(child, 0)[1] == 0
    assert x.tolist() == [0, 5, 5, 5] and np.fromfile(path, np.float32).tolist() == x.tolist()
    # A private mapping is copied to shared memory.
    private = c.from_file(path, size=4)
    sender.send(private)
    arrived = receiver.recv()
    arrived.zero_()
    assert (
        private.tolist() == [0] * 4 and private.is_shared() and np.fromfile(path, np.float32).tolist() == [0, 5, 5, 5]
    )
    del private, arrived
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == len(before)


# ---- when resources run out


@contextlib.contextmanager
def limited(kind: int, value: int):
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (value, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


def free_descriptors(count: int) -> int:
    """Return the descriptor limit that leaves room for `count` more descriptors."""
    used = {int(name) for name in os.listdir("/proc/self/fd")}
    free = (number for number in range(10_000) if number not in used)
    return [next(free) for _ in range(count)][-1] + 1


def test_a_receiver_without_descriptors():
    here, there = mp.Pipe()
    sent = [c.full((2,), float(n)) for n in range(20)]
    before = processes.what_there_is()[0]
    here.send(sent)
    here.send("next")
    held = len(os.listdir("/proc/self/fd"))
    with (
        limited(resource.RLIMIT_NOFILE, free_descriptors(10)),
        pytest.raises(RuntimeError, match=r"no file descriptor left .*file_system"),
    ):
        there.recv()
    # The received descriptors were closed, and the pipe still works.
    assert len(os.listdir("/proc/self/fd")) == held and there.recv() == "next"
    here.send(sent)
    assert [x[0].item() for x in there.recv()] == list(range(20))
    gc.collect()
    assert processes.what_there_is()[0] == before + 20


def test_a_sender_without_descriptors():
    here, there = mp.Pipe()
    sent = [c.full((2,), float(n)) for n in range(20)]
    held = len(os.listdir("/proc/self/fd"))
    with (
        limited(resource.RLIMIT_NOFILE, free_descriptors(10)),
        pytest.raises(RuntimeError, match="no file descriptor left"),
    ):
        here.send(sent)
    assert not there.poll(0) and [x[0].item() for x in sent] == list(range(20))
    del sent
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == held
    here.send(c.ones(2))
    assert there.recv().tolist() == [1, 1]


def test_a_queue_without_descriptors_says_so():
    queue = mp.SimpleQueue()
    sent = [c.ones(1) for _ in range(20)]
    with (
        limited(resource.RLIMIT_NOFILE, free_descriptors(10)),
        pytest.raises(RuntimeError, match="no file descriptor left"),
    ):
        queue.put(sent)
    queue.put([c.ones(1)])
    assert queue.get()[0].item() == 1


def test_shared_memory_is_full(strategy):
    before = processes.what_there_is()
    x = c.arange(1 << 20)
    here, there = mp.Pipe()
    with limited(resource.RLIMIT_FSIZE, 1 << 20):
        with pytest.raises(c.OutOfMemoryError, match="no shared memory left for 8388608 bytes"):
            x.share_memory_()
        with pytest.raises(c.OutOfMemoryError, match="no shared memory left"):
            here.send({"large": x, "small": c.ones(1)})
        assert not there.poll(0) and not x.is_shared() and x[-1].item() == (1 << 20) - 1
        # A tensor that fits can still be sent.
        here.send(x[:2].clone())
        assert there.recv().tolist() == [0, 1]
    here.close(), there.close()
    gc.collect()
    assert processes.what_there_is() == before


def test_no_room_to_map_what_comes(strategy):
    ctx = mp.get_context("fork")
    receiver, sender = ctx.Pipe(duplex=False)
    told, tell = ctx.Pipe(duplex=False)
    process = ctx.Process(target=receive_within, args=(receiver, tell))
    process.start()
    x = c.ones(16 << 20)
    sender.send(x)
    sender.send(c.ones(2))
    assert told.recv_bytes() == b"cannot map 67108864 bytes of shared memory: Cannot allocate memory"
    assert told.recv_bytes() == b"[1.0, 1.0]"
    process.join(30)
    assert process.exitcode == 0


def receive_within(receiver, tell) -> None:
    """Receive two tensors with address space for only a small one."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (32 << 20), resource.getrlimit(resource.RLIMIT_AS)[1]))
    try:
        receiver.recv()
    except c.OutOfMemoryError as error:
        tell.send_bytes(str(error).encode())
    tell.send_bytes(str(receiver.recv().tolist()).encode())


def test_the_receiver_is_gone(strategy):
    before = processes.what_there_is()
    ctx = mp.get_context("fork")
    queue = ctx.SimpleQueue()
    process = ctx.Process(target=processes.put_and_go, args=(queue,))
    process.start()
    process.join(30)
    process.close()
    with contextlib.suppress(mp.SenderGoneError):
        queue.get()
    queue._reader.close()
    began = time.monotonic()
    for _ in range(3):
        with pytest.raises(BrokenPipeError, match="the receiver is gone"):
            queue.put(c.ones(1000))
    assert time.monotonic() - began < 10
    queue.close()
    del queue
    assert processes.what_there_is() == before
