"""Graphs and nodes."""

from __future__ import annotations

import copy
import operator

import pytest

import candelabra
from candelabra import fx, nn
from candelabra.fx.immutable_collections import immutable_dict, immutable_list


def chain():
    """Return a graph of (x + y).relu() and its nodes."""
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    add = graph.call_function(operator.add, (x, y))
    relu = graph.call_method("relu", (add,))
    return graph, x, y, add, relu, graph.output(relu)


def names(graph):
    return [node.name for node in graph.nodes]


def test_users_and_inputs():
    _graph, x, y, add, relu, output = chain()
    assert (list(x.users), add.all_input_nodes, list(relu.users)) == ([add], [x, y], [output])
    add.args = (x, x)
    assert (list(y.users), add.all_input_nodes) == ([], [x])
    add.kwargs = {"other": [{"a": y}]}
    assert list(y.users) == [add]
    assert isinstance(add.kwargs["other"], immutable_list)
    assert isinstance(add.kwargs["other"][0], immutable_dict)
    add.update_kwarg("other", 1)
    add.update_arg(1, 2)
    add.insert_arg(0, y)
    assert (add.args, dict(add.kwargs)) == ((y, x, 2), {"other": 1})
    with pytest.raises(TypeError, match="a tuple and a dict"):
        add.args = 3


def test_order():
    graph, x, y, add, relu, _ = chain()
    assert x < y < add and relu > add and relu >= relu and add <= relu
    assert (x.next, add.prev) == (y, y)
    y.prepend(add)
    assert names(graph) == ["x", "add", "y", "relu", "output"]
    assert add < y
    y.append(add)
    assert names(graph) == ["x", "y", "add", "relu", "output"]
    assert [node.name for node in reversed(graph.nodes)] == ["output", "relu", "add", "y", "x"]
    with pytest.warns(UserWarning, match="prepend a node to itself"):
        add.prepend(add)
    with pytest.raises(AssertionError, match="into a different Graph"):
        add.prepend(fx.Graph().placeholder("z"))


def test_insert_points():
    graph, x, _y, add, relu, output = chain()
    with graph.inserting_before(relu):
        graph.call_method("abs", (add,))
    with graph.inserting_after(x):
        graph.placeholder("z")
        graph.placeholder("w")
    with graph.inserting_before():
        graph.placeholder("first")
    graph.inserting_after(output)
    graph.get_attr("last")
    assert names(graph) == ["first", "x", "z", "w", "y", "add", "abs_1", "relu", "output", "last"]
    with pytest.raises(AssertionError, match="not in graph"):
        graph.inserting_before(fx.Graph().placeholder("z"))


def test_replacing_and_erasing():
    graph, x, y, add, relu, _ = chain()
    with graph.inserting_after(add):
        sub = graph.call_function(operator.sub, (x, y))
    with pytest.raises(
        RuntimeError, match=r"Tried to erase Node add but it still had 1 users in the graph: \{relu: None\}!"
    ):
        graph.erase_node(add)
    add.meta["note"] = 1
    assert add.replace_all_uses_with(sub, propagate_meta=True) == [relu]
    assert (relu.args, sub.meta) == ((sub,), {"note": 1})
    graph.erase_node(add)
    with pytest.warns(UserWarning, match="already erased"):
        graph.erase_node(add)
    with pytest.raises(RuntimeError, match="from wrong graph"):
        graph.erase_node(fx.Graph().placeholder("z"))
    assert relu.replace_all_uses_with(sub, lambda user: False) == []
    relu.replace_input_with(sub, x)
    assert relu.args == (x,)
    graph.lint()
    assert len(graph.nodes) == 5


def test_erasing_while_iterating():
    graph, _x, _y, _add, _relu, _output = chain()
    seen = []
    for node in reversed(graph.nodes):
        seen.append(node.name)
        graph.erase_node(node)
    assert seen == ["output", "relu", "add", "y", "x"]
    assert len(graph.nodes) == 0


def test_find_nodes():
    graph = fx.symbolic_trace(lambda x: (candelabra.relu(x) + candelabra.sigmoid(x)).abs()).graph
    assert [node.name for node in graph.find_nodes(op="call_function")] == ["relu", "sigmoid", "add"]
    assert [node.name for node in graph.find_nodes(op="call_function", target=candelabra.sigmoid)] == ["sigmoid"]
    assert [node.name for node in graph.find_nodes(op="call_method", target="abs")] == ["abs_1"]
    assert graph.output_node().op == "output"
    unfinished = fx.Graph()
    unfinished.placeholder("x")
    with pytest.raises(AssertionError, match="Expected output node, got op=placeholder"):
        unfinished.output_node()


def test_creating_what_cannot_be():
    graph = fx.Graph()
    with pytest.raises(AssertionError, match="op 'foo' is not in _legal_ops"):
        graph.create_node("foo", "x")
    with pytest.raises(ValueError, match="target x has type str but a Callable is expected"):
        graph.call_function("x")
    with pytest.raises(ValueError, match="but a str is expected"):
        graph.call_method(len)
    with pytest.raises(AssertionError, match="args must be a tuple"):
        graph.call_function(len, [1])


