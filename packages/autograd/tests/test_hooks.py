"""Test hooks on tensors, leaves and nodes, saved tensors, and graph edges."""

from __future__ import annotations

import pytest

import candelabra
from candelabra import autograd
from candelabra.autograd import graph


def leaf(*values):
    return candelabra.tensor(values, dtype=candelabra.float64, requires_grad=True)


def test_hook_of_a_leaf_sees_the_whole_gradient_once():
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda grad: seen.append(grad.item()))
    (x * 2 + x * 3).sum().backward()
    assert seen == [5.0]
    assert x.grad.item() == 5.0


def test_hook_of_an_intermediate_replaces():
    x = leaf(1.0)
    y = x * 2
    handle = y.register_hook(lambda grad: grad * 10)
    (y + y * 2).sum().backward(retain_graph=True)
    assert x.grad.item() == 60.0
    handle.remove()
    handle.remove()
    x.grad = None
    (y * 1).sum().backward()
    assert x.grad.item() == 2.0


def test_hooks_run_in_the_order_of_registration():
    x = leaf(1.0)
    x.register_hook(lambda grad: grad + 1)
    x.register_hook(lambda grad: grad * 10)
    x.sum().backward()
    assert x.grad.item() == 20.0


def test_hook_as_context():
    x = leaf(1.0)
    with x.register_hook(lambda grad: grad * 2):
        x.sum().backward()
    x.sum().backward()
    assert x.grad.item() == 3.0


def test_hook_errors():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        candelabra.ones(1).register_hook(print)

    def shrinking(grad):
        return grad.sum()

    with (
        x.register_hook(shrinking),
        pytest.raises(RuntimeError, match="hook 'shrinking' has changed the size of value"),
    ):
        x.sum().backward()
    with x.register_hook(lambda grad: 3), pytest.raises(TypeError, match="has to return a Tensor or None"):
        x.sum().backward()

    def failing(grad):
        raise KeyError("hook")

    with x.register_hook(failing), pytest.raises(KeyError, match="hook"):
        x.sum().backward()
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_hooks_with_grad():
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda grad: grad * 3)
    x.register_hook(lambda grad: grad + 1)
    of_y, of_x = autograd.grad((y * 1).sum(), (y, x))
    assert (of_y.item(), of_x.item()) == (3.0, 7.0)


def test_post_accumulate():
    x = leaf(1.0)
    seen = []

    def step(leaf_tensor):
        seen.append(leaf_tensor.grad.item())
        leaf_tensor.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    (x * 2 + x).sum().backward()
    assert seen == [3.0]
    assert x.grad is None
    handle.remove()
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (x * 1).register_post_accumulate_grad_hook(step)
    x.register_post_accumulate_grad_hook(lambda t: 3)
    with pytest.raises(RuntimeError, match="should return None"):
        x.sum().backward()


def test_retain_grad():
    x = leaf(1.0)
    y = x * 2
    assert not y.retains_grad
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad
    y.register_hook(lambda grad: grad * 2)
    (y * 3).sum().backward(retain_graph=True)
    assert y.grad.item() == 6.0
    (y * 3).sum().backward()
    assert y.grad.item() == 12.0
    x.retain_grad()
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        candelabra.ones(1).retain_grad()


def test_retain_grad_does_not_keep_the_tensor():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    z = (y * 3).sum()
    del y
    z.backward()
    assert x.grad.item() == 6.0


def test_node_hooks():
    x = leaf(1.0)
    y = x * 2
    seen = []

    def after(inputs, outputs):
        seen.append((len(inputs), outputs[0].item()))
        return tuple(part * 5 for part in inputs)

    y.grad_fn.register_prehook(lambda outputs: (outputs[0] + 1,))
    handle = y.grad_fn.register_hook(after)
    y.sum().backward(retain_graph=True)
    assert seen == [(1, 2.0)]
    assert x.grad.item() == 20.0
    handle.remove()
    x.grad = None
    y.sum().backward()
    assert x.grad.item() == 4.0


def test_node_hook_errors():
    x = leaf(1.0)
    y = x * 2
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0], inputs[0]))
    with pytest.raises(RuntimeError, match="incorrect number of values"):
        y.sum().backward()


def test_hooks_of_the_accumulating_node():
    x = leaf(1.0)
    node = x.view(1).grad_fn.next_functions[0][0]
    seen = []
    node.register_prehook(lambda outputs: (outputs[0] * 2,))
    node.register_hook(lambda inputs, outputs: seen.append((inputs, outputs[0].item())))
    (x * 3).sum().backward()
    assert x.grad.item() == 6.0
    assert seen == [((), 6.0)]


