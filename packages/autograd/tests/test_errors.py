"""Test that errors match PyTorch's and leave autograd usable."""

from __future__ import annotations

import pytest

import candelabra
from candelabra import autograd


@pytest.fixture
def x():
    return candelabra.ones(3, requires_grad=True)


def test_no_grad_required():
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        candelabra.ones(1).sum().backward()
    with pytest.raises(RuntimeError, match="element 1 of tensors does not require grad"):
        autograd.backward([candelabra.ones(1, requires_grad=True), candelabra.ones(1)])


def test_gradient_of_a_vector_needs_a_vector(x):
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 1).backward()
    with pytest.raises(RuntimeError, match="only for real scalar outputs but got"):
        (x.sum() * 1j).backward()


def test_wrong_gradients(x):
    with pytest.raises(
        RuntimeError,
        match=r"Mismatch in shape: grad_output\[0\] has a shape of .*\[2\].* and output\[0\] has a shape of .*\[3\]",
    ):
        (x * 1).backward(candelabra.ones(2))
    with pytest.raises(RuntimeError, match="both grad_output and output are required to have the same dtype"):
        (x * 1).backward(candelabra.ones(3, dtype=candelabra.complex64))
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got"):
        (x * 1).backward(3)
    with pytest.raises(RuntimeError, match="got 1 tensors and 2 gradients"):
        autograd.backward([x * 1], [candelabra.ones(3), candelabra.ones(3)])


@pytest.mark.parametrize("function", [lambda x: x.exp(), lambda x: x * x, lambda x: x.sin()])
def test_second_walk(x, function):
    y = function(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    x.grad = None
    function(x).sum().backward()
    assert x.grad is not None


def test_second_walk_over_what_keeps_no_tensor(x):
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_changed_result(x):
    y = x.exp()
    y.add_(1)
    with pytest.raises(
        RuntimeError,
        match=r"modified by an inplace operation: \[candelabra.FloatTensor \[3\]\], which is output 0 of ExpBackward0, is at version 1; expected version 0",
    ):
        y.sum().backward()


def test_changed_input(x):
    a = x * 1
    b = a * a
    a.add_(1)
    with pytest.raises(
        RuntimeError, match=r"output 0 of AddBackward0, is at version 1; expected version 0 instead.*MulBackward0"
    ):
        b.sum().backward()


def test_changed_through_a_view_and_without_recording(x):
    a = x * 1
    b = a.sin()
    with candelabra.no_grad():
        a[0] = 5
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        b.sum().backward()


def test_change_of_data_is_not_noticed(x):
    a = x * 1
    b = a * a
    a.data.add_(1)
    b.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0]


def test_leaf_in_place(x):
    version = x._version
    message = "^a leaf Variable that requires grad is being used in an in-place operation.$"
    for change in (lambda: x.add_(1), lambda: x.zero_(), lambda: x.copy_(candelabra.ones(3)), lambda: x.uniform_()):
        with pytest.raises(RuntimeError, match=message):
            change()
    with pytest.raises(
        RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation."
    ):
        x[0].add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf"):
        x[0] = 1
    assert x._version == version
    assert x.tolist() == [1.0, 1.0, 1.0]
    with candelabra.no_grad():
        x.add_(1)
        x[0] = 5
    assert x.tolist() == [5.0, 2.0, 2.0]
    assert x.is_leaf


def test_unused(x):
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph.*Set allow_unused=True"):
        autograd.grad((x * 1).sum(), candelabra.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        autograd.grad((x * 1).sum(), candelabra.ones(2))
    with pytest.raises(RuntimeError, match="`inputs` argument to `grad\\(\\)` cannot be empty"):
        autograd.grad((x * 1).sum(), [])
    with pytest.raises(RuntimeError, match="`inputs` argument to `backward\\(\\)` cannot be empty"):
        (x * 1).sum().backward(inputs=[])
    with pytest.raises(ValueError, match="allow_unused"):
        autograd.grad((x * 1).sum(), x, allow_unused=False, materialize_grads=True)


def test_batched(x):
    with pytest.raises(RuntimeError, match="If `is_grads_batched=True`, we interpret the first dimension"):
        autograd.grad(x * 1, x, candelabra.ones(2), is_grads_batched=True)


def test_requires_grad_of_a_result(x):
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        (x * 1).requires_grad = False


def test_integers_cannot_require_grad():
    with pytest.raises(RuntimeError, match="floating point and complex dtype can require gradients"):
        candelabra.ones(2, dtype=candelabra.int64).requires_grad_()


def test_out_is_refused(x):
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        candelabra.add(x, x, out=candelabra.empty(3))


def test_inference_tensors_cannot_be_saved(x):
    with candelabra.inference_mode():
        made = candelabra.ones(3)
    with pytest.raises(RuntimeError, match="[Ii]nference tensors"):
        (x * made).sum().backward()


def test_the_tape_survives_a_failing_gradient(x):
    class Failing(autograd.Function):
        @staticmethod
        def forward(ctx, value):
            return value * 1

        @staticmethod
        def backward(ctx, grad):
            raise ArithmeticError("no")

    with pytest.raises(ArithmeticError, match="no"):
        Failing.apply(x * 2).sum().backward()
    assert candelabra.is_grad_enabled()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
