"""Torch 7's methods: the tree of modules, flat parameters, sharing, conversion, noise, in place."""

from __future__ import annotations

import copy

import pytest
from legacy_checks import check_module

import candelabra
from candelabra.legacy import nn
from candelabra.testing import assert_close


def network() -> nn.Sequential:
    return nn.Sequential().add(nn.Linear(4, 3)).add(nn.Tanh()).add(nn.Linear(3, 2))


def test_forward_and_backward_keep_what_they_compute() -> None:
    net, value = network(), candelabra.randn(5, 4)
    output = net.forward(value)
    assert output is net.output and net.get(0).output.shape == (5, 3) and not output.requires_grad
    gradient = net.backward(value, candelabra.ones(5, 2))
    assert gradient is net.gradInput and net.modules[2].gradInput.shape == (5, 3)
    called, back = net(value, candelabra.ones(5, 2))
    assert_close(called, output)
    assert_close(back, gradient)
    assert net(value) is net.output


def test_gradients_add_up_until_they_are_zeroed() -> None:
    layer, value = nn.Linear(4, 3), candelabra.randn(5, 4)
    layer.forward(value)
    layer.backward(value, candelabra.ones(5, 3))
    once = layer.gradWeight.clone()
    assert_close(once, value.sum(0).expand(3, 4))
    layer.accGradParameters(value, candelabra.ones(5, 3), 2)
    assert_close(layer.gradWeight, 3 * once)
    layer.zeroGradParameters()
    assert not layer.gradWeight.any() and not layer.gradBias.any()


def test_update_parameters_is_gradient_descent() -> None:
    net, value = network(), candelabra.randn(5, 4)
    net.forward(value)
    net.backward(value, candelabra.ones(5, 2))
    parameters, gradients = net.parameters()
    expected = [p - 0.1 * g for p, g in zip(parameters, gradients)]
    updated = copy.deepcopy(net)
    updated.updateParameters(0.1)
    at_once = net.clone()
    at_once.forward(value)
    at_once.backwardUpdate(value, candelabra.ones(5, 2), 0.1)
    for one, other, wanted in zip(updated.parameters()[0], at_once.parameters()[0], expected, strict=True):
        assert_close(one, wanted)
        assert_close(other, wanted)


def test_a_changed_parameter_or_input_is_recorded_again() -> None:
    layer, value = nn.Linear(2, 1, False), candelabra.tensor([[1.0, 2.0]])
    layer.forward(value)
    layer.weight.copy_(candelabra.tensor([[3.0, 4.0]]))
    assert layer.updateGradInput(value, candelabra.ones(1, 1)).tolist() == [[3.0, 4.0]]
    layer.accGradParameters(candelabra.tensor([[5.0, 6.0]]), candelabra.ones(1, 1))
    assert layer.gradWeight.tolist() == [[5.0, 6.0]]
    layer.accGradParameters(value.add_(1), candelabra.ones(1, 1))
    assert layer.gradWeight.tolist() == [[7.0, 9.0]]


