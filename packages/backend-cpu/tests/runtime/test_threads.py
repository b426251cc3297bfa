"""Test threads: counts, results that do not depend on the count, errors on threads, and forks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from harness import OK, VALUE_ERROR, KernelError, Scalar, backend, call


@pytest.fixture(autouse=True)
def _restore_threads():  # type: ignore[no-untyped-def]
    count = backend().table.thread_count()
    yield
    backend().table.set_thread_count(count)


def test_thread_count() -> None:
    table = backend().table
    assert table.set_thread_count(3) == OK
    assert table.thread_count() == 3
    assert table.set_thread_count(0) == VALUE_ERROR
    assert b"expects a positive integer" in table.last_error()
    assert table.thread_count() == 3


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    x = np.random.default_rng(0).standard_normal((700, 901)).astype(np.float32)
    results = []
    for count in (1, 2, 5):
        backend().table.set_thread_count(count)
        out = np.empty_like(x)
        call("exp", [out], x)
        turned = np.empty((901, 700), np.float32)
        call("add", [turned], x.T, out.T, Scalar(1))
        results.append((out, turned))
    for out, turned in results[1:]:
        assert np.array_equal(out, results[0][0])
        assert np.array_equal(turned, results[0][1])


def test_errors_on_threads_are_reported() -> None:
    backend().table.set_thread_count(4)
    a = np.ones(500_000, np.int32)
    b = a.copy()
    b[400_000] = 0
    with pytest.raises(KernelError, match="ZeroDivisionError"):
        call("remainder", [np.empty_like(a)], a, b)


def test_kernels_from_many_threads_at_once() -> None:
    backend().table.set_thread_count(2)
    x = np.random.default_rng(0).standard_normal(300_000).astype(np.float32)
    expected = np.empty_like(x)
    call("tanh", [expected], x)
    wrong: list[int] = []

    def work() -> None:
        for _ in range(5):
            out = np.empty_like(x)
            call("tanh", [out], x)
            if not np.array_equal(out, expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


FORK = """
import ctypes, os, sys, threading, signal
sys.path.insert(0, {tests!r})
import numpy as np
from harness import *
table = backend().table
table.set_thread_count(2)
x = np.ones((600, 600), np.float32)
out = np.empty_like(x)
call("exp", [out], x)                       # the team exists
call("mm", [out], x, x)                     # and MKL's or oneDNN's
stop = threading.Event()
def churn():                                # the allocator's lock is often held elsewhere
    import ctypes
    while not stop.is_set():
        request = Allocation_(size=ctypes.sizeof(Allocation_), bytes=100_000)
        table.allocate(0, ctypes.byref(request))
        table.deallocate(0, request.address, 100_000)
thread = threading.Thread(target=churn); thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        mine = np.empty_like(x)
        call("exp", [mine], x)
        same = np.array_equal(mine, np.broadcast_to(mine[0, 0], mine.shape))
        call("mm", [mine], x, x)
        table.allocate(0, ctypes.byref(Allocation_(size=ctypes.sizeof(Allocation_), bytes=100_000)))
        os._exit(0 if same and mine[3, 4] == 600 and table.thread_count() == 1 else 1)
    if os.waitpid(child, 0)[1] != 0:
        stop.set(); thread.join(); sys.exit("the child hung or was wrong")
stop.set(); thread.join()
call("exp", [out], x)
assert table.thread_count() == 2
print("fine")
"""


def test_fork_after_threads_were_used() -> None:
    code = FORK.format(tests=str(Path(__file__).parents[1]))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "fine", done.stderr[-2000:]


def test_environment_sets_the_number_of_threads() -> None:
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); from harness import backend; print(backend().table.thread_count())"
    for wanted in ("1", "3"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "OMP_NUM_THREADS": wanted},
        )
        assert done.stdout.strip() == wanted


OTHERS = """
import ctypes
import numpy as np
from harness import Scalar, backend, call
table = backend().table
gomp = ctypes.CDLL("libgomp.so.1")  # the one that is loaded already
gomp.omp_set_num_threads(7)
random = np.random.default_rng(0)
def check(what):
    assert gomp.omp_get_max_threads() == 7, (what, gomp.omp_get_max_threads())
for count in (1, 2, 3):
    table.set_thread_count(count)
    check("set_thread_count")
    for n in (8, 60, 130, 700):
        for dtype in (np.float32, np.float64, np.complex64):
            a = random.standard_normal((n, n)).astype(dtype) + 3 * np.eye(n, dtype=dtype)
            call("mm", [np.empty_like(a)], a, a.T)
            check(f"mm {n}")
            call("linalg_inv_ex", [np.empty_like(a), np.empty((), np.int32)], a)
            check(f"linalg_inv_ex {n}")
    x, weight = random.standard_normal((2, 16, 20, 20)).astype(np.float32), random.standard_normal((8, 16, 5, 5)).astype(np.float32)
    call("convolution", [np.empty((2, 8, 16, 16), np.float32)], x, weight, None, (1, 1), (0, 0), (1, 1), 1)
    check("convolution")
    many = random.standard_normal((300, 8, 8)).astype(np.float32)
    call("bmm", [np.empty_like(many)], many, many)
    check("bmm")
print("done")
"""


def test_others_keep_their_number_of_threads() -> None:
    """PyTorch or SciPy may share libgomp. Our last thread count must not affect theirs."""
    result = subprocess.run(
        [sys.executable, "-c", OTHERS],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "done"
