"""Test what arrives through queues, pipes, pools and managers."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import socket
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from queue import Empty, Full

import processes
import pytest

import candelabra as c
import candelabra.multiprocessing as mp
from candelabra.multiprocessing import named_files

METHODS = ["fork", "spawn", "forkserver"]


@pytest.mark.parametrize("method", METHODS)
def test_every_start_method(strategy, method):
    ctx = mp.get_context(method)
    received, answers = ctx.Queue(), ctx.SimpleQueue()
    argument = c.zeros(2).share_memory_()
    filler = ctx.Process(target=processes.fill, args=(argument, 3.0))
    worker = ctx.Process(target=processes.add_one, args=(received, answers))
    filler.start()
    worker.start()
    x = c.zeros(2, 3)
    received.put(x)
    received.put(x[1])
    back, row = answers.get(), answers.get()
    received.put(None)
    worker.join(30)
    filler.join(30)
    assert worker.exitcode == filler.exitcode == 0
    assert x.tolist() == [[1, 1, 1], [2, 2, 2]] and argument.tolist() == [3, 3]
    # A tensor that returns to its maker has the original memory.
    assert back.untyped_storage() is row.untyped_storage() is x.untyped_storage()


def test_private_memory_is_shared_by_being_an_argument():
    x = c.zeros(2)
    process = mp.get_context("spawn").Process(target=processes.fill, args=(x, 4.0))
    process.start()
    process.join(30)
    assert process.exitcode == 0 and x.tolist() == [4, 4]


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x.T,
        lambda x: x[1:, ::2],
        lambda x: x[0].expand(3, 4),
        lambda x: x.view(c.int32),
        lambda x: x[2, 3],
        lambda x: x.as_strided((3, 3), (1, 1), 2),
    ],
)
def test_geometry_and_aliasing(strategy, view):
    base = c.arange(12.0).reshape(3, 4)
    x = view(base)
    with mp.get_context("fork").Pool(1) as pool:
        shape, stride, offset, dtype, seen, same = pool.apply(processes.describe, ((x, base),))
    assert (shape, stride, offset, dtype) == (x.shape, x.stride(), x.storage_offset(), str(x.dtype))
    assert same and seen == base.tolist() and base.view(-1)[x.storage_offset()].view(x.dtype).item() == 99


def test_one_mapping_however_often_it_comes(strategy):
    here, there = mp.Pipe()
    x = c.ones(10)
    arrived = []
    for _ in range(3):
        here.send((x, x[2:], x.untyped_storage()))
        arrived += there.recv()
    storages = [t if isinstance(t, c._C.Storage) else t.untyped_storage() for t in arrived]
    assert all(storage is x.untyped_storage() for storage in storages)


def test_descriptors_are_given_back(strategy):
    here, there = mp.Pipe(duplex=False)
    before = processes.what_there_is()
    for _ in range(50):
        there.send([c.ones(3) for _ in range(4)])
        assert len(here.recv()) == 4
    assert processes.what_there_is() == before
    # Leave these messages unread.
    for _ in range(5):
        there.send(c.ones(3))
    here.close()
    there.close()
    gc.collect()
    if strategy == "file_descriptor":
        assert len(processes.links()) == before[0] - 2


def test_many_tensors_and_long_messages(strategy):
    here, there = mp.Pipe()
    many = [c.full((2,), float(i)) for i in range(600)]
    text = "x" * 1_000_000
    here.send((many, text))
    arrived, again = there.recv()
    assert [t[1].item() for t in arrived] == list(range(600)) and again == text
    arrived[5].fill_(-1)
    assert many[5].tolist() == [-1, -1]


@pytest.mark.parametrize("size", [0, 1, 32767, 32768, 32769, 300_000])
def test_bytes(size):
    here, there = mp.Pipe()
    data = os.urandom(size)
    here.send_bytes(data)
    assert there.poll(1) and there.recv_bytes() == data and not there.poll()
    here.send_bytes(data, 0, size // 2)
    buffer = bytearray(size)
    assert there.recv_bytes_into(buffer) == size // 2 and buffer[: size // 2] == data[: size // 2]


def test_too_long_a_message_closes():
    receiver, sender = mp.Pipe(duplex=False)
    sender.send_bytes(b"12345")
    with pytest.raises(OSError, match="bad message length"):
        receiver.recv_bytes(4)
    assert receiver.closed


def test_a_default_timeout_of_sockets_is_not_for_pipes():
    socket.setdefaulttimeout(0.01)
    try:
        queue = mp.Queue()
        queue.put(1)
        assert queue.get() == 1
        with pytest.raises(Empty):
            queue.get(timeout=0.05)
    finally:
        socket.setdefaulttimeout(None)


def test_requires_grad_and_attributes(strategy):
    here, there = mp.Pipe()
    x = c.ones(2)
    x.note = "kept"
    x.requires_grad = True
    x.grad = c.ones(2)
    here.send(x)
    y = there.recv()
    assert y.requires_grad and y.is_leaf and y.grad is None and y.note == "kept"


def test_tensors_on_the_tape_are_refused():
    pytest.importorskip("candelabra.autograd")
    x = c.ones(2, requires_grad=True) * 2
    here, there = mp.Pipe()
    queue = mp.Queue()
    for send in (here.send, queue.put, mp.SimpleQueue().put):
        with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
            send(x)
    here.send(x.detach())
    assert there.recv().tolist() == [2, 2]


def test_parameters_and_modules(strategy):
    nn = pytest.importorskip("candelabra.nn")
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    tied = nn.Linear(3, 3)
    tied.weight = nn.Parameter(c.eye(3))
    module.append(tied).append(tied)
    assert module.share_memory() is module and all(t.is_shared() for t in module.state_dict().values())
    here, there = mp.Pipe()
    here.send((module, module[0].weight))
    arrived, weight = there.recv()
    assert (
        isinstance(weight, nn.Parameter)
        and weight.requires_grad
        and weight.untyped_storage() is module[0].weight.untyped_storage()
    )
    assert arrived[2].weight is arrived[3].weight
    for name, value in arrived.state_dict().items():
        assert value.untyped_storage() is module.state_dict()[name].untyped_storage()


def test_subclasses(strategy):
    nn = pytest.importorskip("candelabra.nn")
    here, there = mp.Pipe()
    parameter = nn.Parameter(c.ones(2), requires_grad=False)
    here.send(parameter)
    assert type(there.recv()) is nn.Parameter


# ---- queues


def test_queue_is_a_queue():
    queue = mp.Queue(2)
    queue.put(1)
    queue.put("two", timeout=1)
    assert queue.full() and queue.qsize() == 2
    with pytest.raises(Full):
        queue.put_nowait(3)
    assert queue.get(timeout=5) == 1 and queue.get() == "two"
    with pytest.raises(Empty):
        queue.get_nowait()
    with pytest.raises(Empty):
        queue.get(timeout=0.01)
    queue.close()
    queue.join_thread()
    with pytest.raises(ValueError, match="closed"):
        queue.put(1)
    with pytest.raises(ValueError, match="closed"):
        queue.get()


def test_what_cannot_be_pickled_raises_where_it_is_put():
    queue = mp.Queue()
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        queue.put(lambda: None)
    queue.put("after")
    assert queue.get(timeout=5) == "after"


def test_what_is_not_sent_leaves_nothing(strategy):
    before = processes.what_there_is()
    here, there = mp.Pipe()
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        here.send((c.ones(3), lambda: None))
    there.close()
    with pytest.raises(BrokenPipeError):
        here.send(c.ones(3))
    here.close()
    queue = mp.Queue(1)
    queue.put(0)
    with pytest.raises(Full):
        queue.put_nowait(c.ones(3))
    assert queue.get() == 0
    queue.close()
    queue.join_thread()
    del here, there, queue
    gc.collect()
    mp.SimpleQueue().put(c.ones(3))
    named_files.forget_lost_names()
    if strategy == "file_descriptor":
        assert len(processes.links()) == before[0]
    else:
        assert len(processes.named_files()) == before[1]


def test_more_than_a_pipe_holds():
    queue = mp.Queue()
    for i in range(3000):
        queue.put((i, "x" * 100))
    assert [queue.get(timeout=5)[0] for _ in range(3000)] == list(range(3000))


UNREAD = """
import candelabra, candelabra.multiprocessing as mp
queue = mp.Queue()
for _ in range(3000):
    queue.put("x" * 1000)
