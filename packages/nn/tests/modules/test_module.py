"""Test Module: registration, attributes, modes, conversion, copying."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import candelabra
from candelabra import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.second = nn.Sequential(nn.BatchNorm1d(3), nn.ReLU())
        self.scale = nn.Parameter(candelabra.ones(1))
        self.register_buffer("seen", candelabra.zeros(1), persistent=False)

    def forward(self, x, twice=False):
        x = self.second(self.first(x)) * self.scale
        return x * 2 if twice else x


def test_registration_order_and_names():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == [
        "scale", "first.weight", "first.bias", "second.0.weight", "second.0.bias",
    ]  # fmt: skip
    assert [name for name, _ in net.named_buffers()] == [
        "seen", "second.0.running_mean", "second.0.running_var", "second.0.num_batches_tracked",
    ]  # fmt: skip
    assert [name for name, _ in net.named_modules()] == ["", "first", "second", "second.0", "second.1"]
    assert [name for name, _ in net.named_children()] == ["first", "second"]
    assert [name for name, _ in net.named_parameters(prefix="net", recurse=False)] == ["net.scale"]
    assert len(list(net.parameters())) == 5 and len(list(net.buffers())) == 4 and len(list(net.modules())) == 5


def test_shared_members_are_listed_once():
    shared = nn.Linear(2, 2)
    net = nn.Sequential(shared, nn.ReLU(), shared)
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias"]
    assert [name for name, _ in net.named_parameters(remove_duplicate=False)] == [
        "0.weight",
        "0.bias",
        "2.weight",
        "2.bias",
    ]
    assert [name for name, _ in net.named_modules()] == ["", "0", "1"]
    assert len(list(net.children())) == 2
    assert [name for name, _ in net.named_modules(remove_duplicate=False)] == ["", "0", "1", "2"]


def test_tables_and_attributes_agree():
    net = nn.Linear(2, 3)
    replacement = nn.Parameter(candelabra.zeros(3, 2))
    net._parameters["weight"] = replacement
    assert net.weight is replacement
    del net._parameters["bias"]
    assert not hasattr(net, "bias")
    net.bias = nn.Parameter(candelabra.zeros(3))
    assert net._parameters["bias"] is net.bias
    assert net._parameters.pop("bias") is not None and not hasattr(net, "bias")
    net._parameters.update(bias=None)
    assert net.bias is None and list(net._parameters) == ["weight", "bias"]
    net._parameters |= {"extra": replacement}
    assert net.extra is replacement
    assert net._parameters.setdefault("extra", None) is replacement and net._parameters.setdefault("other") is None
    assert net._parameters.popitem() == ("other", None) and not hasattr(net, "other")
    assert type(net._parameters.copy()) is dict
    net._parameters.clear()
    assert not hasattr(net, "weight") and not list(net.parameters())


def test_attribute_changes_kind():
    net = nn.Module()
    net.thing = 3
    net.thing = nn.Parameter(candelabra.ones(1))
    assert list(net._parameters) == ["thing"]
    net.thing = None
    assert net.thing is None and list(net._parameters) == ["thing"]
    del net.thing
    net.thing = nn.Linear(1, 1)
    net.thing = nn.Parameter(candelabra.ones(1))
    assert list(net._parameters) == ["thing"] and not net._modules
    del net.thing
    net.register_buffer("thing", candelabra.ones(1), persistent=False)
    net.thing = candelabra.zeros(2)
    assert net._buffers["thing"].shape == (2,) and net.state_dict() == {}
    net.thing = nn.Linear(1, 1)
    assert list(net._modules) == ["thing"] and not net._buffers and not net._non_persistent_buffers_set
    net.plain = candelabra.ones(1)
    assert not net._buffers and not net._parameters


def test_buffer_class():
    net = nn.Module()
    net.kept = nn.Buffer(candelabra.ones(2))
    net.dropped = nn.Buffer(candelabra.ones(2), persistent=False)
    assert isinstance(net.kept, nn.Buffer) and not isinstance(candelabra.ones(1), nn.Buffer)
    assert list(net.state_dict()) == ["kept"] and len(list(net.buffers())) == 2
    assert nn.Buffer().numel() == 0


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda m: setattr(m, "weight", 3), TypeError, "cannot assign 'int' as parameter 'weight'"),
        (lambda m: setattr(m, "weight", candelabra.ones(2)), TypeError, "candelabra.nn.Parameter or None expected"),
        (lambda m: m.register_parameter("a.b", None), KeyError, 'parameter name can\'t contain "."'),
        (lambda m: m.register_parameter("", None), KeyError, 'parameter name can\'t be empty string ""'),
        (lambda m: m.register_parameter("forward", None), KeyError, "attribute 'forward' already exists"),
        (lambda m: m.register_parameter(3, None), TypeError, "parameter name should be a string. Got int"),
        (lambda m: m.register_parameter("p", 3), TypeError, "cannot assign 'int' object to parameter 'p'"),
        (lambda m: m.register_buffer("a.b", None), KeyError, "buffer name can't contain"),
        (lambda m: m.register_buffer("", None), KeyError, "buffer name can't be empty"),
        (lambda m: m.register_buffer("train", None), KeyError, "attribute 'train' already exists"),
        (lambda m: m.register_buffer("p", 3), TypeError, "cannot assign 'int' object to buffer 'p'"),
        (lambda m: m.add_module("a.b", None), KeyError, 'module name can\'t contain ".", got: a.b'),
        (lambda m: m.add_module("", None), KeyError, "module name can't be empty"),
        (lambda m: m.add_module("weight", None), KeyError, "attribute 'weight' already exists"),
        (lambda m: m.add_module("p", 3), TypeError, "int is not a Module subclass"),
        (lambda m: m.nothing, AttributeError, "'Linear' object has no attribute 'nothing'"),
        (lambda m: delattr(m, "nothing"), AttributeError, "nothing"),
        (lambda m: m.train(3), ValueError, "training mode is expected to be boolean"),
        (lambda m: m.get_submodule("x.y"), AttributeError, "Linear has no attribute `x`"),
        (lambda m: m.get_submodule("weight"), AttributeError, "`weight` is not an nn.Module"),
        (lambda m: m.get_parameter("in_features"), AttributeError, "`in_features` is not an nn.Parameter"),
        (lambda m: m.get_buffer("weight"), AttributeError, "`weight` is not a buffer"),
        (lambda m: m.set_submodule("", nn.ReLU()), ValueError, "Cannot set the submodule without a target name!"),
        (lambda m: m.to(candelabra.int32), TypeError, "nn.Module.to only accepts floating point or complex dtypes"),
        (lambda m: m.to(3.5), TypeError, "invalid combination of arguments"),
        (lambda m: m.get_extra_state(), RuntimeError, "has no extra state"),
        (lambda m: nn.Module()(1), NotImplementedError, 'Module [Module] is missing the required "forward" function'),
        (lambda m: nn.Module(3), TypeError, "takes 1 positional argument but 2 were given"),
        (lambda m: nn.Module(a=3), TypeError, "unexpected keyword argument 'a'"),
        (lambda m: nn.Parameter(3), TypeError, "Parameter data must be a Tensor"),
        (lambda m: nn.Parameter(candelabra.ones(1, dtype=candelabra.int64)), RuntimeError, "can require gradients"),
    ],
)
def test_errors(act, error, text):
    with pytest.raises(error) as caught:
        act(nn.Linear(2, 3))
    assert text in str(caught.value.args[0])


def test_errors_before_init():
    class Early(nn.Module):
        def __init__(self, value):
            self.value = value

    with pytest.raises(AttributeError, match="cannot assign module before"):
        Early(nn.ReLU())
    with pytest.raises(AttributeError, match="cannot assign parameters before"):
        Early(nn.Parameter(candelabra.ones(1)))
    with pytest.raises(AttributeError, match="cannot assign buffer before"):
        Early(nn.Buffer(candelabra.ones(1)))
    assert Early(3).value == 3


def test_paths():
    net = Net()
    assert net.get_submodule("") is net and net.get_submodule("second.1") is net.second[1]
    assert net.get_parameter("first.weight") is net.first.weight
    assert net.get_buffer("second.0.running_mean") is net.second[0].running_mean
    net.set_submodule("second.1", nn.Tanh())
    assert isinstance(net.second[1], nn.Tanh)
    with pytest.raises(AttributeError):
        net.set_submodule("second.7", nn.Tanh(), strict=True)


def test_modes_and_gradients():
    net = Net()
    assert net.training and net.second[0].training
    assert net.eval() is net and not net.second[0].training
    net.train()
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    net.scale.grad = candelabra.ones(1)
    net.zero_grad(set_to_none=False)
    assert net.scale.grad.item() == 0
    net.zero_grad()
    assert net.scale.grad is None


def test_apply_visits_children_first():
    seen = []
    net = Net()
    assert net.apply(lambda module: seen.append(type(module).__name__)) is net
    assert seen == ["Linear", "BatchNorm1d", "ReLU", "Sequential", "Net"]


def test_conversion_keeps_identity():
    net = Net()
    weight = net.first.weight
    weight.grad = candelabra.ones(3, 2)
    assert net.to(candelabra.float64) is net
    assert net.first.weight is weight and weight.dtype == candelabra.float64 and isinstance(weight, nn.Parameter)
    assert weight.grad.dtype == candelabra.float64
    assert net.second[0].running_mean.dtype == candelabra.float64
    assert net.second[0].num_batches_tracked.dtype == candelabra.int64
    assert net.float().first.weight.dtype == candelabra.float32
    assert net.half().first.weight.dtype == candelabra.float16
    assert net.bfloat16().seen.dtype == candelabra.bfloat16
    assert net.double().cpu().scale.dtype == candelabra.float64
    assert net.to("cpu", candelabra.float32).scale.dtype == candelabra.float32
    assert net.to(candelabra.ones(1, dtype=candelabra.float64)).scale.dtype == candelabra.float64
    assert net.to(device="cpu", dtype=candelabra.float32, non_blocking=True).scale.dtype == candelabra.float32
    assert weight.requires_grad and weight.is_leaf


def test_channels_last_conversion():
    net = nn.Conv2d(3, 4, 3).to(memory_format=candelabra.channels_last)
    assert net.weight.stride() == (27, 1, 9, 3) and net.bias.stride() == (1,)


def test_deepcopy_and_pickle():
    net = Net()
    net.first.weight.grad = candelabra.ones(3, 2)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert repr(other) == repr(net)
        assert other.first.weight is not net.first.weight and isinstance(other.first.weight, nn.Parameter)
        for (name, mine), (_, theirs) in zip(net.state_dict().items(), other.state_dict().items(), strict=True):
            np.testing.assert_array_equal(mine.numpy(), theirs.numpy(), err_msg=name)
        other.first._parameters["bias"] = None
        assert other.first.bias is None and net.first.bias is not None
        assert next(iter(other.state_dict())) == "scale" and "seen" not in other.state_dict()
    assert copy.deepcopy(net).first.weight.grad.shape == (3, 2)


def test_shallow_copy_has_tables_of_its_own():
    net = nn.Linear(2, 2)
    other = copy.copy(net)
    other._parameters["bias"] = None
    assert net.bias is not None and other.bias is None and other.weight is net.weight


def test_deepcopy_keeps_sharing():
    layer = nn.Linear(2, 2)
    other = copy.deepcopy(nn.Sequential(layer, layer))
    assert other[0] is other[1] and len(list(other.parameters())) == 2


def test_freed_without_the_cyclic_collector():
    gc.disable()
    try:
        net = Net()
        watch = weakref.ref(net.first.weight), weakref.ref(net)
        del net
        assert watch[0]() is None and watch[1]() is None
    finally:
        gc.enable()


def test_repr_with_lines():
    class Odd(nn.Module):
        def extra_repr(self):
            return "one\ntwo"

    odd = Odd()
    assert repr(odd) == "Odd(\n  one\n  two\n)"
    odd.child = nn.Sequential(nn.Identity())
    assert repr(odd) == "Odd(\n  one\n  two\n  (child): Sequential(\n    (0): Identity()\n  )\n)"


def test_dir_lists_members():
    assert {"weight", "bias", "in_features", "forward"} <= set(dir(nn.Linear(1, 1)))
    assert "0" not in dir(nn.Sequential(nn.ReLU()))


def test_parameter_properties():
    data = candelabra.ones(2)
    parameter = nn.Parameter(data)
    assert isinstance(parameter, candelabra.Tensor) and parameter.requires_grad and parameter.is_leaf
    data[0] = 5
    assert parameter[0].item() == 5
    assert repr(parameter) == "Parameter containing:\ntensor([5., 1.], requires_grad=True)"
    assert type(parameter.detach() + 1) is candelabra.Tensor
    assert nn.Parameter().numel() == 0
    parameter.note = "kept"
    other = pickle.loads(pickle.dumps(parameter))
    assert isinstance(other, nn.Parameter) and other.note == "kept" and other.requires_grad
    assert not copy.deepcopy(nn.Parameter(data, requires_grad=False)).requires_grad


def test_getattr_of_subclasses_can_ask_super():
    class Wrapper(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

    assert Wrapper(nn.Linear(2, 3)).in_features == 2
    with pytest.raises(AttributeError):
        Wrapper(nn.Linear(2, 3)).nothing


def test_attributes_that_a_class_looks_up_itself_and_in_its_base():
    refusals = []

    class Wrapped(nn.Module):
        def __init__(self, inside):
            super().__init__()
            self.inside = inside

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError as error:
                refusals.append(str(error))
                return getattr(self.__dict__["inside"], name)

    wrapped = Wrapped(nn.Linear(2, 3))
    assert wrapped.out_features == 3
    assert refusals == ["'Wrapped' object has no attribute 'out_features'"]
    assert wrapped.inside.in_features == 2
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'banana'"):
        wrapped.banana
    with pytest.raises(AttributeError, match="'ReLU' object has no attribute 'banana'"):
        nn.ReLU().banana


class Labelled(candelabra.Tensor):
    """A class of tensors without behaviour of its own."""


class Plain(candelabra.Tensor):
    """A class whose tensors do not survive detach()."""

    __torch_function__ = candelabra._C._disabled_torch_function_impl


def test_a_parameter_of_another_class_keeps_it() -> None:
    parameter = nn.Parameter(candelabra.ones(2).as_subclass(Labelled))
    assert type(parameter) is Labelled
    assert isinstance(parameter, nn.Parameter) and parameter.requires_grad and parameter.is_leaf
    assert not isinstance(candelabra.ones(2).as_subclass(Labelled), nn.Parameter)
    net = nn.Module()
    net.weight = parameter
    copied = copy.deepcopy(net)
    assert [type(p) for p in copied.parameters()] == [Labelled]
    assert isinstance(copied.weight, nn.Parameter) and copied.weight is not parameter
    assert not isinstance(parameter, nn.parameter.UninitializedParameter)


def test_a_parameter_of_a_class_that_detach_loses() -> None:
    with pytest.raises(RuntimeError, match="type Plain requires that detach"):
        nn.Parameter(candelabra.ones(2).as_subclass(Plain))


def test_a_buffer_does_not_take_the_name_of_an_attribute():
    module = nn.Module()
    module.name = 5
    with pytest.raises(KeyError, match="attribute 'name' already exists"):
        module.name = nn.Buffer(candelabra.ones(1))
    assert module.name == 5


def test_subclasses_may_register_buffers_without_persistence():
    class Old(nn.Module):
        def register_buffer(self, name, value):
            super().register_buffer(name, value, True)

    module = Old()
    module.kept = nn.Buffer(candelabra.ones(1))
    assert list(module.state_dict()) == ["kept"]
    with pytest.raises(RuntimeError, match="without the persistent argument is not allowed"):
        module.other = nn.Buffer(candelabra.ones(1), persistent=False)


def test_a_gradient_is_converted_in_place():
    layer = nn.Linear(2, 2)
    layer.weight.grad = grad = candelabra.ones(2, 2)
    layer.double()
    assert layer.weight.grad is grad
    assert grad.dtype is candelabra.float64


# ---- conversions that swap parameters with new ones


@pytest.fixture
def swapping():
    from candelabra.nn.modules.base.conversion import Conversion

    Conversion._swaps = True
    yield
    Conversion._swaps = False


def test_a_conversion_swaps_parameters(swapping):
    layer = nn.Linear(2, 2)
    weight = layer.weight
    weight.grad = grad = candelabra.ones(2, 2)
    numbers = weight._cdata, grad._cdata
    layer.double()
    assert layer.weight is weight
    assert weight.grad is grad
    assert weight._cdata != numbers[0]
    assert grad._cdata != numbers[1]
    assert isinstance(weight, nn.Parameter)
    assert weight.dtype is grad.dtype is candelabra.float64


@pytest.mark.parametrize("assign", [False, True])
def test_loading_swaps_parameters(swapping, assign):
    layer, other = nn.Linear(2, 2), nn.Linear(2, 2)
    weight, number = layer.weight, layer.weight._cdata
    layer.load_state_dict(other.state_dict(), assign=assign)
    assert layer.weight is weight
    assert weight._cdata != number
    assert candelabra.equal(weight, other.weight)
    assert (weight.data_ptr() == other.weight.data_ptr()) is assign


def test_a_parameter_that_cannot_be_swapped(swapping):
    layer = nn.Linear(2, 2)
    reference = weakref.ref(layer.weight)
    with pytest.raises(RuntimeError, match=r"_apply\(\): Couldn't swap Linear.weight"):
        layer.double()
    assert reference() is layer.weight


def test_arguments_of_to():
    layer = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="does not accept copy"):
        layer.to("cpu", copy=True)
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        layer.to("cpu", True)
