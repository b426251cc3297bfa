"""Test that unused memory is freed at once, without the garbage collector."""

from __future__ import annotations

import gc
import os

import pytest

import candelabra
from candelabra import autograd


def resident() -> int:
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def step(parameters, data):
    first, second = parameters
    hidden = (data @ first).tanh()
    loss = ((hidden @ second).sigmoid() - 0.5).square().mean()
    loss.backward()
    with candelabra.no_grad():
        for parameter in parameters:
            parameter.sub_(parameter.grad, alpha=0.01)
            parameter.grad = None


@pytest.mark.skipif("CANDELABRA_SANITIZED" in os.environ, reason="AddressSanitizer keeps what is freed for a while")
def test_ten_thousand_steps():
    parameters = [candelabra.rand(8, 16).requires_grad_(), candelabra.rand(16, 4).requires_grad_()]
    data = candelabra.rand(4, 8)
    for _ in range(500):
        step(parameters, data)
    before = resident()
    for _ in range(10_000):
        step(parameters, data)
    assert resident() - before < 5 * 2**20


def grows(work, times=300):
    """Return how many objects remain after `times` more runs of `work`."""
    for _ in range(20):
        work()
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(times):
            work()
        return len(gc.get_objects()) - before
    finally:
        gc.enable()


def test_no_cycles_in_what_is_recorded():
    x = candelabra.rand(3, 3).add(0.1).requires_grad_()

    def work():
        y = x * 1
        y[0].mul_(2)
        y = (y.exp().sigmoid().tanh().sqrt() @ x).softmax(-1).log_softmax(0).cumsum(0).relu().sort()[0]
        y = candelabra.cat([y, x]).max(0)[0].norm()
        autograd.grad(y, x)

    assert grows(work) < 50


def test_no_cycles_in_second_derivatives():
    x = candelabra.rand(3).add(0.1).requires_grad_()

    def work():
        (first,) = autograd.grad((x.exp() * x.sigmoid()).sum(), x, create_graph=True)
        first.sum().backward()
        x.grad = None

    assert grows(work) < 50


def test_no_cycles_in_custom_functions():
    class Exp(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(x, result)
            return result

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[1]

    x = candelabra.rand(3).requires_grad_()

    def work():
        Exp.apply(x).sum().backward()
        Exp.apply(x)

    assert grows(work) < 50


def test_failing_walks_leave_nothing():
    x = candelabra.rand(3).requires_grad_()

    def work():
        y = x.exp()
        z = (y * 2).sum()
        y.add_(1)
        try:
            z.backward()
            y.sum().backward()
        except RuntimeError:
            return
        raise AssertionError("the change of a saved tensor was not noticed")

    assert grows(work) < 50
