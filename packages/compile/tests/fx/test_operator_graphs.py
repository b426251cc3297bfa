"""make_fx: graphs of operators."""

from __future__ import annotations

import doctest

import pytest

import candelabra
from candelabra import nn
from candelabra.fx.experimental import proxy_tensor
from candelabra.fx.experimental.proxy_tensor import get_proxy_mode, make_fx


def test_a_training_step():
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 2), nn.Dropout()
    )

    def step(x, target):
        loss = nn.functional.cross_entropy(model(x), target)
        return [loss, *candelabra.autograd.grad(loss, list(model.parameters()))]

    target = candelabra.tensor([0, 1])
    made = make_fx(step)(candelabra.randn(2, 1, 8, 8), target)
    x = candelabra.randn(2, 1, 8, 8)
    candelabra.manual_seed(1)
    results = made(x, target)
    candelabra.manual_seed(1)
    for result, expected in zip(results, step(x, target), strict=True):
        assert candelabra.allclose(result, expected, atol=1e-5)
    assert [node.name for node in made.graph.find_nodes(op="placeholder")] == ["x_1", "target_1"]
    assert made.graph.find_nodes(op="call_function", target=candelabra.ops.convolution_backward_weight)
    assert get_proxy_mode() is None


def test_views_and_operations_in_place():
    def f(x, other):
        z = x.view(8)[1:3]
        z += other["k"]
        a, b = candelabra.split(z, 1)
        return {"sum": a + b, "x": x}

    made = make_fx(f)(candelabra.ones(4, 2), {"k": candelabra.ones(2)})
    x = candelabra.arange(8.0).reshape(4, 2)
    expected = f(x.clone(), {"k": candelabra.full((2,), 5.0)})
    result = made(x, {"k": candelabra.full((2,), 5.0)})
    assert candelabra.equal(result["sum"], expected["sum"]) and candelabra.equal(x, expected["x"])


def test_constants_and_decompositions():
    offset = candelabra.ones(2)
    made = make_fx(lambda x: x + offset)(candelabra.ones(2))
    assert made._tensor_constant0 is offset
    offset.fill_(3)
    assert made(candelabra.ones(2)).tolist() == [4, 4]
    for target in (candelabra.tanh, candelabra.ops.aten.tanh.default):
        table = {target: lambda x: 2 * candelabra.sigmoid(2 * x) - 1}
        made = make_fx(lambda x: candelabra.tanh(x), decomposition_table=table)(candelabra.ones(2))
        assert not made.graph.find_nodes(op="call_function", target=candelabra.tanh)
        assert candelabra.allclose(made(candelabra.ones(2)), candelabra.ones(2).tanh())


def test_what_cannot_be_recorded():
    x = candelabra.ones(2)
    for program in (
        lambda x: x if x.sum() > 0 else -x,
        lambda x: x * x.sum().item(),
        lambda x: candelabra.tensor((x * 2).tolist()),
        lambda x: x * candelabra.rand(1).item(),
    ):
        with pytest.raises(RuntimeError, match="make_fx: the program asks for the value of a tensor"):
            make_fx(program)(x)
    assert get_proxy_mode() is None
    with pytest.raises(ValueError, match="tracing_mode='symbolic' is not available"):
        make_fx(lambda x: x, tracing_mode="symbolic")
    # The shapes are known, and so are tensors that do not depend on the arguments.
    made = make_fx(lambda x: x * candelabra.ones(3).sum().item() if x.shape[0] == 2 else x)(x)
    assert made(x).tolist() == [3, 3]


def test_examples_run():
    result = doctest.testmod(proxy_tensor)
    assert result.attempted > 0 and result.failed == 0
