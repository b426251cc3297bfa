"""Test functional_call, fusion, skip_init, DataParallel, and gradients of convolutions."""

import copy

import numpy as np
import pytest
from nn_numerics import array, assert_close, tensor

import candelabra
from candelabra import nn
from candelabra.nn.utils import stateless
from candelabra.nn.utils.named_members import NamedMemberAccessor

F64 = {"dtype": candelabra.float64}


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2, **F64)
        self.tied = self.layer.weight
        self.register_buffer("count", candelabra.zeros(1, **F64))

    def forward(self, x, *, factor=1):
        self.count = self.count + 1
        return self.layer(x) * factor + self.tied.sum() + self.count


@pytest.mark.filterwarnings("ignore:`nn.utils.stateless")
def test_functional_call(rng):
    model = Counting()
    x, own = rng.standard_normal((3, 2)), array(model.layer.weight).copy()
    bias = array(model.layer.bias)
    given = {"layer.weight": candelabra.ones(2, 2, **F64).requires_grad_(), "count": candelabra.full((1,), 5.0, **F64)}
    result = stateless.functional_call(model, given, tensor(x))
    assert_close(result, x @ np.ones((2, 2)) + bias + 4 + 6)
    assert float(given["count"]) == 6 and float(model.count) == 0  # the replacement buffer is updated, not the module's
    assert (array(model.layer.weight) == own).all()
    assert isinstance(model.layer.weight, nn.Parameter) and model.tied is model.layer.weight
    weight = {"layer.weight": candelabra.ones(2, 2, **F64)}
    untied = stateless.functional_call(model, weight, (tensor(x),), {"factor": 2}, tie_weights=False)
    assert_close(untied, 2 * (x @ np.ones((2, 2)) + bias) + own.sum() + 1)


@pytest.mark.filterwarnings("ignore:`nn.utils.stateless")
@pytest.mark.parametrize(
    ("given", "options", "error", "text"),
    [
        (
            {"layer.weight": 1, "tied": 2},
            {},
            ValueError,
            "functional_call got multiple values for keys ['layer.weight', 'tied']",
        ),
        (
            {"layer.weight": 1, "x": 2},
            {"strict": True},
            RuntimeError,
            "Unexpected key(s): 'x'.\n\tMissing key(s): 'count', 'layer.bias'.",
        ),
        ({"layer.weight": None}, {}, TypeError, ""),
        ({"nothing.weight": 1}, {}, AttributeError, "Counting has no attribute `nothing`"),
    ],
)
def test_functional_call_errors(given, options, error, text):
    model = Counting()
    state = copy.deepcopy(model.state_dict())
    tensors = {
        name: "no tensor" if value is None else candelabra.full((2, 2), float(value), **F64)
        for name, value in given.items()
    }
    with pytest.raises(error) as caught:
        stateless.functional_call(model, tensors, candelabra.ones(1, 2, **F64), **options)
    assert text in str(caught.value)
    assert all(candelabra.equal(value, model.state_dict()[name]) for name, value in state.items())
    with pytest.raises(RuntimeError, match="can't be used with nn.DataParallel"):
        stateless.functional_call(nn.DataParallel(model), {}, ())


