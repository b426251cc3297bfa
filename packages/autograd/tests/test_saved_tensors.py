"""Hooks of single saved tensors, and nodes that a program calls itself."""

from __future__ import annotations

import pytest

import candelabra
from candelabra import autograd
from candelabra.autograd import Function
from candelabra.autograd.graph import SavedTensor, are_saved_tensors_hooks_enabled, saved_tensors_hooks


@pytest.fixture
def x():
    return candelabra.tensor([1.0, 2.0], requires_grad=True)


def test_hooks_of_an_input(x):
    y = x * x
    saved = y.grad_fn._raw_saved_self
    assert isinstance(saved, SavedTensor)
    saved.register_hooks(lambda t: 2 * t, lambda t: t)
    assert y.grad_fn._saved_self.tolist() == [2, 4]
    y.sum().backward()
    assert x.grad.tolist() == [3, 6]


def test_hooks_of_a_result(x):
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t.tolist(), candelabra.tensor)
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


def test_hooks_are_asked_each_time(x):
    asked = []

    def unpack(t):
        asked.append(t)
        return t

    y = (x * x).sum()
    y.grad_fn.next_functions[0][0]._raw_saved_self.register_hooks(lambda t: t, unpack)
    y.backward(retain_graph=True)
    y.backward()
    assert len(asked) == 2


def test_hooks_of_a_custom_function(x):
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 * ctx.saved_tensors[0]

    y = Square.apply(x)
    first, second = y.grad_fn._raw_saved_tensors
    with pytest.raises(RuntimeError, match="None is forbidden"):
        second.register_hooks(lambda t: t, lambda t: t)
    first.register_hooks(lambda t: t * 3, lambda t: t)
    with pytest.raises(RuntimeError, match="already been set"):
        first.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert x.grad.tolist() == [6, 12]
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = y.grad_fn._raw_saved_tensors


def test_errors(x):
    y = x * x
    saved = y.grad_fn._raw_saved_self
    for hooks in ((lambda t: t,), (1, 1)):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            saved.register_hooks(*hooks)
    with pytest.raises(RuntimeError, match="modifying its input in place"):
        saved.register_hooks(lambda t: t.mul_(2), lambda t: t)
    y = x * x
    saved = y.grad_fn._raw_saved_self
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after it has been freed"):
        saved.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="from Python is forbidden"):
        SavedTensor()


def test_a_hook_for_all_does_not_change_its_input(x):
    with pytest.raises(RuntimeError, match="modifying its input in place"):
        with saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
            x.exp().exp()


def test_whether_hooks_may_be_entered():
    assert are_saved_tensors_hooks_enabled()
    with autograd.graph.disable_saved_tensors_hooks("not here"):
        assert not are_saved_tensors_hooks_enabled()


# ---- nodes


def test_a_node_is_a_function(x):
    y = x**2
    assert y.grad_fn(candelabra.ones(2)).tolist() == [2, 4]
    first, second = (x * x).grad_fn(candelabra.ones(2))
    assert first.tolist() == second.tolist() == [1, 2]
    with pytest.raises(TypeError, match="expected 1 arguments, got 0 arguments instead"):
        y.grad_fn()


def test_saved_sizes(x):
    assert x.sum().grad_fn._saved_self_sym_sizes == (2,)


# ---- hooks of nodes whose gradients are asked for


@pytest.fixture
def counted(x):
    """A result, two tensors on the way to it, and how often their hooks were called."""
    counts = {"tensor": 0, "before": 0, "after": 0}

    def count(name):
        counts[name] += 1

    b = x * 2
    c = (b * 2).sum()
    leaf = b.grad_fn.next_functions[0][0]
    for tensor in (x, b):
        tensor.register_hook(lambda grad: count("tensor"))
    for node in (leaf, b.grad_fn):
        node.register_prehook(lambda grads: count("before"))
        node.register_hook(lambda grads, outputs: count("after"))
    return c, b, leaf, counts


@pytest.mark.parametrize(("inner_only", "expected"), [(True, [1, 0, 0]), (False, [2, 1, 1])])
def test_grad_runs_no_node_that_it_only_asks(counted, x, inner_only, expected):
    c, b, _leaf, counts = counted
    autograd.grad(c, [b] if inner_only else [x, b])
    assert list(counts.values()) == expected


def test_backward_runs_the_nodes_of_its_inputs(counted, x):
    c, b, _leaf, counts = counted
    c.backward(inputs=[x, b])
    assert counts["tensor"] == counts["before"] == 2


def test_backward_to_the_edge_of_no_leaf(x):
    y = x.clone()
    edge = autograd.graph.get_gradient_edge(y)
    z = y.clone()
    z.sum().backward(inputs=[edge, z])
    assert z.grad.tolist() == [1, 1]


# ---- custom functions


def test_setup_context_gets_defaults(x):
    class Power(Function):
        @staticmethod
        def forward(x, exponent=3):
            return x**exponent

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.exponent = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * ctx.exponent * x ** (ctx.exponent - 1), None

    Power.apply(x).sum().backward()
    assert x.grad.tolist() == [3, 12]


def test_a_deprecated_name(x):
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            assert len(ctx.saved_variables) == 1
            return grad

    with pytest.warns(DeprecationWarning, match="saved_variables"):
        Same.apply(x).sum().backward()
