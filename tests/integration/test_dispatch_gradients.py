"""Autograd records operators that ``__torch_function__`` and ``__torch_dispatch__`` compute."""

from __future__ import annotations

import candelabra
from candelabra import Tensor, nn
from candelabra.fake_tensor import FakeTensorMode
from candelabra.nn import functional as F
from candelabra.python_dispatch import TorchDispatchMode


class Sub(Tensor):
    pass


def test_gradients_of_subclasses():
    weight = candelabra.ones(3, requires_grad=True)
    loss = (weight * 2).as_subclass(Sub).sum()
    assert type(loss) is Sub
    loss.backward()
    assert weight.grad.tolist() == [2, 2, 2]
    leaf = candelabra.ones(3).as_subclass(Sub).requires_grad_()
    F.relu(leaf * 3).sum().backward()
    assert leaf.grad.tolist() == [3, 3, 3]
    assert leaf.grad is leaf.grad


def test_results_in_the_autograd_graph_stay_there():
    x = candelabra.ones(2, requires_grad=True)
    made = (x * 3).exp().as_subclass(Sub) * 2
    assert made.grad_fn is not None
    (grad,) = candelabra.autograd.grad(made.sum(), x)
    assert grad.allclose(6 * (x * 3).exp())


def test_a_mode_sees_the_backward_pass():
    class Names(TorchDispatchMode):
        def __init__(self):
            self.names = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(str(func))
            return func(*args, **(kwargs or {}))

    a, b = (candelabra.ones(2, 2, requires_grad=True) for _ in range(2))
    with Names() as mode:
        (a @ b).sum().backward()
    assert mode.names.count("aten.mm.default") == 3
    assert a.grad.tolist() == [[2, 2], [2, 2]]


class Logged(Tensor):
    __torch_function__ = candelabra._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        made = Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=requires_grad)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inner = [value.inner if isinstance(value, Logged) else value for value in args]
        return Logged(func(*inner, **(kwargs or {})))


def test_gradients_of_wrappers():
    x = Logged(candelabra.tensor([1.0, 2.0]), requires_grad=True)
    y = (x * x).sum()
    assert type(y) is Logged
    assert y.requires_grad
    y.backward()
    assert x.grad.inner.tolist() == [2, 4]


def test_a_fake_training_step():
    with FakeTensorMode():
        model = nn.Sequential(nn.Linear(1 << 16, 1 << 16), nn.ReLU(), nn.Linear(1 << 16, 3))
        loss = F.cross_entropy(model(candelabra.ones(2, 1 << 16)), candelabra.zeros(2, dtype=candelabra.int64))
        loss.backward()
    assert loss.shape == ()
    assert all(p.grad.shape == p.shape for p in model.parameters())
