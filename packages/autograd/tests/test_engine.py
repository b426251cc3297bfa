"""Test the engine: backward(), grad(), accumulation, retain_graph, create_graph, pruning."""

from __future__ import annotations

import gc
import warnings
import weakref

import numpy
import pytest

import candelabra
from candelabra import autograd


def leaf(*values, dtype=candelabra.float64):
    return candelabra.tensor(values, dtype=dtype, requires_grad=True)


def values(tensor):
    return tensor.detach().numpy()


def test_chain():
    x = leaf(1.0, 2.0)
    (x * 3 + 1).exp().sum().backward()
    numpy.testing.assert_allclose(values(x.grad), 3 * numpy.exp(3 * numpy.array([1.0, 2.0]) + 1))


def test_shared_subexpression_and_diamond():
    x = leaf(2.0)
    y = x * x
    z = y + y * y + y
    z.backward()
    # z = 2 x^2 + x^4
    numpy.testing.assert_allclose(values(x.grad), [4 * 2 + 4 * 8])


def test_many_uses_of_one_tensor_are_summed():
    x = leaf(1.0, 2.0)
    y = x * 2
    total = y * 1.0
    for factor in (2.0, 3.0, 4.0, 5.0):
        total = total + y * factor
    total.sum().backward()
    numpy.testing.assert_allclose(values(x.grad), [30.0, 30.0])


def test_gradients_accumulate_over_calls():
    x = leaf(1.0)
    for expected in (2.0, 4.0, 6.0):
        (x * 2).sum().backward()
        assert x.grad.item() == expected


def test_accumulation_is_in_place_on_the_same_tensor():
    x = leaf(1.0)
    (x * 2).sum().backward()
    first = x.grad
    (x * 2).sum().backward()
    assert x.grad is first


def test_gradients_of_two_leaves_do_not_share_memory():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    ((x + y) * 2).sum().backward()
    assert x.grad.data_ptr() != y.grad.data_ptr()
    x.grad.zero_()
    numpy.testing.assert_array_equal(values(y.grad), [2.0, 2.0])


def test_given_gradient_is_not_kept_as_grad():
    x = leaf(1.0, 2.0)
    given = candelabra.ones(2, dtype=candelabra.float64)
    (x + 0).backward(given)
    assert x.grad.data_ptr() != given.data_ptr()
    x.backward(given)
    assert given.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("several", [False, True])
