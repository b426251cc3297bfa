"""Test sending device tensors between processes: on a mock device (shelf_device), and on a real or
emulated GPU if there is one.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import device_processes as work
import pytest

import candelabra as c
import candelabra.multiprocessing as mp
from candelabra.multiprocessing import device_memory

COMPILER = shutil.which("cc") or shutil.which("gcc")
INCLUDE = next(
    (
        folder
        for folder in (Path(c.__file__).parent / "include", Path(c.__file__).parents[2] / "include")
        if (folder / "candelabra" / "accelerator.h").exists()
    ),
    None,
)
PLUGIN = """
    from candelabra.backends import hookimpl

    @hookimpl
    def candelabra_register_backend(registrar):
        registrar.library("{library}")
"""


@pytest.fixture(scope="session")
def shelf(tmp_path_factory):
    """Install the mock device for this process and its children."""
    if COMPILER is None or INCLUDE is None:
        pytest.skip("needs a C compiler and the headers")
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [COMPILER, "-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{INCLUDE}",
         str(Path(__file__).parent / "shelf_device" / "shelf.c"), "-o", str(folder / "shelf.so")],
        check=True,
    )  # fmt: skip
    (folder / "shelf_backend.py").write_text(textwrap.dedent(PLUGIN).replace("{library}", str(folder / "shelf.so")))
    information = folder / "shelf_backend-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf-backend\nVersion: 1\n")
    (information / "entry_points.txt").write_text("[candelabra.backends]\nshelf = shelf_backend\n")
    sys.path.insert(0, str(folder))
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *([before] if before else [])])
    yield "shelf"
    sys.path.remove(str(folder))
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


@pytest.fixture(params=["shelf", "cuda"])
def device(request):
    """Run the test on each device whose memory can be sent, and check for leaks."""
    if request.param == "shelf":
        request.getfixturevalue("shelf")
    elif not c.cuda.is_available():
        pytest.skip("needs a GPU")
    c.ones(1, device=request.param)
    before = settled(request.param)
    yield request.param
    wait_for(lambda: settled(request.param) == before, f"{settled(request.param)} instead of {before}")


def settled(device):
    """Return the counts of allocations and handles after garbage collection."""
    gc.collect()
    device_memory.collect()
    state = device_memory._state
    return (
        allocated(device),
        len(state.by_key),
        len(state.by_place),
        len(state.readers),
        len(state.launching),
        len(state.leases),
    )


def allocated(device):
    return c.backends.memory_statistics(device)["allocated"]


def wait_for(condition, what):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


def made(*sizes, device):
    return c.arange(float(c.Size(sizes).numel())).reshape(sizes).to(device)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_every_start_method(device, method):
    ctx = mp.get_context(method)
    received, answers = ctx.Queue(), ctx.SimpleQueue()
    argument = made(2, device=device)
    filler = ctx.Process(target=work.fill, args=(argument, 3.0))
    worker = ctx.Process(target=work.add_one, args=(received, answers))
    filler.start()
    worker.start()
    x = made(2, 3, device=device)
    received.put(x)
    received.put(x[1])
    back, row = answers.get(), answers.get()
    received.put(None)
    worker.join(60)
    filler.join(60)
    assert worker.exitcode == filler.exitcode == 0
    assert x.cpu().tolist() == [[1, 2, 3], [5, 6, 7]] and argument.cpu().tolist() == [3, 3]
    # A tensor that returns to its maker has the original memory.
    assert back.untyped_storage() is row.untyped_storage() is x.untyped_storage()


@pytest.fixture
def worker(device):
    """Return a pool of one process, started once for several calls."""
    with mp.get_context("spawn").Pool(1) as pool:
        yield pool
        pool.close()
        pool.join()


def test_geometry_aliasing_and_gradients(device, worker):
    views = [
        lambda x: x,
        lambda x: x.T,
        lambda x: x[1:, ::2],
        lambda x: x[0].expand(3, 4),
        lambda x: x.as_strided((3, 3), (1, 1), 2),
    ]
    for view in views:
        base = made(3, 4, device=device)
        x = view(base)
        base.requires_grad_()
        shape, stride, offset, where, shared, seen, same, grad, leaf = worker.apply(work.describe, ((x, base),))
        assert (shape, stride, offset) == (tuple(x.shape), x.stride(), x.storage_offset())
        assert where == str(x.device) and shared and same and grad and leaf
        assert seen == base.detach().cpu().tolist() and base.detach().cpu().flatten()[x.storage_offset()].item() == 99


def test_pools_and_executors(device, worker):
    x = made(5, device=device)
    assert worker.map(work.first_number, [x, x[3:], c.ones(2)]) == [0, 3, 1]
    assert worker.apply(tuple, ([c.empty(0, device=device).shape],)) == (c.Size([0]),)
    with ProcessPoolExecutor(1, mp_context=mp.get_context("spawn")) as executor:
        assert executor.submit(work.first_number, x[2:]).result() == 2


def test_within_a_process(device):
    here, there = mp.Pipe()
    x = made(4, device=device)
    here.send([x, x[1:], c.empty(0, device=device)])
    y, rest, empty = there.recv()
    assert y.untyped_storage() is x.untyped_storage() is rest.untyped_storage()
    assert empty.shape == (0,) and empty.device == x.device
    y.fill_(7.0)
    assert x.cpu().tolist() == [7] * 4
    here.send(x.requires_grad_())
    assert there.recv().requires_grad
    with pytest.raises(RuntimeError, match="Cowardly"):
        here.send(x + x)
    here.close(), there.close()


def keeper(ctx):
    """Start a process that keeps a tensor. Return it, the end to send to, and the end to ask."""
    receiver, sender = ctx.Pipe(duplex=False)
    ask, asked = ctx.Pipe()
    process = ctx.Process(target=work.keep, args=(receiver, asked))
    process.start()
    receiver.close(), asked.close()
    return process, sender, ask


def asked(pipe, word):
    pipe.send(word)
    assert pipe.poll(30)
    return pipe.recv()


@pytest.mark.parametrize("end", ["let go", "end", "killed"])
def test_memory_lives_as_long_as_somebody_uses_it(device, end):
    ctx = mp.get_context("spawn")
    before = allocated(device)
    process, sender, ask = keeper(ctx)
    x = made(1000, device=device).add_(made(1000, device=device))[1:]
    sender.send(x)
    assert asked(ask, "number") == 2
    del x
    gc.collect()
    device_memory.collect()
    assert allocated(device) > before, "the other process has it"
    # A new allocation must not reuse the shared memory.
    other = made(1000, device=device)
    assert asked(ask, "number") == 2
    del other
    if end == "let go":
        assert asked(ask, "let go") == "gone"
        if device == "shelf":
            found = asked(ask, "told")
            assert (
                found["opened"] == 0 and found["waits"] == 1 and found["synchronizations"] >= 1 and found["events"] == 0
            )
    elif end == "killed":
        os.kill(process.pid, signal.SIGKILL)
    if end in ("let go", "end"):
        ask.send("end")
    wait_for(lambda: settled(device)[0] == before, "the memory has not come back")
    process.join(30)
    sender.close(), ask.close()


def test_receivers_are_killed_at_any_moment(device):
    ctx = mp.get_context("forkserver")
    draw = random.Random(2)
    for _ in range(5):
        (receiver, sender), (answers, answered) = ctx.Pipe(duplex=False), ctx.Pipe(duplex=False)
        process = ctx.Process(target=work.take_and_drop, args=(receiver, answered))
        process.start()
        receiver.close(), answered.close()
        end = None
        with contextlib.suppress(BrokenPipeError):
            while end is None or time.monotonic() < end:
                x = made(64, device=device)
                sender.send((x, x[3:]))
                if answers.poll(0.001):
                    with contextlib.suppress(EOFError):
                        assert answers.recv().cpu().tolist()[0] == 4
                    end = end or time.monotonic() + draw.random() * 0.02
                    if end - time.monotonic() < 0.005:
                        process.kill()
        process.kill()
        process.join()
        sender.close(), answers.close()
        del x
    # The fixture checks for leaks.


def test_messages_that_nobody_reads(device):
    before = allocated(device)
    here, there = mp.Pipe()
    queue = mp.get_context("spawn").Queue()
    for _ in range(20):
        here.send(made(100, device=device))
        queue.put(made(100, device=device))
    assert allocated(device) > before
    here.close(), there.close()
    queue.close()
    queue.join_thread()
    del queue
    wait_for(lambda: settled(device)[0] == before, "the memory has not come back")


def test_passed_on(device):
    ctx = mp.get_context("spawn")
    receiver, sender = ctx.Pipe(duplex=False)
    process, onward, ask = keeper(ctx)
    middle = ctx.Process(target=work.pass_on, args=(receiver, onward))
    middle.start()
    x = made(6, device=device)[3:]
    sender.send(x)
    assert asked(ask, "number") == 6
    assert x.cpu().tolist() == [6, 8, 10]
    sender.send("end")
    middle.join(30)
    assert asked(ask, "number") == 6
    ask.send("end")
    process.join(30)
    for end in (receiver, sender, onward, ask):
        end.close()


def test_maker_is_killed_before_the_message_is_read(device):
    ctx = mp.get_context("spawn")
    receiver, sender = ctx.Pipe(duplex=False)
    process = ctx.Process(target=work.make_and_wait, args=(device, sender))
    process.start()
    sender.close()
    assert receiver.poll(60)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with pytest.raises(mp.SenderGoneError, match="has ended"):
        receiver.recv()
    with pytest.raises(EOFError):
        receiver.recv()
    receiver.close()


def test_maker_ends_too_early(device, capfd):
    queue = mp.get_context("spawn").Queue()
    process = mp.get_context("spawn").Process(target=work.make_and_end, args=(device, queue))
    process.start()
    process.join(60)
    assert process.exitcode == 0 and "before all shared tensors" in capfd.readouterr().err
    with pytest.raises(mp.SenderGoneError, match="live"):
        queue.get(timeout=10)
    queue.close()


def test_what_is_passed_on_when_the_maker_is_gone(device):
    ctx = mp.get_context("spawn")
    receiver, sender = ctx.Pipe(duplex=False)
    process = ctx.Process(target=work.make_and_wait, args=(device, sender))
    process.start()
    sender.close()
    x = receiver.recv()
    assert x.cpu().tolist() == [1] * 4
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    receiver.close()
    here, there = mp.Pipe()
    with pytest.raises(mp.SenderGoneError, match="has ended"):
        here.send(x)
    here.close(), there.close()


def test_after_a_fork(device):
    x = made(3, device=device)
    mine, theirs = mp.Pipe()
    mine.send(x)
    y = theirs.recv()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads and fork
        process = mp.get_context("fork").Process(target=work.use_after_fork, args=(x, theirs))
        process.start()
    assert "forked subprocess" in mine.recv()
    process.join(30)
    assert y.cpu().tolist() == [0, 1, 2]
    mine.close(), theirs.close()


def test_forked_children_keep_nothing(device):
    """A surviving forked child neither holds its parent's memory nor hides that the parent has
    ended.
    """
    before = allocated(device)
    process, sender, ask = keeper(mp.get_context("spawn"))
    sender.send(made(10, device=device))
    assert asked(ask, "number") == 0
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        time.sleep(60)
        os._exit(0)
    try:
        ask.send("end")
        process.join(30)
        wait_for(lambda: settled(device)[0] == before, "the child has a lease")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    sender.close(), ask.close()


def test_numbers_of_devices(shelf, monkeypatch):
    """The receiver identifies the device by its identity, not by its index."""
    ctx = mp.get_context("spawn")
    first, second = made(3, device="shelf:0"), made(3, device="shelf:1")
    monkeypatch.setenv("SHELVES", "1,2")
    receiver, sender = ctx.Pipe(duplex=False)
    answers, answered = ctx.Pipe(duplex=False)
    process = ctx.Process(target=work.try_to_receive, args=(receiver, answered))
    process.start()
    receiver.close(), answered.close()
    for x, found in (
        (second, "shelf:0 [0.0, 1.0, 2.0]"),
        (first, "shelf:0, which is none of the 2 devices that this process sees"),
    ):
        sender.send(x)
        assert answers.poll(30) and found in answers.recv()
    sender.send(None)
    process.join(30)
    sender.close(), answers.close()


def test_a_device_without_handles_says_so():
    """Backends without handles report an error. Host memory uses its own path."""
    assert not device_memory.can_be_sent("cpu")
    c.cuda.ipc_collect()
    assert c.ones(2).is_shared() is False