def test_accessor():
    model = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))
    accessor = NamedMemberAccessor(model)
    weight = model[0].weight
    plain = candelabra.ones(1, 2)
    assert accessor.swap_tensor("0.weight", plain) is weight and model[0].weight is plain
    assert accessor.get_tensors(["0.weight"])[0] is plain
    accessor.set_tensors(["0.weight"], [weight])
    before, missing = accessor.swap_tensors_dict({"0.weight": plain, "1.running_mean": plain})
    assert before["0.weight"] is weight and not missing
    accessor.set_tensors_dict(before)
    accessor.del_tensors(["0.bias"])
    assert not hasattr(model[0], "bias") and next(name for name, _ in accessor.named_tensors()) == "0.weight"
    assert accessor.check_keys(["0.weight", "x"]) == (
        ["1.bias", "1.num_batches_tracked", "1.running_mean", "1.running_var", "1.weight"], ["x"]
    )  # fmt: skip
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): 'x'"):
        accessor.swap_tensors_dict({"0.weight": plain, "x": plain})
    assert model[0].weight is weight and not hasattr(model, "x")
    assert isinstance(accessor.swap_submodule("1", nn.ReLU()), nn.BatchNorm1d) and isinstance(model[1], nn.ReLU)
    with pytest.raises(AttributeError, match="has no attribute `1.weight`"):
        accessor.get_tensor("1.weight")
    with pytest.raises(AssertionError, match="names and values must have the same length"):
        accessor.set_tensors(["0.weight"], [])
    assert len(list(accessor.named_modules())) == 3


# ---- fusion, memory format, skip_init


def prepared(norm, rng):
    with candelabra.no_grad():
        norm.running_mean.copy_(tensor(rng.standard_normal(norm.num_features)))
        norm.running_var.copy_(tensor(rng.random(norm.num_features) + 0.5))
        if norm.affine:
            norm.weight.copy_(tensor(rng.standard_normal(norm.num_features)))
            norm.bias.copy_(tensor(rng.standard_normal(norm.num_features)))
    return norm.eval()


@pytest.mark.parametrize(("bias", "affine"), [(True, True), (False, False)])
def test_fusion(rng, bias, affine):
    x = tensor(rng.standard_normal((2, 2, 5, 5)))
    for make, transposed in ((nn.Conv2d, False), (nn.ConvTranspose2d, True)):
        conv = make(2, 3, 2, bias=bias, **F64).eval()
        norm = prepared(nn.BatchNorm2d(3, affine=affine, **F64), rng)
        fused = nn.utils.fuse_conv_bn_eval(conv, norm, transposed)
        assert_close(fused(x), array(norm(conv(x))))
        assert fused is not conv and isinstance(fused.weight, nn.Parameter) and fused.bias is not None
    linear = nn.Linear(5, 3, bias=bias, **F64).eval()
    norm = prepared(nn.BatchNorm1d(3, affine=affine, **F64), rng)
    flat = x[:, 0, 0]
    assert_close(nn.utils.fuse_linear_bn_eval(linear, norm)(flat), array(norm(linear(flat))))
    with pytest.raises(AssertionError, match="Fusion only for eval!"):
        nn.utils.fuse_linear_bn_eval(linear.train(), norm)
    with pytest.raises(AssertionError, match="bn.num_features == 1"):
        nn.utils.fuse_linear_bn_eval(linear.eval(), nn.BatchNorm1d(2).eval())


def test_memory_format_and_skipped_init(rng):
    net = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Sequential(nn.Conv3d(2, 2, 2), nn.ConvTranspose2d(2, 2, 2)))
    before = array(net[0].weight).copy()
    nn.utils.convert_conv2d_weight_memory_format(net, candelabra.channels_last)
    assert (
        net[0].weight.is_contiguous(memory_format=candelabra.channels_last) and (array(net[0].weight) == before).all()
    )
    assert net[1][1].weight.is_contiguous(memory_format=candelabra.channels_last) and net[1][0].weight.is_contiguous()
    net[1][0].weight.data = net[1][0].weight.data.transpose(2, 4)
    nn.utils.convert_conv3d_weight_memory_format(net, candelabra.contiguous_format)
    assert net[1][0].weight.is_contiguous()
    with nn.init.skipped():
        assert nn.init.ones_(candelabra.zeros(2)).tolist() == [0.0, 0.0]
    assert nn.utils.skip_init(nn.Conv1d, 2, 3, 4, dtype=candelabra.float64).weight.shape == (3, 2, 4)
    for cls, text in ((nn.ReLU, "Module must support a 'device' arg"), (int, "Expected a Module; got")):
        with pytest.raises(RuntimeError, match=text):
            nn.utils.skip_init(cls)
    assert float(nn.Linear(2, 2).weight.abs().max()) > 0


