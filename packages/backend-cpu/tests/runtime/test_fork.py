"""Test computing after forks, in both processes, and from several Python threads at once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import candelabra

PRELUDE = """
import os, signal, sys, threading
signal.alarm(100)
import candelabra

candelabra.set_num_threads(2)
a = candelabra.arange(700.0 * 700).reshape(700, 700).remainder(7)
expected = a.numpy() @ a.numpy()
many = candelabra.ones(10_000_000)

def compute():
    assert ((a @ a).numpy() == expected).all()
    assert many.sum().item() == 10_000_000
    assert (many + many).sum().item() == 20_000_000
    image = candelabra.ones(4, 8, 32, 32)
    out = candelabra.ops.convolution(image, candelabra.ones(8, 8, 3, 3), None, 1, 0, 1, 1)
    assert (out == 72).all().item()
    assert many[:300_000].sort()[0].sum().item() == 300_000
"""

FORK = """
compute()
for _ in range(3):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        status = 1
        try:
            compute()
            candelabra.set_num_threads(2)  # asks for what a forked child cannot have: stays at one
            compute()
            grandchild = os.fork()
            if grandchild == 0:
                compute()
                os._exit(0)
            status = 0 if os.waitpid(grandchild, 0)[1] == 0 else 2
        finally:
            os._exit(status)
    compute()
    assert os.waitpid(child, 0)[1] == 0
compute()
assert candelabra.get_num_threads() == 2
print("fine")
"""

CHILD_THAT_EXITS = """
child = os.fork()
if child == 0:
    signal.alarm(60)
    compute()
    sys.exit(0)  # through everything that is called when a process ends
assert os.waitpid(child, 0)[1] == 0
compute()
print("fine")
"""

FORK_WHILE_OTHERS_COMPUTE = """
compute()
stop = threading.Event()
def work():
    while not stop.is_set():
        (a @ a), many.exp().sum(), [candelabra.ones(n) for n in (10, 1000, 100_000)]
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
failed = False
for _ in range(6):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        status = 1
        try:
            compute()
            status = 0
        finally:
            os._exit(status)
    failed |= os.waitpid(child, 0)[1] != 0
stop.set()
for thread in threads: thread.join()
compute()
print("failed" if failed else "fine")
"""

POOL = """
import multiprocessing
def task(n):
    compute()
    return (candelabra.ones(n, n) @ candelabra.ones(n, n)).sum().item()
if __name__ == "__main__":
    compute()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(task, [100, 200, 300, 400]) == [n**3 for n in (100, 200, 300, 400)]
    compute()
    print("fine")
"""


@pytest.mark.parametrize(
    "program", [FORK, CHILD_THAT_EXITS, FORK_WHILE_OTHERS_COMPUTE, POOL], ids=["fork", "exit", "busy", "pool"]
)
def test_both_processes_compute_after_a_fork(program, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PRELUDE + program)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env=os.environ,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "fine"), done.stderr[-3000:]


def in_threads(count, work):
    """Run work(number) on `count` threads at once, and raise the error of any of them."""
    failures: list[BaseException] = []
    start = threading.Barrier(count)

    def run(number):
        try:
            start.wait()
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for failure in failures:
        raise failure


def test_several_threads_compute_at_once():
    generator = np.random.default_rng(0)
    matrices = [generator.integers(0, 5, (257, 257)).astype(np.float32) for _ in range(4)]
    long = [generator.integers(-9, 9, 200_000).astype(np.float32) for _ in range(4)]

    def work(number):
        matrix, row = matrices[number], long[number]
        m, x = candelabra.from_numpy(matrix), candelabra.from_numpy(row)
        for _ in range(10):
            assert np.array_equal((m @ m).numpy(), matrix @ matrix)
            assert x.sum().item() == row.sum()
            assert np.array_equal(x.sort()[0].numpy(), np.sort(row))
            assert np.array_equal((x * 2 + 1).numpy(), row * 2 + 1)
            assert np.array_equal(x.cumsum(0, dtype=candelabra.int64).numpy(), row.astype(np.int64).cumsum())

    in_threads(4, work)


def test_other_threads_run_while_a_kernel_does():
    m = candelabra.ones(1500, 1500)
    turns = 0
    done = threading.Event()

    def compute():
        for _ in range(5):
            m @ m
        done.set()

    thread = threading.Thread(target=compute)
    thread.start()
    while not done.wait(0.001):
        turns += 1
    thread.join()
    assert turns > 5  # if a product held the GIL, this thread would stop


def test_tensors_are_made_and_freed_on_many_threads():
    candelabra.backends.empty_cache("cpu")
    before = candelabra.backends.memory_statistics("cpu")["allocated"]
    handed_over: list = []

    def work(number):
        generator = np.random.default_rng(number)
        held: dict[int, tuple] = {}
        for step in range(1500):
            size = int(2 ** generator.uniform(0, 18))
            held[step % 17] = (candelabra.full((size,), float(step)), step)
            if step % 50 == 0:
                handed_over.append(candelabra.full((size,), 3.0))  # another thread frees it
            tensor, value = held[int(generator.choice(list(held)))]
            assert tensor[0].item() == value
            assert tensor[-1].item() == value

    in_threads(4, work)
    assert all(tensor[-1].item() == 3 for tensor in handed_over)
    del handed_over[:]
    assert candelabra.backends.memory_statistics("cpu")["allocated"] == before


def test_threads_have_their_own_modes():
    seen = {}

    def work(number):
        with candelabra.no_grad() if number % 2 else candelabra.enable_grad():
            for _ in range(200):
                assert candelabra.is_grad_enabled() == (number % 2 == 0)
        seen[number] = candelabra.is_grad_enabled()

    in_threads(4, work)
    assert seen == dict.fromkeys(range(4), True)


def test_errors_on_threads():
    def work(_number):
        for _ in range(50):
            with pytest.raises(IndexError, match="out of"):
                candelabra.ones(200_000)[candelabra.full((100_000,), 200_000, dtype=candelabra.int64)]
            with pytest.raises(RuntimeError, match="ZeroDivision"):
                candelabra.ones(100_000, dtype=candelabra.int64) // candelabra.zeros(100_000, dtype=candelabra.int64)

    in_threads(3, work)


def test_no_machine_has_a_million_threads():
    code = """
import candelabra
candelabra.set_num_threads(10**6)
assert 1 < candelabra.get_num_threads() < 10**5
assert candelabra.ones(10_000_000).sum().item() == 10_000_000
assert (candelabra.ones(600, 600) @ candelabra.ones(600, 600)).sum().item() == 600**3
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=100, check=False).returncode == 0
