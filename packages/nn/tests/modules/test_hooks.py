"""Test forward hooks. Backward hooks need autograd: see tests/integration."""

import copy
import importlib.util
import pickle

import pytest

import candelabra
from candelabra import nn
from candelabra.nn.modules.base import hooks


class Add(nn.Module):
    def forward(self, x, more=0):
        return x + more


def test_forward_hooks_in_order():
    layer, calls = Add(), []
    layer.register_forward_pre_hook(lambda module, args: calls.append("pre"))
    layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,), prepend=True)
    layer.register_forward_pre_hook(lambda module, args, kwargs: (args, {"more": kwargs["more"] * 2}), with_kwargs=True)
    layer.register_forward_hook(lambda module, args, output: calls.append((args[0].item(), output.item())))
    layer.register_forward_hook(lambda module, args, kwargs, output: output + kwargs["more"], with_kwargs=True)
    assert layer(candelabra.tensor(1.0), more=10).item() == 42
    assert calls == ["pre", (2.0, 22.0)]


def test_single_value_replaces_arguments():
    layer = Add()
    layer.register_forward_pre_hook(lambda module, args: args[0] * 3)
    assert layer(candelabra.tensor(2.0)).item() == 6


def test_bad_result_of_a_hook_with_kwargs():
    layer = Add()
    layer.register_forward_pre_hook(lambda module, args, kwargs: args, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or a tuple of"):
        layer(candelabra.tensor(2.0))


def test_removed_hooks_leave_a_direct_call():
    layer = Add()
    with layer.register_forward_hook(lambda module, args, output: output + 1):
        assert layer(candelabra.tensor(1.0)).item() == 2
        assert layer._hooked
    assert layer(candelabra.tensor(1.0)).item() == 1
    assert not layer._hooked
    handle = layer.register_forward_pre_hook(lambda module, args: None)
    handle.remove()
    handle.remove()
    assert not layer._forward_pre_hooks


def test_always_call():
    layer, calls = Add(), []
    layer.register_forward_hook(lambda module, args, output: calls.append("always"), always_call=True)
    layer.register_forward_hook(lambda module, args, output: calls.append("normal"))
    with pytest.raises(TypeError):
        layer("text", more=candelabra.ones(1))
    assert calls == ["always"]

    def fails(module, args, output):
        raise ValueError("of the hook")

    layer.register_forward_hook(fails, always_call=True)
    with pytest.warns(UserWarning, match="of the hook"), pytest.raises(TypeError):
        layer("text", more=candelabra.ones(1))


def test_hooks_of_all_modules():
    calls = []
    handles = [
        hooks.register_module_forward_pre_hook(lambda module, args: calls.append(("pre", type(module).__name__))),
        hooks.register_module_forward_hook(lambda module, args, output: output + 1),
        hooks.register_module_forward_hook(
            lambda module, args, kwargs, output: None, with_kwargs=True, always_call=True
        ),
    ]
    try:
        assert nn.Sequential(Add(), Add())(candelabra.tensor(0.0)).item() == 3
        assert calls == [("pre", "Sequential"), ("pre", "Add"), ("pre", "Add")]
    finally:
        for handle in handles:
            handle.remove()
    assert Add()(candelabra.tensor(0.0)).item() == 0 and len(calls) == 3


def test_registration_hooks():
    seen = []
    handles = [
        hooks.register_module_parameter_registration_hook(lambda module, name, parameter: seen.append(name)),
        hooks.register_module_buffer_registration_hook(lambda module, name, buffer: seen.append(name)),
        hooks.register_module_module_registration_hook(lambda module, name, child: seen.append(name)),
    ]
    try:
        net = nn.Sequential(nn.Linear(1, 1))
        net.other = nn.ReLU()
        net.register_buffer("b", None)
    finally:
        for handle in handles:
            handle.remove()
    assert seen == ["weight", "bias", "0", "other", "b"]


def test_hooks_belong_to_one_module():
    one, two = Add(), Add()
    one.register_forward_hook(lambda module, args, output: output + 1)
    assert two(candelabra.tensor(0.0)).item() == 0 and one(candelabra.tensor(0.0)).item() == 1


def test_backward_hooks_say_what_to_install(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "candelabra.autograd" else real(name, *rest)
    )
    for act in (
        lambda: Add().register_full_backward_hook(print),
        lambda: Add().register_full_backward_pre_hook(print),
        lambda: Add().register_backward_hook(print),
        lambda: hooks.register_module_full_backward_hook(print),
        lambda: hooks.register_module_full_backward_pre_hook(print),
    ):
        with pytest.raises(RuntimeError, match="pip install candelabra-autograd"):
            act()
    assert not hooks.any_global()


def test_handles_are_copied_with_their_module():
    layer = nn.ReLU()
    layer.handle = layer.register_forward_hook(add_one)
    for copied in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert copied(candelabra.zeros(1)).tolist() == [1.0]
        copied.handle.remove()
        assert copied(candelabra.zeros(1)).tolist() == [0.0] and layer(candelabra.zeros(1)).tolist() == [1.0]


def add_one(module, args, output):
    return output + 1


def test_call_super_init():
    class First(nn.Module):
        call_super_init = True

        def __init__(self):
            super().__init__(size=3)

    class Second:
        def __init__(self, size):
            self.size = size

    class Both(First, Second):
        pass

    assert Both().size == 3 and Both().training
