"""Test that checkpointing gives the same gradients and random numbers, and saves memory."""

from __future__ import annotations

import weakref

import pytest

import candelabra
from candelabra import autograd
from candelabra.autograd.checkpoint import CheckpointError, checkpoint, checkpoint_sequential


def leaf(*values):
    return candelabra.tensor(values, dtype=candelabra.float64, requires_grad=True)


@pytest.mark.parametrize("reentrant", [False, True])
def test_same_gradients(reentrant):
    x, w = leaf(0.5, 1.0), leaf(2.0, 3.0)
    calls = []

    def block(a, b):
        calls.append(1)
        return (a * b).sin().exp() * a

    checkpoint(block, x, w, use_reentrant=reentrant).sum().backward()
    assert len(calls) == 2
    expected = autograd.grad(block(x, w).sum(), (x, w))
    assert x.grad.tolist() == pytest.approx(expected[0].tolist())
    assert w.grad.tolist() == pytest.approx(expected[1].tolist())


def test_parameters_from_outside():
    x, w = leaf(0.5, 1.0), leaf(2.0, 3.0)
    checkpoint(lambda a: (a * w).exp(), x, use_reentrant=False).sum().backward()
    expected = autograd.grad((x * w).exp().sum(), (x, w))
    assert w.grad.tolist() == pytest.approx(expected[1].tolist())


@pytest.mark.parametrize("reentrant", [False, True])
def test_random_numbers_are_drawn_again(reentrant):
    x = leaf(*[1.0] * 20)

    def block(a):
        return a * candelabra.rand(20, dtype=candelabra.float64) * a

    y = checkpoint(block, x, use_reentrant=reentrant)
    after = candelabra.rand(3)
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx((2 * y).tolist())
    candelabra.manual_seed(0)
    candelabra.rand(20, dtype=candelabra.float64)
    assert candelabra.rand(3).tolist() == after.tolist()


def test_intermediate_results_are_not_kept():
    x = leaf(1.0, 2.0)
    seen = []

    def block(a):
        middle = a * 2
        seen.append(weakref.ref(middle))
        return middle * middle

    y = checkpoint(block, x, use_reentrant=False)
    assert seen[0]() is None
    y.sum().backward()
    assert x.grad.tolist() == [8.0, 16.0]


def test_nested_and_several_results():
    x = leaf(0.5, 1.0)

    def inner(a):
        return a.sin() * a

    def outer(a):
        b = checkpoint(inner, a.exp(), use_reentrant=False)
        return b * a, b.sum()

    first, second = checkpoint(outer, x, use_reentrant=False)
    (first.sum() + second).backward()
    expected = autograd.grad((x.exp().sin() * x.exp() * (x + 1)).sum(), x)[0]
    assert x.grad.tolist() == pytest.approx(expected.tolist())


def test_second_derivative():
    x = leaf(0.5, 1.0)
    (first,) = autograd.grad(checkpoint(lambda a: (a * a).exp(), x, use_reentrant=False).sum(), x, create_graph=True)
    (second,) = autograd.grad(first.sum(), x)
    (plain,) = autograd.grad((x * x).exp().sum(), x, create_graph=True)
    assert second.tolist() == pytest.approx(autograd.grad(plain.sum(), x)[0].tolist())


def test_another_second_computation_is_an_error():
    x = leaf(0.5, 1.0)
    state = []

    def block(a):
        state.append(1)
        return (a * a).exp() if len(state) == 1 else a.exp()

    y = checkpoint(block, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="different number of tensors"):
        y.sum().backward()


def test_contexts_and_arguments():
    x = leaf(0.5)
    entered = []

    class Note:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *error):
            return None

    y = checkpoint(
        lambda a, scale: a.exp() * scale,
        x,
        scale=2,
        use_reentrant=False,
        context_fn=lambda: (Note("first"), Note("second")),
    )
    y.sum().backward()
    assert entered == ["first", "second"]
    with pytest.raises(ValueError, match="context_fn"):
        checkpoint(lambda a: a, x, use_reentrant=True, context_fn=lambda: (Note(""), Note("")))
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(lambda a: a, x, determinism_check="maybe")


def test_without_recording():
    with candelabra.no_grad():
        assert not checkpoint(lambda a: a * 2, leaf(1.0), use_reentrant=False).requires_grad