def test_multi_grad_hook():
    x, y = leaf(1.0), leaf(2.0)
    every, some = [], []
    graph.register_multi_grad_hook((x, y), lambda grads: every.append([grad.item() for grad in grads]))
    handle = graph.register_multi_grad_hook((x, y), lambda grad: some.append(1), mode="any")
    (x * y).sum().backward()
    assert every == [[2.0, 1.0]]
    assert some == [1]
    handle.remove()
    with pytest.raises(ValueError, match="'all', 'any'"):
        graph.register_multi_grad_hook((x,), print, mode="most")


def test_saved_tensors_hooks():
    x = leaf(2.0, 3.0)
    packed, unpacked = [], []

    def pack(tensor):
        packed.append(tensor.tolist())
        return tensor.numpy().copy() if not tensor.requires_grad else tensor.detach().numpy().copy()

    def unpack(array):
        unpacked.append(array.tolist())
        return candelabra.from_numpy(array)

    with graph.saved_tensors_hooks(pack, unpack):
        y = x * x
        z = y.exp()
    outside = y * y
    (z.sum() + outside.sum()).backward()
    assert packed[:2] == [[2.0, 3.0], [2.0, 3.0]]
    assert len(packed) == len(unpacked) == 3
    import numpy

    values = numpy.array([2.0, 3.0])
    numpy.testing.assert_allclose(x.grad.numpy(), 2 * values * numpy.exp(values**2) + 4 * values**3)


def test_saved_tensors_hooks_and_second_derivatives():
    x = leaf(2.0, 3.0)
    with graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = (x * x).exp().sin()
    (first,) = autograd.grad(y.sum(), x, create_graph=True)
    (second,) = autograd.grad(first.sum(), x)
    (plain,) = autograd.grad((x * x).exp().sin().sum(), x, create_graph=True)
    assert second.tolist() == pytest.approx(autograd.grad(plain.sum(), x)[0].tolist())


def test_save_on_cpu_and_disabled():
    x = leaf(2.0)
    with graph.save_on_cpu():
        y = (x * x).exp()
    y.sum().backward()
    assert x.grad.item() == pytest.approx(4 * 54.598150033144236)
    with (
        graph.disable_saved_tensors_hooks("not now"),
        pytest.raises(RuntimeError, match="not now"),
        graph.save_on_cpu(),
    ):
        pass


def test_autograd_functions_are_plain_again_after_the_block():
    from candelabra.catalogue import OPERATORS

    (leaf(1.0) * 2).sum()
    before = OPERATORS["mul"].autograd_function
    with graph.save_on_cpu():
        assert OPERATORS["mul"].autograd_function is not before
    assert OPERATORS["mul"].autograd_function is before


def test_gradient_edge():
    x = leaf(1.0)
    y = x * 2
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn
    assert edge.output_nr == 0
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(candelabra.ones(1))
    version = x._version
    graph.increment_version(x.detach())
    assert x._version == version + 1


def test_hook_of_the_accumulating_node_keeps_it():
    x = leaf(1.0)
    x.view(1).grad_fn.next_functions[0][0].register_prehook(lambda outputs: (outputs[0] * 2,))
    (x * 3).sum().backward()
    assert x.grad.item() == 6.0


def test_gradient_of_a_leaf_with_hooks_is_taken_without_a_copy():
    x = leaf(1.0, 2.0)
    pointers = []
    x.register_post_accumulate_grad_hook(lambda tensor: None)
    x.register_hook(lambda grad: pointers.append(grad.data_ptr()))
    (x * 3).sum().backward()
    assert x.grad.data_ptr() == pointers[0]


