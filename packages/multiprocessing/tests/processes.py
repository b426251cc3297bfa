"""Functions that the tests' processes run, which a fresh interpreter can import."""

from __future__ import annotations

import gc
import os
import signal
import time
from pathlib import Path
from queue import Empty
from typing import Any

import candelabra as c
import candelabra.multiprocessing as mp
from candelabra.multiprocessing import named_files as names


def add_one(received: Any, answers: Any) -> None:
    """Add 1 to each tensor in place and send it back, until None arrives."""
    while (x := received.get()) is not None:
        x.add_(1)
        answers.put(x)


def fill(x: Any, value: float) -> None:
    x.fill_(value)


def describe(things: Any) -> Any:
    """Describe two tensors on one storage as this process sees them."""
    a, b = things
    a[(0,) * a.ndim] = 99
    return a.shape, a.stride(), a.storage_offset(), str(a.dtype), b.tolist(), a.untyped_storage() is b.untyped_storage()


def put_and_go(queue: Any) -> None:
    queue.put(c.arange(5.0))


def hold(connection: Any) -> None:
    """Keep what arrives until this process is killed."""
    kept = [connection.recv()]
    kept.append(connection.recv())
    time.sleep(60)


def share_forever(connection: Any, strategy: str) -> None:
    """Send tensors until this process is killed."""
    mp.set_sharing_strategy(strategy)
    kept = []
    while True:
        kept.append(c.ones(100))
        connection.send(kept[-1])


def raise_in_second(index: int, text: str) -> None:
    if index == 1:
        raise ValueError(text)
    time.sleep(30)


def exit_with(index: int, code: int) -> None:
    os._exit(code)


def be_killed(index: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def refuse_to_end(index: int) -> None:
    if index == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(30)
    time.sleep(0.5)
    raise RuntimeError("the other one fails")


def write_index(index: int, shared: Any) -> None:
    shared[index] = index + 1


def descend(index: int, weight: Any, steps: int) -> None:
    """Take lock-free gradient descent steps on |x·w - 1·x|², with a weight that other processes
    update.
    """
    c.set_num_threads(1)
    x = c.eye(8)
    for _ in range(steps):
        error = x @ (weight - 1.0)
        weight.sub_(x.T @ error, alpha=0.05)


def links() -> list[str]:
    """Return the targets of this process's descriptors of shared memory and sockets."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            continue
        if "memfd:" in target or "socket:" in target:
            found.append(target)
    return found


def named_files() -> list[Path]:
    """Return the named shared-memory files of this user."""
    base = Path(names.ROOT, f"candelabra-{os.getuid()}")
    return [path for path in base.rglob("*") if path.is_file()] if base.exists() else []


def what_there_is() -> tuple[int, int]:
    """Return the counts of descriptors and of shared-memory names, after cleaning up dead
    processes.
    """
    gc.collect()
    names.sweep()
    names.forget_lost_names()
    return len(links()), len(named_files())


def receive_all(queue: Any, ready: Any) -> None:
    """Receive objects until no process is left that could send."""
    ready.release()
    try:
        while True:
            queue.get()
    except EOFError:
        os.write(1, b"end ")
    try:
        queue.put(1)
    except BrokenPipeError:
        os.write(1, b"refused ")


def send_later(queue: Any, ready: Any, go: str) -> None:
    """Put an object once a file is there."""
    ready.release()
    while not Path(go).exists():
        time.sleep(0.01)
    queue.put(c.ones(3))


def receive_one(queue: Any, ready: Any, go: str) -> None:
    """Receive an object that is sent after the parent is gone and this process has waited."""
    ready.release()
    try:
        queue.get(timeout=1.5)
    except Empty:
        Path(go).touch()
    os.write(1, str(queue.get().tolist()).encode())
    try:
        queue.get()
    except EOFError:
        os.write(1, b" end")


def be_killed_with_receivers(method: str, kind: str, go: str) -> None:
    """Start processes that hold both ends of a queue, and be killed."""
    ctx = mp.get_context(method)
    queue, ready = getattr(ctx, kind)(), ctx.Semaphore(0)
    if go:
        started = [ctx.Process(target=each, args=(queue, ready, go)) for each in (receive_one, send_later)]
    else:
        started = [ctx.Process(target=receive_all, args=(queue, ready)) for _ in range(3)]
    for each in started:
        each.start()
    if not go:
        queue.put(c.ones(2))
    for _ in started:
        ready.acquire()
    be_killed(0)
