"""Test backward hooks of modules."""

import numpy as np
import pytest

import candelabra
from candelabra import nn
from candelabra.nn.modules.base import hooks


def net():
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()


def inputs(requires_grad=True):
    return candelabra.ones(4, 2, dtype=candelabra.float64, requires_grad=requires_grad)


def test_hooks_see_the_gradients():
    model, seen = net(), {}
    model[2].register_full_backward_hook(
        lambda module, grad_input, grad_output: seen.update(into=grad_input, out=grad_output)
    )
    model(inputs()).sum().backward()
    np.testing.assert_allclose(seen["out"][0].numpy(), np.ones((4, 1)))
    np.testing.assert_allclose(seen["into"][0].numpy(), np.repeat(model[2].weight.detach().numpy(), 4, 0))


def test_hooks_replace_the_gradients():
    model = net()
    plain = inputs()
    model(plain).sum().backward()
    model.zero_grad()
    doubled = model[1].register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 2,))
    tripled = model[2].register_full_backward_pre_hook(lambda module, grad_output: grad_output[0] * 3)
    changed = inputs()
    model(changed).sum().backward()
    np.testing.assert_allclose(changed.grad.numpy(), 6 * plain.grad.numpy())
    doubled.remove()
    tripled.remove()
    assert not candelabra.equal(changed.grad, plain.grad)
    again = inputs()
    model(again).sum().backward()
    np.testing.assert_allclose(again.grad.numpy(), plain.grad.numpy())


def test_inputs_without_gradient():
    model, seen = net(), []
    model[0].register_full_backward_hook(
        lambda module, grad_input, grad_output: seen.append((grad_input, grad_output[0].shape))
    )
    model(inputs(requires_grad=False)).sum().backward()
    assert seen == [((None,), (4, 3))]
    model[0].register_full_backward_hook(lambda module, grad_input, grad_output: (grad_output[0],))
    with pytest.raises(RuntimeError, match="where no input requires gradient should always return None"):
        model(inputs(requires_grad=False)).sum().backward()


def test_wrong_number_of_gradients():
    model = net()
    model[1].register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0], grad_input[0]))
    with pytest.raises(RuntimeError, match="got 2, but expected 1"):
        model(inputs()).sum().backward()


def test_several_inputs_and_outputs():
    class Both(nn.Module):
        def forward(self, a, number, b):
            return a * number, a + b

    module, seen = Both(), []
    module.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append((grad_input, grad_output)))
    a, b = inputs(), inputs()
    first, second = module(a, 3.0, b)
    (first.sum() + 5 * second.sum()).backward()
    (grad_a, grad_number, grad_b), (out_first, out_second) = seen[0]
    assert grad_number is None
    np.testing.assert_allclose(grad_a.numpy(), np.full((4, 2), 8.0))
    np.testing.assert_allclose(grad_b.numpy(), np.full((4, 2), 5.0))
    np.testing.assert_allclose((out_first.numpy()[0, 0], out_second.numpy()[0, 0]), (1.0, 5.0))
    np.testing.assert_allclose(a.grad.numpy(), np.full((4, 2), 8.0))


def test_hooks_of_all_modules():
    model, seen = net(), []
    handles = [
        hooks.register_module_full_backward_pre_hook(
            lambda module, grad_output: seen.append(("pre", type(module).__name__))
        ),
        hooks.register_module_full_backward_hook(
            lambda module, grad_input, grad_output: seen.append(("post", type(module).__name__))
        ),
    ]
    try:
        model(inputs()).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    assert seen[0] == ("pre", "Sequential") and seen[-1] == ("post", "Sequential")
    assert [name for kind, name in seen if kind == "post"] == ["Linear", "Tanh", "Linear", "Sequential"]


def test_no_grad_calls_no_hooks():
    model, seen = net(), []
    model.register_full_backward_hook(lambda *arguments: seen.append(1))
    with candelabra.no_grad():
        assert not model(inputs()).requires_grad
    assert not seen
