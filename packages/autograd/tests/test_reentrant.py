"""Backward passes within backward passes."""

from __future__ import annotations

import threading

import pytest

import candelabra


class Within(candelabra.autograd.Function):
    """Runs a backward pass within its own until its number is used up."""

    threads: set[int]
    fails_at: float

    @staticmethod
    def forward(ctx, x):
        with candelabra.enable_grad():
            ctx.x = x.detach().requires_grad_() - 1
        return ctx.x.detach()

    @staticmethod
    def backward(ctx, grad):
        Within.threads.add(threading.get_ident())
        if ctx.x.item() == Within.fails_at:
            raise ValueError("not here")
        if ctx.x > 0:
            with candelabra.enable_grad():
                Within.apply(ctx.x).sum().backward()
        return grad


def test_two_thousand_backward_passes_within_each_other():
    Within.threads, Within.fails_at = set(), -1.0
    x = candelabra.tensor(2000.5, requires_grad=True)
    Within.apply(x).sum().backward()
    assert x.grad.item() == 1
    assert len(Within.threads) > 1


def test_an_error_of_a_deep_one_reaches_the_program():
    Within.threads, Within.fails_at = set(), 10.0
    with pytest.raises(ValueError, match="not here"):
        Within.apply(candelabra.tensor(100.0, requires_grad=True)).sum().backward()
    assert len(Within.threads) > 1