def test_first_gradient_is_taken_without_a_copy(several):
    seen = []

    class Made(autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            return inputs[0] * 1

        @staticmethod
        def backward(ctx, grad):
            made = [grad * 2 for _ in ctx.needs_input_grad]
            seen.extend(one.data_ptr() for one in made)
            return tuple(made)

    leaves = [leaf(1.0, 2.0) for _ in range(2 if several else 1)]
    Made.apply(*leaves).sum().backward()
    assert [one.grad.data_ptr() for one in leaves] == seen


def test_first_gradient_of_an_operator_is_taken_without_a_copy():
    x = leaf(*range(100))
    y = x * 2.0
    pointers = []
    y.grad_fn.register_hook(lambda inputs, outputs: pointers.append(inputs[0].data_ptr()))
    y.sum().backward()
    assert x.grad.data_ptr() == pointers[0]


def test_gradient_has_the_layout_of_the_leaf():
    x = candelabra.ones(2, 3, dtype=candelabra.float64)
    x = x.t().detach().requires_grad_()
    (x * 2).sum().backward()
    assert x.grad.stride() == x.stride()
    y = candelabra.ones(3, dtype=candelabra.float64, requires_grad=True)
    y.sum().backward()  # the gradient of a sum is expanded: stride 0
    assert y.grad.stride() == (1,)


def test_grad_returns_and_does_not_accumulate():
    x, y = leaf(2.0), leaf(3.0)
    of_x, of_y = autograd.grad((x * y).sum(), (x, y))
    assert (of_x.item(), of_y.item()) == (3.0, 2.0)
    assert x.grad is None
    assert y.grad is None


def test_grad_with_respect_to_an_intermediate():
    x = leaf(2.0)
    y = x * 3
    z = y * y
    of_y, of_x = autograd.grad(z.sum(), (y, x))
    assert (of_y.item(), of_x.item()) == (12.0, 36.0)


def test_grad_with_respect_to_the_output_itself():
    x = leaf(2.0)
    y = x * 3
    assert autograd.grad(y, y, retain_graph=True, grad_outputs=leaf(5.0))[0].item() == 5.0
    assert autograd.grad(x, x, grad_outputs=candelabra.ones(1, dtype=candelabra.float64))[0].item() == 1.0


def test_grad_computes_only_what_lies_on_the_way():
    calls = []

    class Watch(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            calls.append(1)
            return grad

    x, y = leaf(2.0), leaf(3.0)
    z = Watch.apply(x) * y
    autograd.grad(z.sum(), y)
    assert calls == []


def test_backward_with_inputs():
    x, y = leaf(2.0), leaf(3.0)
    z = x * 1
    (z * y).sum().backward(inputs=[x, z])
    assert x.grad.item() == 3.0
    assert z.grad.item() == 3.0
    assert y.grad is None


def test_unused_inputs():
    x, unused = leaf(1.0), leaf(1.0)
    y = (x * 2).sum()
    assert autograd.grad(y, (x, unused), allow_unused=True, retain_graph=True)[1] is None
    zeros = autograd.grad(y, (x, unused), materialize_grads=True)[1]
    assert zeros.item() == 0.0


def test_retain_graph():
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 8.0


def test_create_graph_and_third_derivative():
    x = leaf(2.0)
    y = x**4
    orders = []
    for _ in range(4):
        (y,) = autograd.grad(y.sum(), x, create_graph=True)
        orders.append(y.item())
    numpy.testing.assert_allclose(orders, [4 * 8, 12 * 4, 24 * 2, 24])


def test_double_backward_through_saved_results():
    for name in ("exp", "sigmoid", "tanh", "sqrt", "reciprocal", "rsqrt"):
        x = leaf(0.5, 1.5)
        (first,) = autograd.grad(getattr(x, name)().sum(), x, create_graph=True)
        (second,) = autograd.grad(first.sum(), x)
        step = 1e-5
        shifted = [
            autograd.grad(getattr(at, name)().sum(), at)[0]
            for at in (leaf(0.5 + step, 1.5 + step), leaf(0.5 - step, 1.5 - step))
        ]
        numpy.testing.assert_allclose(values(second), values((shifted[0] - shifted[1]) / (2 * step)), rtol=1e-6)


def test_backward_with_create_graph_leaves_a_grad_on_the_tape():
    x = leaf(3.0)
    (x * x).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    (second,) = autograd.grad(x.grad.sum(), x)
    assert second.item() == 2.0
    x.grad = None


def test_several_roots():
    x = leaf(1.0, 2.0)
    autograd.backward([x * 2, (x * 3).sum()], [candelabra.ones(2, dtype=candelabra.float64), None])
    assert x.grad.tolist() == [5.0, 5.0]


def test_is_grads_batched():
    x = leaf(1.0, 2.0)
    eye = candelabra.eye(2, dtype=candelabra.float64)
    (jacobian,) = autograd.grad(x * x, x, eye, is_grads_batched=True)
    numpy.testing.assert_array_equal(values(jacobian), [[2.0, 0.0], [0.0, 4.0]])


def test_broadcast_is_undone():
    a, b = candelabra.ones(3, 1, 2, requires_grad=True), candelabra.ones(4, 1, requires_grad=True)
    (a * b * 2).sum().backward()
    assert a.grad.shape == (3, 1, 2)
    assert b.grad.shape == (4, 1)
    assert a.grad.flatten().tolist() == [8.0] * 6
    assert b.grad.flatten().tolist() == [12.0] * 4


def test_empty_broadcast():
    a, b = candelabra.ones(1, 3, requires_grad=True), candelabra.ones(0, 3, requires_grad=True)
    (a * b).sum().backward()
    assert a.grad.tolist() == [[0.0, 0.0, 0.0]]
    assert b.grad.shape == (0, 3)


def test_promotion_is_undone():
    a = candelabra.ones(2, dtype=candelabra.float32, requires_grad=True)
    b = candelabra.ones(2, dtype=candelabra.float64, requires_grad=True)
    c = candelabra.ones(2, dtype=candelabra.complex128, requires_grad=True)
    made = a * b * c
    made.sum().backward(candelabra.tensor(1.0 + 1.0j, dtype=candelabra.complex128))
    assert (a.grad.dtype, b.grad.dtype, c.grad.dtype) == (candelabra.float32, candelabra.float64, candelabra.complex128)
    assert a.grad.tolist() == [1.0, 1.0]


def test_numbers_and_integer_tensors_need_no_gradient():
    x = leaf(2.0)
    y = 3 * x + candelabra.tensor([1]) - 1 / x
    y.sum().backward()
    assert x.grad.item() == 3 + 1 / 4


def test_no_grad_records_nothing_and_detach_cuts():
    x = leaf(2.0)
    with candelabra.no_grad():
        assert not (x * 2).requires_grad
    y = x * x.detach()
    y.sum().backward()
    assert x.grad.item() == 2.0


def test_results_of_integers_and_comparisons_require_no_grad():
    x = leaf(1.0, 2.0)
    for made in (x > 1, x.argmax(), x.to(candelabra.int64), x.isnan(), x.sort().indices):
        assert not made.requires_grad


def test_node_attributes():
    x = leaf(1.0)
    y = x * 2
    node = y.grad_fn
    assert node.name() == "MulBackward0"
    assert repr(node).startswith("<MulBackward0 object at 0x")
    ((following, number),) = node.next_functions
    assert number == 0
    assert following.variable is x
    assert "AccumulateGrad" in following.name()
    assert following is node.next_functions[0][0]
    node.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}
    z = (y + candelabra.ones(1)).sum()
    assert z.grad_fn.next_functions[0][0].next_functions == ((node, 0), (None, 0)) or z.grad_fn.next_functions[0][
        0
    ].next_functions == ((node, 0),)


def test_is_leaf():
    x = leaf(1.0)
    assert x.is_leaf
    assert not (x * 1).is_leaf
    assert (x * 1).detach().is_leaf


def test_graph_is_freed_with_its_last_tensor_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        x = leaf(1.0)
        y = x.exp() * x
        z = y.sigmoid().sum()
        reference = weakref.ref(y.grad_fn)
        z.backward()
        del y, z
        assert reference() is None
        y = x.exp().tanh()  # no backward through this graph
        reference = weakref.ref(y.grad_fn)
        del y
        assert reference() is None
    finally:
        gc.enable()


def test_saved_tensors_are_freed_by_the_walk():
    x = leaf(1.0)
    y = x * 2
    reference = weakref.ref(y)
    z = (y * y).sum()
    del y
    assert reference() is not None
    z.backward()
    assert reference() is None


def test_backward_inside_of_backward():
    class Inner(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with candelabra.enable_grad():
                again = x.detach().requires_grad_()
                (of_x,) = autograd.grad((again * again).sum(), again)
            return grad * of_x

    x = leaf(3.0)
    (Inner.apply(x) * 2).sum().backward()
    assert x.grad.item() == 12.0


def test_threads_on_separate_graphs():
    import threading

    results = {}

    def work(number):
        x = leaf(float(number))
        for _ in range(50):
            y = x
            for _ in range(20):
                y = y * 1.0 + 0.0
            (y * y).sum().backward()
        results[number] = x.grad.item()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: 100.0 * number for number in range(4)}


def test_recording_is_per_thread():
    import threading

    seen = []
    x = leaf(1.0)
    with candelabra.no_grad():
        thread = threading.Thread(target=lambda: seen.append((x * 2).requires_grad))
        thread.start()
        thread.join()
    assert seen == [True]


def test_inference_mode_records_nothing():
    x = leaf(1.0)
    with candelabra.inference_mode():
        made = x * 2
        assert not made.requires_grad
        assert not candelabra.is_grad_enabled()
        with candelabra.inference_mode(False):
            assert (x * 2).requires_grad
    assert made.is_inference()
    assert (x * 2).requires_grad


def test_grad_of_a_tensor_that_is_no_leaf_warns():
    x = candelabra.ones(2, requires_grad=True)
    y = x * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.grad is None and y.detach().grad is None
        y.retain_grad()
        assert y.grad is None
        y.sum().backward()
        assert y.grad.tolist() == [1, 1] and x.grad.tolist() == [2, 2]


def test_materialized_gradients_can_be_differentiated():
    x, y = (candelabra.tensor(value, requires_grad=True) for value in (0.5, 1.0))
    first = autograd.grad(x * y, x, create_graph=True)
    second = autograd.grad(first, x, create_graph=True, materialize_grads=True)
    assert autograd.grad(second, x, materialize_grads=True)[0].item() == 0


def test_gradients_can_be_detached_in_place():
    x = candelabra.ones(1, 3, requires_grad=True)
    (x.squeeze(0) * 2).sum().backward()
    assert x.grad._base is None
    assert x.grad.detach_().tolist() == [[2, 2, 2]]


def test_a_backward_pass_of_nothing():
    assert candelabra.autograd.backward([]) is None
    assert candelabra.autograd.backward([], [], create_graph=True) is None
