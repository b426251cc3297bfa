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


@pytest.fixture
def called(torch):
    """Return a function that calls another one in a mode: ATen's overloads, and the result."""
    dispatch = importlib.import_module("torch.utils._python_dispatch")

    class Names(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((func, args, kwargs or {}))
            return func(*args, **(kwargs or {}))

    seen = []

    def call(function, *args, **options):
        seen.clear()
        with Names():
            result = function(*args, **options)
        return [each for each, _, _ in seen], result

    call.seen = seen
    return call


@pytest.mark.parametrize(
    "call, overload",
    [
        (lambda x: x + 1, "add.Tensor"), (lambda x: x.mul_(x), "mul_.Tensor"), (lambda x: 1 - x, "rsub.Scalar"), (lambda x: x > 0, "gt.Scalar"),
        (lambda x: x**2, "pow.Tensor_Scalar"), (lambda x: x**x, "pow.Tensor_Tensor"), (lambda x: x.sum(), "sum.default"),
        (lambda x: x.sum(1), "sum.dim_IntList"), (lambda x: x.mean((0, 1)), "mean.dim"), (lambda x: x.max(0)[1], "max.dim"),
        (lambda x: x @ x, "mm.default"), (lambda x: x[0], "select.int"), (lambda x: x[0:1], "slice.Tensor"), (lambda x: x.reshape(4), "view.default"),
        (lambda x: x.double(), "_to_copy.default"), (lambda x: x.clone().t(), "t.default"), (lambda x: x.new_ones(2, 2).copy_(x), "copy_.default"),
    ],
)  # fmt: skip
def test_modes_are_given_overloads_of_aten(torch, called, call, overload):
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    expected = call(x.clone())
    overloads, result = called(call, x.clone())
    packet, name = overload.split(".")
    assert overloads[-1] is getattr(getattr(torch.ops.aten, packet), name)
    assert overloads[-1].overloadpacket is getattr(torch.ops.aten, packet)
    assert torch.equal(result, expected) and result.dtype is expected.dtype


def test_modes_are_given_arguments_of_aten(torch, called):
    x, weight, bias = torch.ones(2, 3, 4), torch.arange(20.0).reshape(5, 4), torch.ones(5)
    overloads, result = called(torch.nn.functional.linear, x, weight, bias)
    assert overloads == [torch.ops.aten.addmm.default] and result.shape == (2, 3, 5)
    assert [tuple(each.shape) for each in called.seen[0][1]] == [(5,), (6, 4), (4, 5)]
    assert torch.equal(result, torch.nn.functional.linear(x, weight, bias))
    overloads, result = called(torch.nn.functional.linear, x, weight)
    assert overloads == [torch.ops.aten.mm.default] and torch.equal(result, x @ weight.t())
    overloads, _ = called(torch.nn.functional.conv2d, torch.ones(1, 2, 5, 5), torch.ones(3, 2, 3, 3), None, 2)
    assert overloads == [torch.ops.aten.convolution.default]
    assert list(called.seen[0][1][3:]) == [[2, 2], [0, 0], [1, 1], False, [0, 0], 1]
    for dims in (1, 2, 3):
        image = torch.ones(1, 2, *[4] * dims)
        overloads, result = called(getattr(torch.nn.functional, f"max_pool{dims}d"), image, 2)
        assert overloads == [getattr(torch.ops.aten, f"max_pool{dims}d_with_indices").default]
        assert result.shape == (1, 2, *[2] * dims)
    image.requires_grad_()
    overloads, result = called(torch.nn.functional.max_pool3d, image, 2)
    assert overloads == [torch.ops.aten.max_pool3d_with_indices.default]
    result.sum().backward()
    assert image.grad.sum() == 16
    overloads, result = called(torch.nn.functional.group_norm, torch.ones(2, 4, 3), 2)
    assert overloads == [torch.ops.aten.native_group_norm.default] and called.seen[0][1][3:7] == (2, 4, 3, 2)
    overloads, result = called(torch.nn.functional.dropout, x, 0.5)
    assert overloads == [torch.ops.aten.native_dropout.default] and set(result.unique().tolist()) <= {0.0, 2.0}
    same = x.to("cpu")
    assert same is x and called(x.to, "cpu")[1] is x
