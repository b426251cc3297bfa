"""Test checkpointing under PyTorch's path."""

import pytest

pytest.importorskip("candelabra.autograd", reason="checkpointing is about gradients: pip install candelabra-autograd")

import candelabra
from candelabra.utils import checkpoint


def test_gradients_are_those_without():
    calls = []

    def function(x):
        calls.append(1)
        return x.sin().exp()

    x = candelabra.tensor([0.5, 1.0], requires_grad=True)
    checkpoint.checkpoint(function, x, use_reentrant=False).sum().backward()
    assert len(calls) == 2
    expected = x.detach().cos() * x.detach().sin().exp()
    assert candelabra.allclose(x.grad, expected)
    assert candelabra.utils.checkpoint is checkpoint
