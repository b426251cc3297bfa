"""Test that signals interrupt kernels that run long: Ctrl-C raises, other handlers run, and results
that are not finished are dropped.

Times are the process's own, so that other processes of the machine do not matter.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from harness import BLAS

SETUP = """
import signal, threading, time
import candelabra as c
c.manual_seed(0)
"""

# Expressions and the tensors that they need; each takes a second or so on one thread.
LONG = {
    # Rows that overlap, so that many elements need little memory.
    "sum": ("x = c.ones(300_000).as_strided((100_000, 150_000), (1, 1))", "x.sum()"),
    "sum_of_long_rows": ("x = c.ones(10**7).as_strided((1000, 9_990_000), (1, 1))", "x.sum(1)"),
    "sum_of_columns": ("x = c.ones(300_000).as_strided((100_000, 150_000), (1, 1))", "x.sum(0)"),
    "elementwise": ("x = c.rand(40_000_000, dtype=c.float64) + 1", "c.special.zeta(x, x)"),
    "sort": ("x = c.rand(12_000_000)", "c.sort(x)"),
    "sort_of_rows": ("x = c.rand(120, 300_000)", "c.sort(x, 1)"),
    "cumsum": ("x = c.ones(1).expand(400_000_000)", "c.cumsum(x, 0, dtype=c.uint8)"),
    "logcumsumexp": ("x = c.rand(40_000_000)", "c.logcumsumexp(x, 0)"),
    "convolution": (
        "x, w = c.rand(32, 128, 96, 96), c.rand(128, 128, 5, 5)",
        "c.ops.convolution(x, w)",
    ),
    "products_of_a_batch": ("x = c.rand(24, 1200, 1200, dtype=c.float64)", "c.bmm(x, x)"),
    "product": ("x = c.rand(3000, 3000, dtype=c.complex128)", "c.mm(x, x)"),
    "factorization": ("x = c.rand(4000, 4000, dtype=c.float64)", "c.linalg.lu_factor(x)"),
}

INTERRUPT = """
class Ended(Exception):
    pass
def end(*_):
    raise Ended
started = time.process_time()
{call}
whole = time.process_time() - started
signal.signal(signal.SIGPROF, end)
started = time.process_time()
signal.setitimer(signal.ITIMER_PROF, whole / 5)
try:
    result = {call}
except Ended:
    taken = time.process_time() - started
else:
    raise SystemExit("the call ended before the signal")
assert taken < 0.8 * whole, f"the signal was seen after {{taken}} s of {{whole}} s"
# The threads take up the next call, and tensors are as they were.
x = c.arange(300_000.0, dtype=c.float64)
assert c.sum(x * 2).item() == 299_999 * 300_000
"""


def run(code: str, threads: int = 1) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SETUP + code],
        capture_output=True,
        text=True,
        timeout=500,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
    )


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", LONG)
def test_a_signal_ends_the_kernel(name: str, threads: int) -> None:
    if threads == 2 and name not in ("elementwise", "sort", "sum"):
        pytest.skip("one loop of each driver is enough")
    if name == "factorization" and BLAS == "OpenBLAS":
        pytest.skip("OpenBLAS tells nothing of its progress")
    setup, call = LONG[name]
    done = run(setup + INTERRUPT.format(call=call), threads)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout


CTRL_C = """
import os
out = c.full((8_000_000,), -1.0, dtype=c.float64)
x = c.rand(8_000_000, dtype=c.float64) + 1
kept = x.clone()
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    for _ in range(1000):  # minutes
        c.special.zeta(x, x, out=out)
        out.fill_(-1.0)
except KeyboardInterrupt:
    pass
else:
    raise SystemExit("not interrupted")
assert c.equal(x, kept)
assert out.shape == x.shape and out[-1].item() in (-1.0, c.special.zeta(x[-1:], x[-1:]).item())
"""


def test_ctrl_c() -> None:
    done = run(CTRL_C, 2)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout


HANDLER = """
seen = []
def look(*_):  # computes, too, with a team of threads and with a library
    x = c.arange(200_000.0)
    y = c.ones(300, 300) @ c.ones(300, 300)
    seen.append((c.sqrt(x * x)[-1].item(), y[5, 7].item()))
x = c.rand(30_000_000, dtype=c.float64) + 1
expected = c.special.zeta(x, x)
signal.signal(signal.SIGPROF, look)
signal.setitimer(signal.ITIMER_PROF, 0.1, 0.1)
got = c.special.zeta(x, x)
signal.setitimer(signal.ITIMER_PROF, 0)
assert c.equal(got, expected)
assert seen and set(seen) == {(199_999.0, 300.0)}, seen
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_a_handler_that_returns_lets_the_kernel_go_on(threads: int) -> None:
    done = run(HANDLER, threads)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout


OTHER_THREAD = """
# Handlers run on the main thread: kernels of others go on, and give the bits they give alone.
x = c.rand(30_000_000, dtype=c.float64) + 1
expected = c.special.zeta(x, x)
results = []
thread = threading.Thread(target=lambda: results.append(c.special.zeta(x, x)))
seen = []
signal.signal(signal.SIGPROF, lambda *_: seen.append(1))
thread.start()
signal.setitimer(signal.ITIMER_PROF, 0.05, 0.05)
while thread.is_alive():
    thread.join(0.01)
signal.setitimer(signal.ITIMER_PROF, 0)
assert seen and c.equal(results[0], expected)
"""


def test_kernels_of_other_threads_go_on() -> None:
    done = run(OTHER_THREAD)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout
