"""Modules of graphs: their attributes, copies, pickles and errors."""

from __future__ import annotations

import copy
import gc
import linecache
import pickle
import traceback

import pytest

import candelabra
from candelabra import fx, nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        self.register_buffer("scale", candelabra.tensor(2.0), persistent=False)
        self.constant = candelabra.tensor(3.0)

    def forward(self, x):
        return self.block(x) * self.scale + self.constant + candelabra.ones(3).abs()


def branch(x):
    return x if x > 0 else -x


fx.wrap("branch")


def uses_branch(x):
    return branch(x) + 1


@pytest.fixture
def traced():
    return fx.symbolic_trace(Model())


def test_attributes(traced):
    assert list(traced.state_dict()) == ["constant", "_tensor_constant0", "block.0.weight", "block.0.bias"]
    assert type(traced).__name__ == "Model" and isinstance(traced, fx.GraphModule)
    assert type(traced) is not type(fx.symbolic_trace(Model()))
    assert traced.graph.owning_module is traced
    traced.double()
    assert traced(candelabra.ones(1, 2).double()).dtype is candelabra.float64


def test_of_a_dictionary():
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(candelabra.add, (graph.call_module("a.b", (x,)), graph.get_attr("a.c.d"))))
    made = fx.GraphModule({"a.c.d": candelabra.ones(1), "a.b": nn.ReLU()}, graph)
    assert made(-candelabra.ones(1)).item() == 1
    assert list(made.state_dict()) == ["a.c.d"]
    with pytest.raises(RuntimeError, match="Node a_b referenced target a.b but that target was not provided"):
        fx.GraphModule({}, graph)
    with pytest.raises(RuntimeError, match="Unsupported type 2 passed for root!"):
        fx.GraphModule(2, graph)
    with pytest.raises(AssertionError, match="Expected a Graph instance"):
        made.graph = 3


def test_recompile(traced):
    x = candelabra.ones(1, 2)
    before = traced(x)
    add = traced.graph.find_nodes(op="call_function")[-1]
    add.target = candelabra.sub
    assert candelabra.equal(traced(x), before)
    code = traced.recompile()
    assert code.src == traced.code and "candelabra.sub(" in traced.code
    assert candelabra.allclose(traced(x), before - 2)


@pytest.mark.parametrize("make", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy])
def test_copies_are_independent(traced, make):
    x = candelabra.ones(1, 2)
    traced.eval()
    traced.note = "kept"
    made = make(traced)
    assert candelabra.equal(made(x), traced(x))
    assert (made.code, str(made.graph)) == (traced.code, str(traced.graph))
    assert list(made.state_dict()) == list(traced.state_dict())
    assert made.training is False and type(made).__name__ == "Model"
    with candelabra.no_grad():
        made.block.get_submodule("0").weight.fill_(7)
    assert not candelabra.equal(made(x), traced(x))


def test_a_pickle_keeps_what_was_set(traced):
    traced.note = "kept"
    assert pickle.loads(pickle.dumps(traced)).note == "kept"


def test_a_shallow_copy(traced):
    traced.meta["note"] = 1
    made = copy.copy(traced)
    assert made.block is not traced.block and made.get_submodule("block.0") is traced.get_submodule("block.0")
    assert made.meta is traced.meta and traced.graph.owning_module is traced


def test_replicas(traced):
    x = candelabra.ones(1, 2)
    for made in nn.parallel.replicate(traced, ["cpu", "cpu"]):
        assert candelabra.equal(made(x), traced(x))


def test_pickles_of_wrapped_functions_and_containers():
    made = pickle.loads(pickle.dumps(fx.symbolic_trace(uses_branch)))
    assert made(-2) == 3
    assert len(fx.symbolic_trace(made).graph.nodes) == 4
    traced = fx.symbolic_trace(lambda a, b: [a + b["x"]], concrete_args={"b": {"x": fx.PH}})
    made = pickle.loads(pickle.dumps(traced))
    assert made(1, {"x": 2}) == copy.deepcopy(traced)(1, {"x": 2}) == [3]
    assert made.code == traced.code
    graph = fx.Graph()
    graph.output(graph.call_function(lambda x: x, (graph.placeholder("x"),)))
    local = fx.GraphModule(nn.Module(), graph)
    assert local(2) == 2
    with pytest.raises(AttributeError, match="cannot be imported"):
        pickle.dumps(local)


def test_subclasses():
    class Mine(fx.GraphModule):
        extra = 1

    graph = fx.Tracer().trace(lambda x: x + 1)
    made = Mine(nn.Module(), graph, "Named")
    assert (type(made).__name__, made.extra, made(1)) == ("Named", 1, 2)
    assert isinstance(copy.deepcopy(made), Mine)


def test_submodules(traced):
    assert traced.add_submodule("extra.part", nn.Tanh())
    assert isinstance(traced.extra.part, nn.Tanh)
    assert not traced.add_submodule("scale.part", nn.Tanh())
    traced.delete_all_unused_submodules()
    assert not hasattr(traced, "extra") and isinstance(traced.get_submodule("block.1"), nn.ReLU)
    assert traced.delete_submodule("block.1")
    assert not traced.delete_submodule("block.1")
    assert not traced.delete_submodule("nothing.at.all")


def test_tracebacks_show_the_code():
    traced = fx.symbolic_trace(lambda x: x.nothing(1))
    with pytest.raises(AttributeError) as caught:
        traced(candelabra.ones(1))
    assert "nothing = x.nothing(1);  x = None" in "".join(traceback.format_exception(caught.value))


def test_sources_are_freed():
    def generated():
        return sum(name.startswith("<eval_with_key>") for name in linecache.cache)

    gc.collect()
    before = generated()
    traced = fx.symbolic_trace(lambda x: x)
    for _ in range(10):
        traced.recompile()
    assert generated() == before + 1
    del traced
    gc.collect()
    assert generated() == before


def test_hooks(traced):
    created, erased, replaced, copied = [], [], [], []
    traced._register_create_node_hook(created.append)
    traced._register_erase_node_hook(erased.append)
    traced._register_replace_node_hook(lambda old, new, user: replaced.append((old, new, user)))
    traced._register_deepcopy_hook(copied.append)
    add = traced.graph.find_nodes(op="call_function")[-1]
    with traced.graph.inserting_before(add):
        new = traced.graph.call_function(candelabra.sub, add.args)
    add.replace_all_uses_with(new)
    traced.graph.erase_node(add)
    assert (created, erased) == ([new], [add])
    assert replaced == [(add, new.name, traced.graph.output_node())]
    assert copied == [] and copied.append(copy.deepcopy(traced)) is None and len(copied) == 2
    traced._unregister_create_node_hook(created.append)
    traced._unregister_erase_node_hook(erased.append)
    traced._unregister_deepcopy_hook(copied.append)
    traced.graph.call_function(candelabra.sub, (1, 2))
    assert len(created) == 1


def test_printing(traced):
    text = str(traced)
    assert text.startswith("Model(\n") and traced.code in text
    assert text.endswith("# To see more debug info, please use `graph_module.print_readable()`")