def test_sequential():
    x = leaf(0.5, 1.0)
    chain = [candelabra.sin, candelabra.exp, candelabra.cos, candelabra.tanh, candelabra.sigmoid]
    for segments in (1, 2, 3, 5):
        x.grad = None
        checkpoint_sequential(chain, segments, x, use_reentrant=False).sum().backward()
        expected = autograd.grad(x.sin().exp().cos().tanh().sigmoid().sum(), x)[0]
        assert x.grad.tolist() == pytest.approx(expected.tolist())
    with pytest.raises(ValueError, match="segments has to be between 1 and 5"):
        checkpoint_sequential(chain, 6, x, use_reentrant=False)


def test_the_second_computation_stops_when_it_has_what_is_needed():
    from candelabra.autograd.checkpoint import set_checkpoint_early_stop

    reached = []

    def function(x):
        made = x.exp()
        reached.append("end")
        return made

    for early, times in ((True, 1), (False, 2)):
        reached.clear()
        x = candelabra.ones(2, requires_grad=True)
        with set_checkpoint_early_stop(early):
            made = checkpoint(function, x, use_reentrant=False)
        made.sum().backward()
        assert len(reached) == times
        assert candelabra.allclose(x.grad, x.detach().exp())


def test_within_a_transformation_it_is_the_function():
    x = candelabra.ones(2)
    gradient = candelabra.func.grad(lambda x: checkpoint(lambda x: x**3, x, use_reentrant=False).sum())(x)
    assert gradient.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_autocast_holds_in_the_recomputation(use_reentrant):
    weight = candelabra.ones(4, 4, requires_grad=True)
    x = candelabra.ones(2, 4, requires_grad=True)
    with candelabra.autocast(weight.device.type, dtype=candelabra.bfloat16):
        y = checkpoint(lambda v: (v @ weight).relu() @ v.T, x, use_reentrant=use_reentrant)
    y.float().sum().backward()
    assert y.dtype is candelabra.bfloat16
    assert x.grad.shape == (2, 4) and weight.grad.shape == (4, 4)


def test_autocast_that_is_off_holds_in_the_recomputation():
    weight = candelabra.ones(4, 4, requires_grad=True)
    y = checkpoint(lambda v: (v @ weight).sin(), candelabra.ones(2, 4), use_reentrant=False)
    with candelabra.autocast(weight.device.type, dtype=candelabra.bfloat16):
        y.sum().backward()
    assert weight.grad.dtype is candelabra.float32


@pytest.mark.parametrize("inputs", [True, False])
def test_reentrant_checkpoints_need_a_pass_to_all_leaves(inputs):
    x = candelabra.ones(2, requires_grad=True)
    y = checkpoint(candelabra.exp, x, use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match=r"torch\.utils\.checkpoint is incompatible with \.grad\(\)"):
        _ = y.backward(inputs=[x]) if inputs else autograd.grad(y, x)
    checkpoint(candelabra.exp, x, use_reentrant=True).sum().backward()
    assert x.grad.tolist() == x.exp().tolist()


def test_reentrant_checkpoints_of_a_function_that_returns_its_input():
    x = candelabra.ones(2, requires_grad=True)
    checkpoint(lambda t, other: t if other is None else t + other, x, None, use_reentrant=True).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_the_parameter_is_to_be_passed():
    x = candelabra.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="the use_reentrant parameter"):
        checkpoint(candelabra.sin, x).sum().backward()
    assert x.grad is not None


def test_arguments_without_gradients_are_the_same_objects():
    given = []

    def function(x, constant):
        given.append(constant)
        return x * constant

    constant = candelabra.ones(2)
    checkpoint(function, candelabra.ones(2, requires_grad=True), constant, use_reentrant=False).sum().backward()
    assert len(given) == 2
    assert all(entry is constant for entry in given)


def test_saved_tensors_are_read_once():
    class Twice(candelabra.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            assert len(ctx.saved_tensors) == 1
            with pytest.raises(RuntimeError, match="already unpacked once"):
                _ = ctx.saved_tensors
            return grad

    x = candelabra.ones(2, requires_grad=True)
    checkpoint(lambda x: Twice.apply(x * x), x, use_reentrant=False).sum().backward()
    assert x.grad.tolist() == [2, 2]
