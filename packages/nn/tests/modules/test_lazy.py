"""Test lazy modules, which infer their parameters' shapes from the first input."""

import copy
import pickle

import pytest

import candelabra
from candelabra import nn
from candelabra.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

ones = candelabra.ones

LAYERS = [
    (nn.LazyLinear, (3,), nn.Linear, (4, 3), ones(2, 4)),
    (nn.LazyConv1d, (3, 2), nn.Conv1d, (4, 3, 2), ones(2, 4, 5)),
    (nn.LazyConv2d, (4, 2, 1, 0, 1, 2), nn.Conv2d, (4, 4, 2, 1, 0, 1, 2), ones(2, 4, 5, 5)),
    (nn.LazyConv3d, (3, 2), nn.Conv3d, (4, 3, 2), ones(4, 5, 5, 5)),
    (nn.LazyConvTranspose1d, (3, 2), nn.ConvTranspose1d, (4, 3, 2), ones(2, 4, 5)),
    (nn.LazyConvTranspose2d, (4, 2, 1, 0, 0, 2), nn.ConvTranspose2d, (4, 4, 2, 1, 0, 0, 2), ones(4, 5, 5)),
    (nn.LazyConvTranspose3d, (3, 2), nn.ConvTranspose3d, (4, 3, 2), ones(2, 4, 5, 5, 5)),
    (nn.LazyBatchNorm1d, (), nn.BatchNorm1d, (4,), ones(2, 4)),
    (nn.LazyBatchNorm2d, (), nn.BatchNorm2d, (4,), ones(2, 4, 5, 5)),
    (nn.LazyBatchNorm3d, (), nn.BatchNorm3d, (4,), ones(2, 4, 5, 5, 5)),
    (nn.LazyInstanceNorm1d, (), nn.InstanceNorm1d, (4, 1e-5, 0.1, True, True), ones(2, 4, 5)),
    (nn.LazyInstanceNorm2d, (), nn.InstanceNorm2d, (4, 1e-5, 0.1, True, True), ones(2, 4, 5, 5)),
    (nn.LazyInstanceNorm3d, (), nn.InstanceNorm3d, (4, 1e-5, 0.1, True, True), ones(2, 4, 5, 5, 5)),
]


@pytest.mark.parametrize(
    ("lazy", "arguments", "eager", "full", "x"), LAYERS, ids=lambda v: getattr(v, "__name__", None)
)
def test_first_call(lazy, arguments, eager, full, x):
    layer, other = lazy(*arguments), eager(*full)
    assert layer.has_uninitialized_params() and all(is_lazy(p) for p in layer.parameters())
    assert list(layer.state_dict()) == list(other.state_dict())
    assert layer(x).shape == other(x).shape
    assert type(layer) is eager and repr(layer) == repr(other)
    assert [type(p) for p in layer.parameters()] == [nn.Parameter] * len(list(other.parameters()))
    assert [p.shape for p in layer.parameters()] == [p.shape for p in other.parameters()]
    assert not layer._forward_pre_hooks and not layer._load_state_dict_pre_hooks


@pytest.mark.parametrize(
    ("lazy", "arguments", "eager", "full", "x"), LAYERS, ids=lambda v: getattr(v, "__name__", None)
)
def test_loading_gives_shapes(lazy, arguments, eager, full, x):
    layer, other = lazy(*arguments), eager(*full)
    layer.load_state_dict(other.state_dict())
    other.eval()
    assert not layer.has_uninitialized_params() and type(layer) is lazy
    assert candelabra.equal(layer.eval()(x), other(x))
    assert repr(layer) == repr(other)


def test_lazy_into_lazy_and_into_initialized():
    layer = nn.LazyLinear(3)
    assert not layer.load_state_dict(nn.LazyLinear(3).state_dict()).missing_keys and layer.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        nn.Linear(2, 3).load_state_dict(layer.state_dict())


def test_copies_and_conversion():
    layer = pickle.loads(pickle.dumps(copy.deepcopy(nn.LazyLinear(3))))
    assert layer.has_uninitialized_params() and layer.double().weight.dtype is candelabra.float64
    assert layer(ones(2, 5, dtype=candelabra.float64)).dtype is candelabra.float64
    assert type(layer) is nn.Linear and not layer._forward_pre_hooks
    norm = nn.LazyBatchNorm1d().double()
    assert (
        norm(ones(3, 2, dtype=candelabra.float64)).dtype is candelabra.float64
        and norm.running_mean.dtype is candelabra.float64
    )
    net = nn.Sequential(nn.LazyConv2d(2, 1), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2, bias=False))
    copied = copy.deepcopy(net)
    net(ones(2, 3, 4, 4))
    assert net[3].in_features == 32 and copied[3].has_uninitialized_params()
    copied(ones(2, 5, 4, 4))
    assert copied[0].in_channels == 5 and net[0].in_channels == 3


def test_uninitialized():
    weight, buffer = UninitializedParameter(dtype=candelabra.float64), UninitializedBuffer()
    assert repr(weight) == "<UninitializedParameter>" and repr(buffer) == "<UninitializedBuffer>"
    assert weight.requires_grad and not buffer.requires_grad and isinstance(buffer, nn.Buffer)
    for act in (
        lambda: weight.sum(),
        lambda: weight + 1,
        lambda: 2 * weight,
        lambda: weight @ weight,
        lambda: weight[0],
    ):
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in"):
            act()
    with pytest.raises(RuntimeError, match="Can't share memory"):
        weight.share_memory_()
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        _ = weight.shape
    assert len({weight, buffer}) == 2
    weight.materialize((2, 3))
    buffer.materialize((4,), dtype=candelabra.int32)
    assert type(weight) is nn.Parameter and weight.dtype is candelabra.float64 and (weight + 1).shape == (2, 3)
    assert type(buffer) is candelabra.Tensor and buffer.dtype is candelabra.int32 and not is_lazy(buffer)


class Halves(nn.modules.lazy.LazyModuleMixin, nn.Module):
    def __init__(self, complete=True):
        super().__init__()
        self.scale = UninitializedParameter()
        self.complete = complete

    def initialize_parameters(self, x, factor=1):
        if self.complete:
            self.scale.materialize(x.shape[-1:])
            nn.init.constant_(self.scale, factor)

    def forward(self, x, factor=1):
        return x * self.scale


@pytest.mark.host_only("names the CPU as the device of all copies")
def test_own_lazy_module():
    module = Halves()
    assert module(ones(2, 3), factor=4).tolist() == [[4.0] * 3] * 2 and type(module) is Halves
    with pytest.raises(RuntimeError, match="module Halves has not been fully initialized"):
        Halves(complete=False)(ones(1))

    class Without(nn.modules.lazy.LazyModuleMixin, nn.Module):
        pass

    with pytest.raises(NotImplementedError, match="initialize_parameters is not implemented for Without"):
        Without()(ones(1))
    with pytest.raises(RuntimeError, match="can't be used with `DataParallel`"):
        nn.DataParallel(nn.LazyLinear(2), ["cpu", "cpu"])(ones(4, 2))


def test_errors():
    with pytest.raises(RuntimeError, match=r"Expected 3D \(unbatched\) or 4D \(batched\) input to LazyConv2d"):
        nn.LazyConv2d(2, 2)(ones(2, 2))
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        nn.LazyConv1d(2, 2, groups=2)(ones(1, 3, 4))