def test_lint():
    graph, x, y, add, relu, _ = chain()
    graph.lint()
    relu.append(add)
    with pytest.raises(RuntimeError, match="Argument 'add' of Node 'relu' was used before it has been defined!"):
        graph.lint()
    relu.prepend(add)
    add.args = (x, fx.Graph().placeholder("z"))
    with pytest.raises(RuntimeError, match="does not belong to this Graph, but was used as an argument!"):
        graph.lint()
    add.args = (x, y)
    y.name = "x"
    with pytest.raises(RuntimeError, match="Node redefined name x!"):
        graph.lint()


def test_lint_of_attributes():
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3)))
    traced.graph.lint()
    with (
        traced.graph.inserting_before(traced.graph.output_node()),
        pytest.warns(UserWarning, match="no underlying reference"),
    ):
        node = traced.graph.get_attr("0.nothing")
    with pytest.raises(RuntimeError, match="references nonexistent attribute nothing of 0"):
        traced.graph.lint()
    traced.graph.erase_node(node)
    call = traced.graph.find_nodes(op="call_module")[0]
    call.target = "0.weight"
    with pytest.raises(RuntimeError, match="does not reference an nn.Module"):
        traced.graph.lint()


def test_dead_code():
    def f(x):
        candelabra.sin(x)
        y = x.cos()
        y.tan()
        x.add_(1)
        candelabra.nn.functional.relu(x, inplace=True)
        candelabra.add(x, x, out=x)
        candelabra.rand(x.size(0))
        candelabra._assert(x, "")
        x & x
        return x

    graph = fx.Tracer().trace(f)
    assert graph.eliminate_dead_code()
    assert names(graph) == ["x", "add_", "relu", "add", "size", "rand", "_assert", "output"]
    assert not graph.eliminate_dead_code()
    assert graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
    assert names(graph) == ["x", "output"]


def test_side_effects():
    calls = []

    @fx.has_side_effect
    def note(x):
        calls.append(x)

    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(note, (x,))
    graph.output(x)
    assert not graph.eliminate_dead_code()
    assert fx.GraphModule(nn.Module(), graph)(3) == 3
    assert calls == [3]


def test_impure_modules():
    class Counting(nn.Module):
        _is_impure = True

        def forward(self, x):
            return x

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = Counting(), nn.ReLU()

        def forward(self, x):
            self.a(x)
            self.b(x)
            return x

    class Leaves(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return True

    model = Model()
    traced = fx.GraphModule(model, Leaves().trace(model))
    assert traced.graph.eliminate_dead_code()
    assert names(traced.graph) == ["x", "a", "output"]


def test_copies():
    graph, x, y, add, _relu, _output = chain()
    add.meta["note"] = 1
    other = fx.Graph()
    z = other.placeholder("z")
    values = {x: z}
    result = other.graph_copy(graph, values)
    other.output(result)
    assert names(other) == ["z", "y", "add", "relu", "output"]
    assert values[add].args == (z, values[y])
    assert values[add].meta == {"note": 1}
    deep = copy.deepcopy(graph)
    assert str(deep) == str(graph)
    assert set(deep.nodes).isdisjoint(graph.nodes)
    made = other.node_copy(add, lambda node: z)
    assert (made.name, made.args) == ("add_1", (z, z))
    with pytest.raises(TypeError, match="belongs to its Graph"):
        copy.deepcopy(add)


def test_map_arg():
    _, x, y, *_ = chain()
    found = fx.map_arg(([x, 1], {"a": slice(None, y)}), lambda node: node.name)
    assert found == (["x", 1], {"a": slice(None, "y")})
    assert fx.map_aggregate(candelabra.Size([1, 2]), lambda n: n + 1) == (2, 3)


def test_immutable_collections():
    listed, mapped = immutable_list([1]), immutable_dict({"a": 1})
    for change in (
        lambda: listed.append(1),
        lambda: listed.__setitem__(0, 1),
        lambda: listed.sort(),
        lambda: mapped.update(b=1),
        lambda: mapped.pop("a"),
        lambda: mapped.__setitem__("a", 2),
    ):
        with pytest.raises(TypeError, match="does not support mutation"):
            change()
    assert (listed, mapped) == ([1], {"a": 1})
    assert candelabra.pytree.tree_map(lambda x: x + 1, [listed, mapped]) == [[2], {"a": 2}]
    assert type(copy.deepcopy(listed)) is immutable_list
    assert hash(listed) == hash(immutable_list([1]))


def test_normalized_arguments():
    traced = fx.symbolic_trace(nn.Sequential(nn.ReLU()))
    call = traced.graph.find_nodes(op="call_module")[0]
    assert call.normalized_arguments(traced, normalize_to_only_use_kwargs=True).kwargs.keys() == {"input"}
    graph = fx.symbolic_trace(lambda x: nn.functional.dropout(x, 0.1)).graph
    call = graph.find_nodes(op="call_function")[0]
    assert call.normalized_arguments(None).kwargs == {"training": True, "inplace": False}
    assert graph.output_node().normalized_arguments(None) is None