# ---- gradients of convolutions


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_convolutions(rng, dims, groups):
    x, w = rng.standard_normal((2, 4, *[6] * dims)), rng.standard_normal((6, 4 // groups, *[3] * dims))
    function = getattr(nn.functional, f"conv{dims}d")
    options = {"stride": 2, "padding": 1, "dilation": 1, "groups": groups}
    go = rng.standard_normal(function(tensor(x), tensor(w), **options).shape)
    by_input = getattr(nn.grad, f"conv{dims}d_input")(x.shape, tensor(w), tensor(go), **options)
    by_weight = getattr(nn.grad, f"conv{dims}d_weight")(tensor(x), w.shape, tensor(go), **options)
    assert by_input.shape == x.shape and by_weight.shape == w.shape
    # Convolution is linear in each argument, so <go, conv(a, b)> = <gradient, a>.
    for _ in range(3):
        a, b = rng.standard_normal(x.shape), rng.standard_normal(w.shape)
        value = (array(function(tensor(a), tensor(w), **options)) * go).sum()
        np.testing.assert_allclose((array(by_input) * a).sum(), value, rtol=1e-9)
        value = (array(function(tensor(x), tensor(b), **options)) * go).sum()
        np.testing.assert_allclose((array(by_weight) * b).sum(), value, rtol=1e-9)


# ---- DataParallel


@pytest.mark.host_only("names the CPU as the device of all copies")
def test_data_parallel(rng):
    model = nn.Sequential(nn.Linear(3, 4, **F64), nn.Tanh(), nn.Linear(4, 2, **F64))
    spread = nn.DataParallel(model, device_ids=["cpu", "cpu", "cpu"])
    x = tensor(rng.standard_normal((7, 3)))
    output = spread(x)
    assert_close(output, array(model(x)))
    assert list(spread.state_dict()) == [f"module.{name}" for name in model.state_dict()]
    # Fewer rows than devices, and no argument at all.
    assert spread(x[:1]).shape == (1, 2)
    assert_close(nn.parallel.data_parallel(model, x, ["cpu", "cpu"]), array(model(x)))
    assert_close(nn.DataParallel(model)(x), array(model(x)))


class Many(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", candelabra.zeros(1))
        self.scale = nn.Parameter(candelabra.ones(1))

    def forward(self, x, factor=1, *, named=None):
        self.seen.add_(1)
        return {"sum": (x * self.scale * factor).sum(), "pair": (x, [named["y"]]), "none": None}


@pytest.mark.host_only("names the CPU as the device of all copies")
def test_structures_and_buffers():
    model = Many()
    spread = nn.DataParallel(model, ["cpu", "cpu"])
    result = spread(candelabra.ones(3, 2), 2, named={"y": candelabra.arange(3)})
    assert result["sum"].tolist() == [8.0, 4.0] and result["none"] is None
    assert result["pair"][0].shape == (3, 2) and result["pair"][1][0].tolist() == [0, 1, 2]
    assert float(model.seen) >= 1  # the first replica shares memory with the module
    replica = nn.parallel.replicate(model, ["cpu"])[0]
    assert replica.scale is not model.scale and not list(replica.parameters()) and isinstance(model.scale, nn.Parameter)
    with pytest.warns(UserWarning, match="has no effect"):
        replica.zero_grad()


def test_parallel_errors():
    class Raises(nn.Module):
        def forward(self, x):
            raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        nn.DataParallel(Raises(), ["cpu", "cpu"])(candelabra.ones(4))
    with pytest.raises(AssertionError, match="The number of modules 1 is not equal to the number of inputs 2"):
        nn.parallel.parallel_apply([nn.ReLU()], [1, 2])
    with pytest.raises(ValueError, match="All dicts must have the same number of keys"):
        nn.parallel.gather([{"a": 1}, {}], "cpu")
