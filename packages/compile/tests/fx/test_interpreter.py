"""Interpreters and transformers."""

from __future__ import annotations

import pytest

import candelabra
from candelabra import fx, nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 3)
        self.scale = nn.Parameter(candelabra.tensor(2.0))

    def forward(self, x, y=3):
        return candelabra.relu(self.linear(x)) * self.scale + y, x.abs()


@pytest.fixture
def traced():
    return fx.symbolic_trace(Model())


def test_run(traced):
    x = candelabra.randn(4, 2)
    for result, expected in zip(fx.Interpreter(traced).run(x), traced(x), strict=True):
        assert candelabra.equal(result, expected)
    assert candelabra.equal(fx.Interpreter(traced).boxed_run(values := [x, 1])[0], traced(x, 1)[0])
    assert values == []
    relu = traced.graph.find_nodes(op="call_function", target=candelabra.relu)[0]
    result = fx.Interpreter(traced).run(x, 0, initial_env={relu: candelabra.ones(3)})
    assert result[0].tolist() == [2, 2, 2]


def test_values_are_dropped(traced):
    kept = fx.Interpreter(traced, garbage_collect_values=False)
    kept.run(candelabra.ones(1, 2))
    dropped = fx.Interpreter(traced)
    dropped.run(candelabra.ones(1, 2))
    assert len(kept.env) == len(traced.graph.nodes)
    assert [node.op for node in dropped.env] == ["output"]


def test_errors_name_the_node(traced):
    with pytest.raises(
        RuntimeError, match=r"(?s)mat1 and mat2.*While executing %linear : .*call_module\[target=linear\]"
    ):
        fx.Interpreter(traced).run(candelabra.ones(1, 3))
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        fx.Interpreter(traced).run()
    keyed = fx.symbolic_trace(lambda x: x["b"])
    with pytest.raises(RuntimeError, match="While executing %getitem"):
        fx.Interpreter(keyed).run({})
    graph = fx.Graph()
    graph.output(graph.get_attr("a.b"))
    with pytest.raises(RuntimeError, match="Node referenced nonexistent target a"):
        fx.Interpreter(nn.Module(), graph=graph).run()


def test_variadic_parameters():
    traced = fx.symbolic_trace(lambda *args: args[1])
    assert fx.Interpreter(traced).run(1, 2) == 2


def test_subclasses(traced):
    class Negative(fx.Interpreter):
        def call_function(self, target, args, kwargs):
            return super().call_function(candelabra.neg if target is candelabra.relu else target, args, kwargs)

        def call_method(self, target, args, kwargs):
            assert target == "abs"
            return args[0]

        def call_module(self, target, args, kwargs):
            return super().call_module(target, args, kwargs) * 0 + 1

        def get_attr(self, target, args, kwargs):
            return self.fetch_attr(target) * 2

    x = -candelabra.ones(1, 2)
    first, second = Negative(traced).run(x, 0)
    assert first.tolist() == [[-4, -4, -4]] and second is x


def test_transform(traced):
    class Swap(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(candelabra.sigmoid if target is candelabra.relu else target, args, kwargs)

        def call_method(self, target, args, kwargs):
            return super().call_method("neg", args, kwargs)

    x = candelabra.randn(4, 2)
    made = Swap(traced).transform()
    expected = candelabra.sigmoid(traced.linear(x)) * traced.scale + 3
    assert candelabra.equal(made(x)[0], expected)
    assert candelabra.equal(made(x)[1], -x)
    assert [node.name for node in made.graph.nodes] == [
        "x", "y", "linear", "sigmoid", "scale", "mul", "add", "neg", "output",
    ]  # fmt: skip
    same = fx.Transformer(traced).transform()
    assert candelabra.equal(same(x)[0], traced(x)[0])


def test_transforming_keeps_meta(traced):
    traced.graph.find_nodes(op="call_module")[0].meta["note"] = 1
    made = fx.Transformer(traced).transform()
    assert made.graph.find_nodes(op="call_module")[0].meta["note"] == 1