queue.put(candelabra.ones(3))
"""


def test_a_process_ends_with_messages_that_nobody_can_read():
    done = subprocess.run([sys.executable, "-c", UNREAD], capture_output=True, timeout=30)
    assert done.returncode == 0 and done.stderr == b""


def test_joinable_queue():
    queue = mp.JoinableQueue()
    queue.put(c.ones(1))
    assert queue.get().item() == 1
    queue.task_done()
    queue.join()
    with pytest.raises(ValueError, match="too many times"):
        queue.task_done()


def test_sender_may_be_gone():
    ctx = mp.get_context("fork")
    queue = ctx.SimpleQueue()
    process = ctx.Process(target=processes.put_and_go, args=(queue,))
    process.start()
    process.join(30)
    assert process.exitcode == 0 and queue.get().tolist() == [0, 1, 2, 3, 4]


def test_sender_of_a_name_is_gone():
    mp.set_sharing_strategy("file_system")
    try:
        ctx = mp.get_context("fork")
        queue = ctx.SimpleQueue()
        process = ctx.Process(target=processes.put_and_go, args=(queue,))
        process.start()
        process.join(30)
    finally:
        mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(mp.SenderGoneError, match="has to live until its messages are read"):
        queue.get()


def test_receiver_gone():
    receiver, sender = mp.Pipe(duplex=False)
    receiver.close()
    with pytest.raises(BrokenPipeError, match="the receiver is gone"):
        sender.send(c.ones(1))
    queue = mp.Queue()
    queue._reader.close()
    queue.put(1)
    queue._thread.join(5)
    with pytest.raises(BrokenPipeError, match="the receiver is gone"):
        queue.put(2)


def test_senders_gone():
    receiver, sender = mp.Pipe(duplex=False)
    sender.send(1)
    sender.close()
    assert receiver.recv() == 1
    with pytest.raises(EOFError, match="closed their end"):
        receiver.recv()
    first, second = mp.Pipe()
    first.send("not read")
    second.send("read")
    second.close()
    assert first.recv() == "read"
    with pytest.raises(EOFError):
        first.recv()


def test_ends_know_their_direction():
    receiver, sender = mp.Pipe(duplex=False)
    with pytest.raises(OSError, match="read-only"):
        receiver.send(1)
    with pytest.raises(OSError, match="write-only"):
        sender.recv()
    sender.close()
    with pytest.raises(OSError, match="closed"):
        sender.send(1)


def test_bytes_without_their_message():
    here, there = mp.Pipe()
    here.send(c.ones(1))
    data = there.recv_bytes()
    with pytest.raises(RuntimeError, match="recv\\(\\) or get\\(\\)"):
        pickle.loads(data)


# ---- with Python's own multiprocessing


def test_managers(strategy):
    with mp.Manager() as manager:
        queue, items = manager.Queue(), manager.list()
        x = c.ones(3)
        queue.put(x)
        y = queue.get()
        y.add_(1)
        items.append(x)
        assert x.tolist() == items[0].tolist() == [2, 2, 2]


def test_pythons_own_queues(strategy):
    x = c.ones(3)
    queue = multiprocessing.SimpleQueue()
    queue.put(x)
    queue.get().add_(1)
    assert x.tolist() == [2, 2, 2]
    with ProcessPoolExecutor(1, mp_context=mp.get_context("fork")) as executor:
        executor.submit(processes.fill, x, 5.0).result(30)
    assert x.tolist() == [5, 5, 5]


def test_pool(strategy):
    shared = c.zeros(4)
    with mp.get_context("fork").Pool(2) as pool:
        assert [t.item() for t in pool.map(c.Tensor.sum, [c.ones(i) for i in range(6)])] == [0, 1, 2, 3, 4, 5]
        assert list(pool.imap_unordered(len, [[1], [1, 2]])) in ([1, 2], [2, 1])
        pool.starmap(processes.fill, [(shared[i], float(i)) for i in range(4)])
        with pytest.raises(ZeroDivisionError):
            pool.apply(divmod, (1, 0))
    assert shared.tolist() == [0, 1, 2, 3]


def test_everything_of_multiprocessing_is_there():
    for name in multiprocessing.__all__:
        assert hasattr(mp, name), name
    assert set(multiprocessing.__all__) <= set(mp.__all__)
    assert mp.get_context().get_context("spawn").get_start_method() == "spawn"
    with pytest.raises(ValueError, match="cannot find context"):
        mp.get_context("telepathy")
