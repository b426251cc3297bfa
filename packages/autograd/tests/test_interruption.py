"""Test that the tape is valid after an interruption in the middle of a backward pass."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import signal, time
import candelabra as c

class Ended(Exception):
    pass

def end(*_):
    raise Ended

x = (c.rand(4_000_000, dtype=c.float64) + 1).requires_grad_()
kept = x.detach().clone()

def loss(x):
    return (c.special.zeta(c.full_like(x, 2.5), c.tanh(x) + 1) * x).sum() if {forward} else c.digamma(c.digamma(x + 2) + 3).sum()

started = time.process_time()
if {forward}:
    with c.no_grad():
        loss(x)
else:
    loss(x).backward()
whole = time.process_time() - started
expected, x.grad = x.grad, None
signal.signal(signal.SIGPROF, end)
started = time.process_time()
interrupted = 0
for part in (0.2, 0.4, 0.6, 0.8):
    signal.setitimer(signal.ITIMER_PROF, whole * part)
    try:
        if {forward}:
            with c.no_grad():
                loss(x)
        else:
            loss(x).backward()
    except Ended:
        interrupted += 1
    signal.setitimer(signal.ITIMER_PROF, 0)
assert interrupted >= 2, interrupted
assert c.equal(x.detach(), kept) and c.is_grad_enabled()
x.grad = None
if not {forward}:
    loss(x).backward()
    assert c.equal(x.grad, expected)
y = x[:5] * 2
y.mul_(3)
y.sum().backward()
assert {forward} is False or x.grad[:6].tolist() == [6, 6, 6, 6, 6, 0]
"""


@pytest.mark.parametrize("forward", [False, True])
def test_the_tape_is_valid_after_an_interruption(forward: bool) -> None:
    code = CODE.replace("{forward}", str(forward))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]
