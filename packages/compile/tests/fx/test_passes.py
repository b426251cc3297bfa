"""Replacement of patterns, and the passes."""

from __future__ import annotations

import pytest

import candelabra
from candelabra import fx, nn
from candelabra.fx.experimental import symbolic_shapes
from candelabra.fx.experimental.optimization import extract_subgraph, fuse, remove_dropout
from candelabra.fx.passes.infra.pass_base import PassBase, PassResult
from candelabra.fx.passes.shape_prop import ShapeProp
from candelabra.fx.passes.split_module import split_module
from candelabra.fx.passes.tools_common import (
    get_node_target,
    is_node_output_tensor,
    legalize_graph,
    stable_topological_sort,
)
from candelabra.fx.passes.utils.matcher_utils import SubgraphMatcher
from candelabra.fx.subgraph_rewriter import replace_pattern_with_filters

relu, sigmoid, tanh = candelabra.relu, candelabra.sigmoid, candelabra.tanh


def names(graph):
    return [node.name for node in graph.nodes]


# ---- patterns


def test_replace_a_pattern():
    traced = fx.symbolic_trace(lambda x, y: relu(x + y) * relu(y + x).abs() + (x + y))
    matches = fx.replace_pattern(traced, lambda a, b: relu(a + b), lambda a, b: tanh(a) - b)
    assert [match.anchor.name for match in matches] == ["relu", "relu"]
    x, y = candelabra.randn(3), candelabra.randn(3)
    expected = (tanh(x) - y) * (tanh(y) - x).abs() + (x + y)
    assert candelabra.equal(traced(x, y), expected)
    traced.graph.lint()
    assert not traced.graph.find_nodes(op="call_function", target=relu)


def test_matches_that_follow_one_another():
    traced = fx.symbolic_trace(lambda x: relu(relu(relu(x))))
    assert len(fx.replace_pattern(traced, relu_of, sigmoid_of)) == 3
    x = candelabra.randn(3)
    assert candelabra.equal(traced(x), sigmoid(sigmoid(sigmoid(x))))
    # The nodes of two matches may not overlap.
    traced = fx.symbolic_trace(lambda x: relu(relu(relu(x))))
    assert len(fx.replace_pattern(traced, lambda x: relu(relu(x)), sigmoid_of)) == 1


def relu_of(x):
    return relu(x)


def sigmoid_of(x):
    return sigmoid(x)


def test_values_used_elsewhere_do_not_match():
    traced = fx.symbolic_trace(lambda x: relu(x.abs()) + x.abs())
    assert len(fx.replace_pattern(traced, lambda x: relu(x.abs()), sigmoid_of)) == 1

    def shared(x):
        y = x.abs()
        return relu(y) + y

    assert fx.replace_pattern(fx.symbolic_trace(shared), lambda x: relu(x.abs()), sigmoid_of) == []


def test_patterns_with_several_results():
    def f(x):
        y = x.abs()
        return relu(y) + 1, tanh(y) + 2

    def pattern(x):
        y = x.abs()
        return relu(y), tanh(y)

    traced = fx.symbolic_trace(f)
    assert len(fx.replace_pattern(traced, pattern, lambda x: (x - 1, x - 2))) == 1
    assert traced(10) == (10, 10)


def test_literals_and_filters():
    traced = fx.symbolic_trace(lambda x: (x + 1, x + 2))
    assert fx.replace_pattern(traced, lambda x: x + 3, relu_of) == []
    found = replace_pattern_with_filters(traced, lambda x: x + 3, lambda x: x - 1, ignore_literals=True)
    assert [len(each.replacements) for each in found] == [1, 1]
    assert traced(5) == (4, 4)
    traced = fx.symbolic_trace(lambda x: (x + 1, x + 2))
    second = [lambda match, graph, pattern: match.returning_nodes[0].args[1] == 2]
    replace_pattern_with_filters(traced, lambda x: x + 3, lambda x: x * 10, match_filters=second, ignore_literals=True)
    assert traced(5) == (6, 50)

    def negated(match, graph, pattern):
        return fx.symbolic_trace(lambda x: -x).graph

    replace_pattern_with_filters(traced, lambda x: x * 10, replacement_callback=negated, node_name_match="mul")
    assert traced(5) == (6, -5)


def test_arguments_by_name_and_position():
    traced = fx.symbolic_trace(lambda x: nn.functional.softmax(x, 1))
    assert len(fx.replace_pattern(traced, lambda x: nn.functional.softmax(x, dim=1), relu_of)) == 1
    traced = fx.symbolic_trace(lambda x, y: candelabra.cat([x, y], 1))
    assert len(fx.replace_pattern(traced, lambda x, y: candelabra.cat([x, y], dim=1), lambda x, y: x + y)) == 1


def test_modules_in_replacements():
    class Pattern(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x):
            return self.act(x)

    class Replacement(nn.Module):
        def __init__(self):
            super().__init__()
            self.other = nn.Tanh()
            self.offset = nn.Parameter(candelabra.ones(1))

        def forward(self, x):
            return self.other(x) + self.offset

    traced = fx.symbolic_trace(Pattern())
    fx.replace_pattern(traced, fx.symbolic_trace(Pattern()), fx.symbolic_trace(Replacement()))
    assert not hasattr(traced, "act") and isinstance(traced.other, nn.Tanh)
    assert traced(candelabra.zeros(1)).item() == 1
    assert [name for name, _ in traced.named_parameters()] == ["offset"]


