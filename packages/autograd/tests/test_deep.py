"""Test deep graphs: neither backward nor deallocation recurses."""

from __future__ import annotations

import sys

import candelabra
from candelabra import autograd

LENGTH = 100_000


def test_chain_that_saves_nothing():
    x = candelabra.ones(1, requires_grad=True)
    y = x
    for _ in range(LENGTH):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0


def test_chain_that_saves_its_values():
    x = candelabra.ones(1, requires_grad=True)
    y = x
    for _ in range(LENGTH):
        y = y * y
    y.backward()
    assert x.grad.item() == 2.0**1000 or x.grad.item() == float("inf")


def test_chain_of_two_branches():
    x = candelabra.ones(1, dtype=candelabra.float64, requires_grad=True)
    a = b = x * 0.5
    for _ in range(LENGTH // 2):
        a, b = a + 0.25 * b, b
    (a + b).backward()
    assert abs(x.grad.item() - (0.5 * (1 + 0.25 * (LENGTH // 2)) + 0.5)) < 1e-6


def test_freed_without_being_walked():
    limit = sys.getrecursionlimit()
    for operation in (lambda y: y + 1, lambda y: y * y, lambda y: y.exp()):
        y = candelabra.zeros(1, requires_grad=True)
        for _ in range(LENGTH):
            y = operation(y)
        del y
    assert sys.getrecursionlimit() == limit


def test_grad_over_a_long_chain():
    x = candelabra.ones(1, requires_grad=True)
    y = x
    for _ in range(LENGTH):
        y = y + 1
    assert autograd.grad(y, x)[0].item() == 1.0


def test_custom_functions_in_a_long_chain():
    class Same(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = candelabra.ones(1, requires_grad=True)
    y = x
    for _ in range(LENGTH // 10):
        y = Same.apply(y)
    y.backward()
    assert x.grad.item() == 1.0
