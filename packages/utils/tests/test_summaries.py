"""Test summaries of models, and the counter of floating-point operations."""

import pytest

import candelabra as c
from candelabra import nn
from candelabra.utils.flop_counter import FlopCounterMode, register_flop_formula


def test_parameters_shapes_and_operations():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 5))
    found = c.summary(model, c.ones(2, 3, 8, 8))
    assert [row.kind for row in found.rows] == ["Sequential", "Conv2d", "Flatten", "Linear"]
    assert [row.output for row in found.rows] == [[(2, 5)], [(2, 4, 6, 6)], [(2, 144)], [(2, 5)]]
    assert [row.parameters for row in found.rows] == [837, 112, 0, 725]
    # A multiplication and an addition for each weight, at each place of the output.
    assert [row.flops for row in found.rows] == [15552 + 2880, 2 * 2 * 36 * 4 * 27, 0, 2 * 2 * 144 * 5]
    assert found.parameters == 837
    assert found.parameter_bytes == 4 * 837
    assert "18,432 FLOPs" in str(found)
    assert "<table" in found._repr_html_()


def test_the_model_is_as_before():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout())
    model[2].eval()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    c.manual_seed(3)
    expected = c.rand(2)
    c.manual_seed(3)
    c.summary(model, c.randn(4, 3, generator=c.Generator()))
    assert c.equal(c.rand(2), expected)
    assert [module.training for module in model.modules()] == [True, True, True, False]
    assert all(c.equal(value, state[name]) for name, value in model.state_dict().items())
    assert not any(module._forward_hooks for module in model.modules())


def test_without_an_input_there_are_parameters():
    found = c.summary(nn.Linear(2, 3))
    assert "FLOPs in" not in str(found)
    assert "9 parameters, 36 B" in str(found)


def test_frozen_and_shared_parameters():
    layer = nn.Linear(2, 2)
    layer.weight.requires_grad_(False)
    found = c.summary(nn.Sequential(layer, layer), c.ones(1, 2))
    assert (found.parameters, found.trainable) == (6, 2)
    assert "6 parameters, 4 of them frozen" in str(found)
    assert found.rows[1].calls == 2


def test_lazy_parameters_have_sizes_after_the_call():
    found = c.summary(nn.Sequential(nn.LazyLinear(3)), c.ones(1, 4))
    assert [row.parameters for row in found.rows] == [15, 15]


def test_depth_and_several_inputs():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = nn.Sequential(nn.Linear(2, 2))

        def forward(self, a, b):
            return self.inside(a) + b, {"more": b}

    found = c.summary(Two(), (c.ones(1, 2), c.ones(1, 2)), depth=1)
    assert [row.name for row in found.rows] == ["Two", "inside"]
    assert found.rows[0].output == [(1, 2), (1, 2)]
    assert c.summary(Two(), {"a": c.ones(1, 2), "b": c.ones(1, 2)}).flops == 8


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match="has to be a Module, but got Tensor"):
        c.summary(c.ones(2))


def test_a_failing_forward_leaves_no_hooks():
    model = nn.Linear(2, 3)
    with pytest.raises(RuntimeError, match="shapes"):
        c.summary(model, c.ones(1, 5))
    assert not model._forward_hooks


@pytest.mark.parametrize("dims", [(4, 16), (3, 12)])
def test_recurrent_layers(dims):
    gates, rows = dims
    model = nn.LSTM(3, 4) if gates == 4 else nn.GRU(3, 4)
    found = c.summary(model, c.ones(5, 2, 3))
    assert found.flops == 2 * 5 * 2 * rows * (3 + 4)


def test_gradients_count():
    layer = nn.Linear(3, 4)
    with FlopCounterMode(display=False) as counter:
        layer(c.ones(2, 3, requires_grad=True)).sum().backward()
    assert counter.get_total_flops() == 3 * 2 * 2 * 3 * 4


def test_formulas_of_other_operators():
    from candelabra.utils.flop_counter import flop_registry

    @register_flop_formula(c.ops.exp)
    def exp_flop(shape, *, out_shape=None):
        return shape[0]

    try:
        with FlopCounterMode(display=False) as counter:
            c.ones(3).exp()
        assert counter.get_total_flops() == 3
    finally:
        del flop_registry["exp"]
