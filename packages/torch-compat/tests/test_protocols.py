"""``__torch_function__``, ``__torch_dispatch__`` and fake tensors by PyTorch's names."""

from __future__ import annotations

import importlib

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra.torch


@pytest.fixture(autouse=True)
def torch():
    candelabra.torch.install()
    yield importlib.import_module("torch")
    candelabra.torch.uninstall()


def test_overrides(torch):
    overrides = importlib.import_module("torch.overrides")
    assert overrides.resolve_name(torch.add) == "torch.add"
    assert overrides.resolve_name(len) is None
    assert torch.zeros in overrides.get_ignored_functions()

    class Sub(torch.Tensor):
        pass

    t = torch.ones(2).as_subclass(Sub)
    assert type(t + 1) is Sub
    with torch._C.DisableTorchFunctionSubclass():
        assert type(t + 1) is torch.Tensor
    assert torch._C._is_torch_function_enabled()


def test_stacks_of_modes(torch):
    overrides = importlib.import_module("torch.overrides")
    dispatch = importlib.import_module("torch.utils._python_dispatch")
    with overrides.BaseTorchFunctionMode() as mode:
        assert torch._C._len_torch_function_stack() == 1
        assert torch._C._get_function_stack_at(0) is mode
    with dispatch.BaseTorchDispatchMode() as mode:
        assert torch._C._len_torch_dispatch_stack() == 1
        assert torch._C._get_dispatch_stack_at(0) is mode
    assert torch._C._len_torch_function_stack() == torch._C._len_torch_dispatch_stack() == 0


def test_fake_tensors(torch):
    fake_tensor = importlib.import_module("torch._subclasses.fake_tensor")
    with fake_tensor.FakeTensorMode():
        made = torch.ones(4, 2, device="xpu") @ torch.ones(2, 3, device="xpu")
    assert isinstance(made, fake_tensor.FakeTensor)
    assert (made.shape, made.device.type) == ((4, 3), "xpu")