def test_saved_tensors_hooks_of_custom_functions():
    class Product(autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            result = x * y
            ctx.save_for_backward(x, y, result)
            return result

        @staticmethod
        def backward(ctx, grad):
            x, y, result = ctx.saved_tensors
            return grad * y * result / (x * y), grad * x * result / (x * y)

    x, y = leaf(2.0, 3.0), leaf(0.5, 4.0)
    with graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        made = Product.apply(x * 1, y)
    (first,) = autograd.grad(made.square().sum(), x, create_graph=True)
    of_x, of_y = autograd.grad(first.sum(), (x, y))
    assert first.tolist() == pytest.approx((2 * x * y * y).tolist())
    assert of_x.tolist() == pytest.approx((2 * y * y).tolist())
    assert of_y.tolist() == pytest.approx((4 * x * y).tolist())


def test_a_hook_on_several_tensors_waits_only_for_those_that_are_reached():
    from candelabra.autograd.graph import register_multi_grad_hook

    x, unused = candelabra.ones(3, requires_grad=True), candelabra.ones(3, requires_grad=True)
    y = x * 2
    seen = []
    register_multi_grad_hook(
        (x, unused, y), lambda gradients: seen.append([None if g is None else g.sum().item() for g in gradients])
    )
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert seen == [[6.0, None, 3.0]] * 2


def test_a_leaf_s_hook_runs_when_its_gradient_is_whole():
    early, late, x = (candelabra.ones(1, requires_grad=True) for _ in range(3))
    order = []
    for name, leaf in (("late", late), ("early", early)):
        leaf.register_post_accumulate_grad_hook(lambda leaf, name=name: order.append((name, leaf.grad.item())))
    first = x * 2
    first.register_hook(lambda grad: order.append("first"))
    second = first * late
    third = second * late + second
    third.register_hook(lambda grad: order.append("third"))
    (third * early).backward()
    assert order == [("early", 4.0), "third", ("late", 6.0), "first"]


def test_hooks_of_a_leaf_that_backward_is_limited_to():
    x = candelabra.ones(3, requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.sum().item()))
    ((x * 2).sum() + x.sum()).backward(inputs=[x])
    assert seen == [9.0]


def test_gradient_edges_stand_for_tensors():
    from candelabra.autograd.graph import get_gradient_edge

    x = candelabra.ones(3, requires_grad=True)
    y = x * 2
    edge, of_leaf = get_gradient_edge(y), get_gradient_edge(x)
    (y_grad,) = candelabra.autograd.grad((y * y).sum(), edge, retain_graph=True)
    assert y_grad.tolist() == [4.0] * 3
    assert candelabra.autograd.grad(edge, of_leaf, candelabra.ones(3), retain_graph=True)[0].tolist() == [2.0] * 3
    candelabra.autograd.backward(edge, candelabra.ones(3), inputs=of_leaf)
    assert x.grad.tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="has to be given"):
        candelabra.autograd.grad(edge, x)


def test_saved_tensors_may_be_changed_where_that_is_allowed():
    from candelabra.autograd.graph import allow_mutation_on_saved_tensors

    x = candelabra.tensor([2.0, 3.0], requires_grad=True)
    with allow_mutation_on_saved_tensors() as context:
        y = x.clone()
        z = (y**2).sum()
        y[0] = 5
        y.sin_()
        assert len(context.cloned) == 1
        z.backward()
        assert x.grad.tolist() == [4.0, 6.0]
        del y, z
        assert not context.cloned and not context.tid_to_weakhandle
        late = (x.detach().requires_grad_() ** 2).sum()
        with pytest.raises(RuntimeError, match="contexts cannot be nested"), allow_mutation_on_saved_tensors():
            pass
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors'"):
        late.backward()


def test_nodes_show_what_they_keep():
    x = candelabra.tensor([1.0, 2.0], requires_grad=True)
    made = x.exp()
    node = made.grad_fn
    assert node._saved_result.tolist() == made.tolist() and node._saved_result.grad_fn is node
    assert x.sum(0).grad_fn._saved_dim == 0
    assert not hasattr(node, "_saved_self")
    made.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        _ = node._saved_result


def test_callbacks_run_after_all_gradients():
    from candelabra.autograd.engine import queue_callback

    x = candelabra.ones(2, requires_grad=True)
    y = candelabra.ones(2, requires_grad=True)
    seen = []

    def at_the_end():
        seen.append((x.grad.tolist(), y.grad.tolist(), candelabra.is_grad_enabled()))
        if len(seen) == 1:
            queue_callback(at_the_end)

    handle = y.register_post_accumulate_grad_hook(lambda leaf: queue_callback(at_the_end))
    (x * y.exp()).sum().backward()
    assert len(seen) == 2 and seen[0] == seen[1] == (x.grad.tolist(), y.grad.tolist(), False)
    handle.remove()
    (x * y).sum().backward()
    assert len(seen) == 2
    with pytest.raises(RuntimeError, match="only be installed during backward"):
        queue_callback(at_the_end)


def test_classes_take_over_what_they_are_asked_to_keep():
    class Answering(candelabra.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return -1

    x = candelabra.ones(2).as_subclass(Answering)
    assert (x.backward(), x.retain_grad(), x.register_hook(print)) == (-1, -1, -1)
    assert x.register_post_accumulate_grad_hook(print) == -1


def test_other_classes_differentiate():
    class Foreign:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, args

    x = Foreign()
    assert autograd.grad(x, [x, x]) == (autograd.grad, ((x,), (x, x)))