class Doubled(nn.Module):
    """A layer as programs for Torch 7 define it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.gradWeight = candelabra.full((1,), 2.0), candelabra.zeros(1)

    def updateOutput(self, input):  # type: ignore[no-untyped-def]
        self.output = self.weight * input
        return self.output

    def updateGradInput(self, input, gradOutput):  # type: ignore[no-untyped-def]
        self.gradInput = self.weight * gradOutput
        return self.gradInput

    def accGradParameters(self, input, gradOutput, scale=1):  # type: ignore[no-untyped-def]
        self.gradWeight.add_((input * gradOutput).sum(), alpha=scale)


class Sign(nn.Module):
    def updateOutput(self, input):  # type: ignore[no-untyped-def]
        self.output = input.sign()
        return self.output

    def updateGradInput(self, input, gradOutput):  # type: ignore[no-untyped-def]
        self.gradInput = gradOutput.clone()
        return self.gradInput


class Distance(nn.Criterion):
    def updateOutput(self, input, target):  # type: ignore[no-untyped-def]
        self.output = float((input - target).abs().sum())
        return self.output

    def updateGradInput(self, input, target):  # type: ignore[no-untyped-def]
        self.gradInput = (input - target).sign()
        return self.gradInput


def test_classes_that_define_the_methods_themselves() -> None:
    net, value = nn.Sequential().add(Doubled()).add(Sign()), candelabra.tensor([1.0, -3.0])
    criterion = Distance()
    assert criterion.forward(net.forward(value), candelabra.zeros(2)) == 2.0
    assert net.backward(value, criterion.backward(net.output, candelabra.zeros(2))).tolist() == [2.0, -2.0]
    assert net.get(0).gradWeight.tolist() == [4.0]
    net.accUpdateGradParameters(value, candelabra.ones(2), 0.5)
    assert net.get(0).weight.tolist() == [0.0] and net.get(0).gradWeight.tolist() == [4.0]


def test_the_type_of_new_modules() -> None:
    candelabra.set_default_dtype(candelabra.float64)
    try:
        assert nn.Linear(2, 2).type() == nn.MSECriterion().type() == "torch.DoubleTensor"
    finally:
        candelabra.set_default_dtype(candelabra.float32)


def test_the_tape_does_not_reach_beyond_a_layer() -> None:
    weight = candelabra.ones(2, requires_grad=True)
    layer = nn.Square()
    output = layer.forward(weight * 3)
    assert not output.requires_grad
    with candelabra.no_grad():
        assert layer.backward(weight * 3, candelabra.ones(2)).tolist() == [6.0, 6.0]


def test_wrong_gradients_are_refused() -> None:
    layer = nn.Linear(4, 3)
    value = candelabra.randn(5, 4)
    layer.forward(value)
    with pytest.raises(RuntimeError, match=r"gradOutput has the shape \(5, 4\), but the output has the shape \(5, 3\)"):
        layer.updateGradInput(value, candelabra.ones(5, 4))
    table = nn.ConcatTable().add(nn.Identity()).add(nn.Identity())
    table.forward(value)
    with pytest.raises(RuntimeError, match="the table has 1 entries, but the container has 2 modules"):
        table.backward(value, [value])
    split = nn.SplitTable(0)
    split.forward(value)
    with pytest.raises(RuntimeError, match="gradOutput has 1 tensors, but the output has 5"):
        split.backward(value, [value[0]])


# ---- flat parameters


@pytest.mark.parametrize("method", ["flattenParameters", "getParameters"])
def test_flat_parameters_are_the_layers_memory(method: str) -> None:
    net, value = network(), candelabra.randn(5, 4)
    before = net.forward(value).clone()
    weight = net.get(0).weight
    flat, gradients = getattr(net, method)()
    assert flat.shape == gradients.shape == (4 * 3 + 3 + 3 * 2 + 2,) and net.get(0).weight is weight
    assert_close(net.forward(value), before)
    net.backward(value, candelabra.ones(5, 2))
    assert gradients.abs().sum() > 0
    flat.zero_()
    assert not net.forward(value).any()
    assert weight.data_ptr() == flat.data_ptr()


def test_flat_parameters_of_shared_layers_are_there_once() -> None:
    first = nn.Linear(3, 3)
    second = first.clone("weight", "bias", "gradWeight", "gradBias")
    net = nn.Sequential().add(first).add(second)
    flat, gradients = net.getParameters()
    assert flat.numel() == gradients.numel() == 12
    flat.fill_(1)
    assert second.weight.tolist() == [[1.0] * 3] * 3 and first.bias.data_ptr() == second.bias.data_ptr()


def test_flat_parameters_leave_holes_out_and_refuse_what_has_them() -> None:
    layer = nn.Linear(3, 2)
    layer.weight = candelabra.arange(12.0)[3:9].view(2, 3)
    flat, _ = layer.getParameters()
    assert flat[:6].tolist() == [3.0, 4.0, 5.0, 6.0, 7.0, 8.0] and flat.numel() == 8
    layer.weight = candelabra.arange(12.0).view(2, 6)[:, :3]
    with pytest.raises(RuntimeError, match="holes"):
        layer.getParameters()
    layer = nn.Linear(3, 2)
    layer.bias = layer.bias.double()
    with pytest.raises(RuntimeError, match="several types"):
        layer.getParameters()
    layer = nn.Sequential().add(nn.Linear(2, 2)).add(nn.Linear(2, 2))
    layer.get(1).share(layer.get(0), "weight")
    with pytest.raises(RuntimeError, match="not shared in the same way"):
        layer.getParameters()


def test_flat_parameters_of_nothing() -> None:
    assert [part.numel() for part in nn.Sequential().add(nn.Tanh()).getParameters()] == [0, 0]


# ---- the tree


def test_modules_of_a_network() -> None:
    net = nn.Sequential().add(nn.Concat(1).add(nn.Linear(2, 3)).add(nn.Linear(2, 1))).add(nn.Linear(4, 2))
    assert [type(module).__name__ for module in net.listModules()] == [
        "Sequential",
        "Concat",
        "Linear",
        "Linear",
        "Linear",
    ]
    visited: list[nn.Module] = []
    net.apply(visited.append)
    assert visited == net.listModules()
    for typename in ("nn.Linear", "Linear", nn.Linear):
        nodes, containers = net.findModules(typename)
        assert nodes == visited[2:] and containers == [net.get(0), net.get(0), net]
    assert net.findModules("nn.Sequential") == ([net], [net])
    replaced = net.replace(lambda module: nn.Identity() if isinstance(module, nn.Linear) else module)
    assert replaced is net and [type(m).__name__ for m in net.listModules()[2:]] == ["Identity"] * 3
    assert net.size() == 2 and isinstance(net.remove(), nn.Identity) and net.size() == 1
    net.insert(nn.Tanh(), 0)
    assert isinstance(net.get(0), nn.Tanh)


def test_training_and_evaluation_reach_all_modules() -> None:
    net = nn.Sequential().add(nn.Concat(1).add(nn.Dropout(0.9))).add(nn.Dropout(0.9))
    net.evaluate()
    value = candelabra.ones(2, 50)
    assert not any(module.train for module in net.listModules()) and net.forward(value).equal(value)
    net.training()
    assert all(module.train for module in net.listModules()) and (net.forward(value) == 0).any()


def test_clear_state_frees_what_is_kept() -> None:
    net, value = network(), candelabra.randn(5, 4)
    net.forward(value)
    net.backward(value, net.output)
    assert net.clearState() is net
    assert net.output.numel() == 0 and net.get(0).gradInput.numel() == 0 and net.get(0)._recording is None


def test_text_of_a_network() -> None:
    net = nn.Sequential().add(nn.Linear(4, 3)).add(nn.LeakyReLU(0.2)).add(nn.ELU()).add(nn.View(3))
    assert repr(net) == (
        "nn.Sequential {\n  (0): nn.Linear(4 -> 3)\n  (1): nn.LeakyReLU(negval=0.2)\n  (2): nn.ELU\n  (3): nn.View(3)\n}"
    )
    assert repr(nn.SpatialConvolution(3, 4, 5, 2)) == "nn.SpatialConvolution(3 -> 4, 5x2)"
    assert repr(nn.Power(2)) == "nn.Power(2)"


# ---- sharing and conversion


def test_clones_share_what_is_named() -> None:
    net, value = network(), candelabra.randn(5, 4)
    shared = net.clone("weight", "bias")
    net.get(0).weight.mul_(2)
    assert_close(shared.forward(value), net.forward(value))
    assert shared.get(0).gradWeight.data_ptr() != net.get(0).gradWeight.data_ptr()
    apart = net.clone()
    net.get(0).weight.mul_(2)
    assert not candelabra.allclose(apart.forward(value), net.forward(value))
    shared.forward(value)
    shared.get(0).accUpdateGradParameters(value, candelabra.ones(5, 3), 0.1)
    assert_close(shared.get(0).gradWeight, value.sum(0).expand(3, 4))


def test_containers_share_module_by_module() -> None:
    net = network()
    other = network().share(net, "weight")
    assert all(a.data_ptr() == b.data_ptr() for a, b in zip(other.parameters()[0][::2], net.parameters()[0][::2]))
    with pytest.raises(ValueError, match="same number of modules"):
        nn.Sequential().share(net, "weight")


def test_conversion_keeps_shared_memory_and_indices() -> None:
    net = network()
    flat, _ = net.getParameters()
    assert net.double() is net and net.type() == "torch.DoubleTensor" and net.get(0).type() == "torch.DoubleTensor"
    first, last = net.get(0).weight, net.get(2).bias
    assert first.dtype == candelabra.float64
    assert first.untyped_storage().data_ptr() == last.untyped_storage().data_ptr() and flat.dtype == candelabra.float32
    partial = nn.PartialLinear(4, 3).type("torch.HalfTensor")
    assert partial.weight.dtype == candelabra.float16 and partial.partition.dtype == candelabra.int64
    assert nn.MSECriterion().type(candelabra.float64).type() == "torch.DoubleTensor"
    cache: dict = {}
    one, two = nn.Linear(2, 2), nn.Linear(2, 2)
    two.share(one, "weight")
    one.double(cache)
    two.double(cache)
    assert one.weight.data_ptr() == two.weight.data_ptr()


@pytest.mark.parametrize("name", ["torch.LongTensor", "FloatTensor2", "torch.Tensors", candelabra.int64])
def test_unknown_types_are_refused(name: object) -> None:
    with pytest.raises(ValueError, match="type"):
        nn.Linear(2, 2).type(name)


# ---- in place, and noise


def test_in_place_layers_write_to_their_input() -> None:
    for make in (
        lambda inplace: nn.ReLU(inplace), lambda inplace: nn.HardTanh(inplace=inplace), lambda inplace: nn.AddConstant(3, inplace),
        lambda inplace: nn.MulConstant(3, inplace), lambda inplace: nn.LeakyReLU(inplace=inplace), lambda inplace: nn.ELU(inplace=inplace),
    ):  # fmt: skip
        value = candelabra.randn(3, 4)
        expected, apart = make(False), value.clone()
        expected.forward(apart)
        expected.backward(apart, candelabra.ones(3, 4))
        own = make(True)
        output = own.forward(value)
        assert output is value
        assert_close(output, expected.output)
        assert_close(own.backward(value, candelabra.ones(3, 4)), expected.gradInput)


def test_in_place_layers_in_a_chain() -> None:
    net = nn.Sequential().add(nn.Linear(4, 3)).add(nn.ReLU(True)).add(nn.Linear(3, 2))
    same = nn.Sequential().add(net.get(0).clone()).add(nn.ReLU()).add(net.get(2).clone())
    value = candelabra.randn(5, 4)
    assert_close(net.forward(value), same.forward(value))
    assert_close(net.backward(value, net.output), same.backward(value, same.output))
    assert_close(net.get(0).gradWeight, same.get(0).gradWeight)


def test_what_an_in_place_layer_clobbers_is_noticed() -> None:
    # Torch 7 computes wrong gradients here: those of tanh need its output.
    net, value = nn.Sequential().add(nn.Tanh()).add(nn.MulConstant(2, True)), candelabra.randn(5, 4)
    net.forward(value)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        net.backward(value, net.output)


@pytest.mark.parametrize(
    "module, shape, evaluated",
    [(nn.Dropout(0.2), (1000,), 1.0), (nn.SpatialDropout(0.2), (2, 500, 2, 3), 0.8), (nn.VolumetricDropout(0.2), (2, 500, 2, 3, 2), 0.8)],
)  # fmt: skip
def test_dropout(module: nn.Dropout, shape: tuple[int, ...], evaluated: float) -> None:
    value = candelabra.ones(shape)
    output = module.forward(value)
    kept = 1.25 if len(shape) == 1 else 1.0
    assert set(output.unique().tolist()) == {0.0, kept} and 0.7 < (output != 0).float().mean() < 0.9
    # The noise is that of the output, also if the function is recorded again.
    assert_close(module.backward(value, value), output)
    assert_close(module.backward(value.clone(), value), output)
    if len(shape) > 1:
        assert all(len(channel.unique()) == 1 for channel in output.flatten(0, 1))
    module.evaluate()
    assert_close(module.forward(value), value * evaluated)
    module.setp(0)
    assert_close(module.forward(value), value)
    with pytest.raises(ValueError, match="dropout probability"):
        module.setp(1)
    assert repr(module).endswith("(0.0000)")


def test_rrelu() -> None:
    module, value = nn.RReLU(0.1, 0.3), candelabra.randn(500)
    factors = (module.forward(value) / value)[value < 0]
    assert 0.1 <= factors.min() < 0.15 and 0.25 < factors.max() <= 0.3
    assert_close(module.backward(value, value), module.output)
    module.evaluate()
    assert_close(module.forward(value)[value < 0], 0.2 * value[value < 0])
    check_module(module, value[:10].double())
    with pytest.raises(ValueError, match="lower <= upper"):
        nn.RReLU(0.5, 0.1)


def test_running_statistics_count_a_batch_once() -> None:
    module, value = nn.BatchNormalization(3, momentum=0.5), candelabra.randn(8, 3) + 2
    module.forward(value)
    mean = module.running_mean.clone()
    assert_close(mean, value.mean(0) / 2)
    module.backward(value, value)
    module.backward(value.clone(), value)
    assert_close(module.running_mean, mean)
    module.evaluate()
    expected = (value - mean) / (module.running_var + 1e-5).sqrt() * module.weight
    assert_close(module.forward(value), expected)
    with pytest.raises(RuntimeError, match="only mini-batch supported"):
        module.forward(value[0])
    with pytest.raises(RuntimeError, match="got 2-feature tensor, expected 3"):
        module.forward(value[:, :2])


# ---- layers whose gradients are not those of their output


def test_gradient_reversal() -> None:
    module, value = nn.GradientReversal(0.5), candelabra.randn(3)
    assert_close(module.forward(value), value)
    assert_close(module.backward(value, candelabra.ones(3)), candelabra.full((3,), -0.5))


def test_l1_penalty() -> None:
    module, value = nn.L1Penalty(2.0), candelabra.tensor([1.0, -3.0])
    assert_close(module.forward(value), value)
    assert module.loss == 8.0
    assert module.backward(value, candelabra.tensor([10.0, 10.0])).tolist() == [12.0, 8.0]
    module = nn.L1Penalty(2.0, True, False)
    module.forward(value)
    assert module.loss == 4.0
    assert module.updateGradInput(value, candelabra.tensor([10.0, 10.0])).tolist() == [1.0, -1.0]


def test_square_root_at_zero_has_no_gradient() -> None:
    module, value = nn.Sqrt(), candelabra.tensor([0.0, 4.0])
    assert module.forward(value).tolist() == [0.0, 2.0]
    assert module.backward(value, candelabra.ones(2)).tolist() == [0.0, 0.25]


def test_sparse_linear_is_linear() -> None:
    module = nn.SparseLinear(6, 3)
    dense = nn.Linear(6, 3)
    dense.weight, dense.bias = module.weight, module.bias
    rows = candelabra.tensor([[[0, 2.0], [5, -1.0]], [[3, 0.5], [3, 1.0]]])
    vectors = candelabra.tensor([[2.0, 0, 0, 0, 0, -1.0], [0, 0, 0, 1.5, 0, 0]])
    assert_close(module.forward(rows), dense.forward(vectors))
    assert_close(module.forward(list(rows)), dense.output)
    assert_close(module.forward(rows[0]), dense.output[0])
    module.forward(rows)
    seed = candelabra.randn(2, 3)
    back = module.backward(rows, seed)
    expected = dense.backward(vectors, seed)
    assert_close(module.gradWeight, dense.gradWeight)
    assert_close(back[0, :, 1], expected[0, [0, 5]])
    assert not back[..., 0].any()
    with pytest.raises(RuntimeError, match="pairs of an index and a value"):
        module.forward(candelabra.ones(2, 3))


def test_lookup_table_limits_norms_and_skips_padding() -> None:
    module = nn.LookupTable(5, 4, 0).setMaxNorm(0.5)
    module.weight.fill_(1)
    output = module.forward(candelabra.tensor([0, 3]))
    assert_close(output.norm(2, 1), candelabra.full((2,), 0.5))
    assert module.weight[1].tolist() == [1.0] * 4
    module.backward(candelabra.tensor([0, 3]), candelabra.ones(2, 4))
    assert module.gradWeight.sum(1).tolist() == [0.0, 0.0, 0.0, 4.0, 0.0]
    assert module.gradInput.tolist() == [0, 0]


def test_partial_linear_trains_its_partition_alone() -> None:
    module, value = nn.PartialLinear(3, 4).setPartition(candelabra.tensor([2, 0])), candelabra.randn(5, 3)
    whole = candelabra.nn.functional.linear(value, module.weight, module.bias.view(-1))
    assert_close(module.forward(value), whole[:, [2, 0]])
    module.backward(value, candelabra.ones(5, 2))
    assert module.gradBias.tolist() == [[5.0, 0.0, 5.0, 0.0]]
    assert module.resetPartition().forward(value).shape == (5, 4)


def test_fractional_pooling_draws_new_windows() -> None:
    module, value = nn.SpatialFractionalMaxPooling(2, 2, 5, 5), candelabra.randn(1, 4, 16, 16)
    first = module.forward(value)
    assert not module.forward(value).equal(first)
    module.fixPoolingRegions()
    assert module.forward(value).equal(module.forward(value))
    with pytest.raises(ValueError, match="ratios between 0 and 1"):
        nn.SpatialFractionalMaxPooling(2, 2, 0.5, 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.SpatialMaxUnpooling(nn.SpatialMaxPooling(3, 3, 2, 2)), lambda: nn.SpatialFullConvolution(1, 1, 3, 3, 2, 2, 0, 0, 2, 0),
        lambda: nn.SpatialDivisiveNormalization(1, candelabra.ones(4)), lambda: nn.View(-1, -1), lambda: nn.ClassSimplexCriterion(1),
        lambda: nn.SpatialConvolutionLocal(1, 1, 2, 2, 5, 5), lambda: nn.Add(3, True), lambda: nn.BatchNormalization(0),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError):
        make()


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError):
        nn.Power()
    with pytest.raises(TypeError):
        nn.Tanh(3)
    with pytest.raises(TypeError, match="takes a SpatialMaxPooling"):
        nn.SpatialMaxUnpooling(nn.Identity())
    with pytest.raises(RuntimeError, match="has not been used yet"):
        nn.SpatialMaxUnpooling(nn.SpatialMaxPooling(2, 2)).forward(candelabra.ones(1, 1, 2, 2))
    with pytest.raises(NotImplementedError, match="Module does not define its function"):
        nn.Module().forward(candelabra.ones(1))