def test_patterns_that_cannot_be():
    with pytest.raises(ValueError, match="empty pattern"):
        SubgraphMatcher(fx.Graph())

    def dead(x):
        x.abs()
        return x + 1

    with pytest.raises(AssertionError, match="dead code"):
        SubgraphMatcher(fx.Tracer().trace(dead))
    with pytest.raises(AssertionError, match="replacement has 2"):
        fx.replace_pattern(fx.symbolic_trace(relu_of), relu_of, lambda x, y: x + y)
    with pytest.raises(AssertionError, match="replacement returns 2"):
        fx.replace_pattern(fx.symbolic_trace(relu_of), relu_of, lambda x: (x, x))


# ---- shapes


def test_shapes():
    traced = fx.symbolic_trace(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten()))
    ShapeProp(traced).propagate(candelabra.ones(1, 1, 5, 5))
    found = {node.name: node.meta["tensor_meta"] for node in traced.graph.nodes}
    assert found["_0"].shape == (1, 2, 3, 3) and found["_1"].stride == (18, 1)
    assert found["input_1"].memory_format is candelabra.contiguous_format
    assert all(is_node_output_tensor(node) for node in traced.graph.nodes)
    assert "candelabra.float32[1, 2, 3, 3]" in traced.graph.find_nodes(op="call_module")[0].format_node(
        include_tensor_metadata=True
    )


def test_shapes_without_computing():
    traced = fx.symbolic_trace(lambda x: x @ x)
    mode = candelabra.fake_tensor.FakeTensorMode()
    ShapeProp(traced, mode).propagate(candelabra.ones(4, 4))
    node = traced.graph.find_nodes(op="call_function")[0]
    assert node.meta["tensor_meta"].shape == (4, 4)
    assert isinstance(node.meta["val"], candelabra.fake_tensor.FakeTensor)


# ---- division and order


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.offset = nn.Parameter(candelabra.ones(4))

    def forward(self, x, y=2):
        h = relu(self.a(x) + self.offset)
        k = h * y
        return tanh(self.b(h)) + k, h


def test_split():
    model = Deep()
    traced = fx.symbolic_trace(model)
    parts = {"linear": 0, "a": 0, "add": 0, "relu": 0, "mul": 1}
    old = {}
    split = split_module(traced, model, lambda node: parts.get(node.name, 2), old)
    assert [name for name, _ in split.named_children()] == ["submod_0", "submod_1", "submod_2"]
    assert old == {"submod_0.a": "a", "submod_0.offset": "offset", "submod_2.b": "b"}
    x = candelabra.randn(3, 4)
    for result, expected in zip(split(x), model(x), strict=True):
        assert candelabra.equal(result, expected)
    assert names(split.submod_0.graph) == ["x", "a", "offset", "add", "relu", "output"]
    affixed = split_module(traced, model, lambda node: 0, partition_affix="gpu", tuple_return=True)
    assert hasattr(affixed, "submod_gpu_0")
    assert candelabra.equal(affixed(x)[0], model(x)[0])
    with pytest.raises(RuntimeError, match="cycle exists between partitions!"):
        split_module(traced, model, lambda node: int(node.name == "relu"))


def test_order():
    graph = fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_method("abs", (x,))
    b = graph.call_method("neg", (a,))
    graph.output(b)
    b.append(a)
    traced = fx.GraphModule.__new__(fx.GraphModule)
    nn.Module.__init__(traced)
    traced._graph = graph
    assert names(legalize_graph(traced).graph) == ["x", "abs_1", "neg", "output"]
    assert traced(candelabra.tensor(-2.0)).item() == -2
    first, second = traced.graph.find_nodes(op="call_method")
    first.args = (second,)
    with pytest.raises(RuntimeError, match="Input graph has cycles"):
        stable_topological_sort(traced)


def test_targets():
    traced = fx.symbolic_trace(Deep())
    modules = dict(traced.named_modules())
    found = [get_node_target(modules, node) for node in traced.graph.nodes if node.op.startswith("call")]
    assert found[0] == "candelabra.nn.modules.linear.Linear" and "candelabra.relu" in found and "_operator.mul" in found


def test_pass_base():
    class Rename(PassBase):
        def call(self, graph_module):
            return PassResult(graph_module, False)

        def requires(self, graph_module):
            if len(graph_module.graph.nodes) > 3:
                raise ValueError("too many")

    assert Rename()(fx.symbolic_trace(relu_of)).modified is False
    with pytest.raises(ValueError, match="too many"):
        Rename()(fx.symbolic_trace(Deep()))


# ---- optimizations


def test_fuse():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2))
    model(candelabra.randn(4, 1, 8, 8))
    model.eval()
    fused = fuse(model)
    assert [node.target for node in fused.graph.find_nodes(op="call_module")] == ["0", "2", "3"]
    x = candelabra.randn(2, 1, 8, 8)
    assert candelabra.allclose(fused(x), model(x), atol=1e-5)
    assert isinstance(model[1], nn.BatchNorm2d)


def test_remove_dropout_and_extract():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.Tanh())
    without = remove_dropout(model)
    assert [node.target for node in without.graph.find_nodes(op="call_module")] == ["0", "2"]
    first, last = without.graph.find_nodes(op="call_module")
    part = extract_subgraph(without, [last], [first], [last])
    assert part(candelabra.zeros(1))[0].item() == 0


def test_questions_about_sizes():
    assert symbolic_shapes.guard_or_false(True) and not symbolic_shapes.statically_known_true(False)
    assert symbolic_shapes.free_symbols(candelabra.ones(2)) == set()
    assert symbolic_shapes.sym_eq((2, (3,)), (2, (3,))) and not symbolic_shapes.sym_eq((2,), (2, 3))
    assert (symbolic_shapes.hint_int(3), symbolic_shapes.is_symbolic(3)) == (3, False)
    with pytest.raises(AssertionError, match="unrecognized scalar"):
        symbolic_shapes.guard_scalar("a")
