"""Tracing of programs."""

from __future__ import annotations

import dataclasses
import math
import threading

import pytest

import candelabra
from candelabra import fx, nn
from candelabra.fx.patching import is_fx_tracing
from candelabra.fx.tracing import PHWithMeta


def targets(root, tracer=None):
    graph = (tracer or fx.Tracer()).trace(root)
    return [node.target for node in graph.nodes]


def test_results_are_those_of_the_program():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)
            self.register_buffer("scale", candelabra.full((1,), 2.0))

        def forward(self, x):
            return nn.functional.relu(self.norm(self.conv(x)) * self.scale) + x

    model = nn.Sequential(Block(), Block(), nn.Flatten(), nn.Linear(48, 5))
    traced = fx.symbolic_trace(model)
    x = candelabra.randn(2, 3, 4, 4)
    model.eval(), traced.eval()
    assert candelabra.equal(traced(x), model(x))
    traced.train()(x).sum().backward()
    assert model[0].conv.weight.grad is not None
    assert list(traced.state_dict()) == list(model.state_dict())


@pytest.mark.parametrize(
    ("body", "error", "text"),
    [
        ("return x if x.sum() > 0 else 2", fx.TraceError, "cannot be used as inputs to control flow"),
        ("return x and 1", fx.TraceError, "cannot be used as inputs to control flow"),
        ("return [y for y in x]", fx.TraceError, "Proxy object cannot be iterated"),
        ("return candelabra.zeros(*x)", fx.TraceError, "Proxy object cannot be iterated"),
        ("return [*x]", fx.TraceError, "Proxy object cannot be iterated"),
        ("return {**x}", fx.TraceError, "Proxy object cannot be iterated"),
        ("return 1 in x", fx.TraceError, "Proxy object cannot be iterated"),
        ("return len(x)", RuntimeError, "'len' is not supported in symbolic tracing by default"),
        ("return range(x)", TypeError, "'Proxy' object cannot be interpreted as an integer"),
        ("return int(x)", TypeError, "not 'Proxy'"),
        ("x[0] = 1", TypeError, "'Proxy' object does not support item assignment"),
        ("return x + object()", NotImplementedError, "argument of type: <class 'object'>"),
        ("return {x: 1}", RuntimeError, "Keys for dictionaries used as an argument cannot contain a Node. Got key: x"),
        ("return candelabra.nn.Linear(2, 2)(x)", NameError, "module is not installed as a submodule"),
        ("return x + P", NameError, "parameter is not a member of this module"),
    ],
)
def test_what_cannot_be_traced(body, error, text):
    scope = {"candelabra": candelabra, "P": nn.Parameter(candelabra.ones(2))}
    exec(f"def f(x):\n    {body}", scope)
    with pytest.raises(error, match=text):
        fx.symbolic_trace(scope["f"])
    with pytest.raises(AssertionError, match="Expected FunctionType, got <class 'int'>"):
        fx.symbolic_trace(3)


def test_a_failed_trace_restores_everything():
    call, get = nn.Module.__call__, nn.Module.__getattribute__

    def f(x):
        assert is_fx_tracing()
        raise KeyError

    with pytest.raises(KeyError):
        fx.symbolic_trace(f)
    assert nn.Module.__call__ is call and nn.Module.__getattribute__ is get
    assert not is_fx_tracing()
    assert "__getattribute__" not in vars(nn.Module)
    assert math.sqrt(4) == 2


def test_questions_with_known_answers():
    def f(x):
        assert not isinstance(x, candelabra.Tensor)
        assert not candelabra.is_tensor(x)
        assert repr(x) == "Proxy(x)"
        assert x is not None
        a, b = x
        return a + b

    assert targets(f)[-2:] == [fx.node.operator.add, "output"]


def test_operands_on_both_sides():
    t = candelabra.ones(2, 2)
    x = candelabra.tensor([[3.0, 1.0], [1.0, 2.0]])

    def f(x):
        return 1 - x, t - x, t @ x, x @ t, 2 / x

    for result, expected in zip(fx.symbolic_trace(f)(x), f(x), strict=True):
        assert candelabra.equal(result, expected)
    index = candelabra.tensor([1, 0])
    assert candelabra.equal(fx.symbolic_trace(lambda i: t[i])(index), t[index])
    traced = fx.symbolic_trace(lambda i: t[:, i])
    assert candelabra.equal(traced(1), t[:, 1])


def test_leaf_modules():
    class Mine(nn.Module):
        def forward(self, x):
            return x.relu()

    class Leaves(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return isinstance(m, Mine) or super().is_leaf_module(m, module_qualified_name)

    model = nn.Sequential(Mine(), nn.Sequential(nn.Tanh()))
    assert targets(model) == ["input", "relu", "1.0", "output"]
    assert targets(model, Leaves()) == ["input", "0", "1.0", "output"]


def test_parameters_and_buffers():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(candelabra.ones(2, 3))
            self.register_buffer("buffer", candelabra.ones(2))
            self.child = nn.Linear(2, 2)

        def forward(self, x):
            weight = self.weight.t()
            scale = self.buffer * 2
            return x @ weight * scale + self.child.weight.sum()

    assert targets(Model())[1:4] == ["weight", "t", fx.node.operator.matmul]
    assert "_tensor_constant0" in targets(Model())

    class Buffers(fx.Tracer):
        proxy_buffer_attributes = True

    found = targets(Model(), Buffers())
    assert "buffer" in found and "_tensor_constant0" not in found

    class Shapes(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(candelabra.ones(2, 3))

        def forward(self, x):
            if self.weight.shape[0] == 2 and self.weight.size(1) == 3 and self.weight.dim() == self.weight.ndim == 2:
                assert self.weight.numel() == self.weight.nelement() == 6
                return x @ self.weight
            return x

    with pytest.raises(fx.TraceError):
        fx.symbolic_trace(Shapes())
    assert targets(Shapes(), fx.Tracer(param_shapes_constant=True)) == [
        "x",
        "weight",
        fx.node.operator.matmul,
        "output",
    ]


def test_wrapped_functions_and_modules():
    scope = {"math": math, "fx": fx, "__name__": "program"}
    source = (
        "def branch(x):\n    return x if x > 0 else -x\nfx.wrap('branch')\nfx.wrap('len')\n"
        "def f(x):\n    return branch(x) + len(x) + math.floor(x)\n"
    )
    exec(compile(source, "program", "exec"), scope)
    traced = fx.symbolic_trace(scope["f"])
    assert [node.name for node in traced.graph.nodes] == ["x", "branch", "len_1", "add", "floor", "add_1", "output"]
    assert scope["branch"](-2) == 2 and "len" not in scope
    # The code of a traced module has the functions wrapped as well.
    again = fx.symbolic_trace(traced)
    assert again.code == traced.code
    with pytest.raises(NotImplementedError, match="wrap must be called at the top level of a module"):
        fx.wrap("len")
    with pytest.raises(RuntimeError, match="Unsupported type for global function!"):
        fx.wrap(3)


def own_function(x):
    return x if x > 0 else -x


def test_functions_of_a_tracer():
    def f(x):
        return own_function(x)

    assert targets(f, fx.Tracer(autowrap_functions=(own_function,))) == ["x", own_function, "output"]
    assert own_function(-1) == 1


def test_asserts():
    class Asserting(fx.Tracer):
        trace_asserts = True

    # pytest changes the asserts of this file.
    scope: dict = {}
    exec("def f(x):\n    assert x.sum() > 0, 'positive'\n    assert x.shape[0] == 2\n    return x", scope)
    traced = fx.GraphModule(nn.Module(), Asserting().trace(scope["f"]))
    assert candelabra.equal(traced(candelabra.ones(2)), candelabra.ones(2))
    with pytest.raises(AssertionError, match="positive"):
        traced(-candelabra.ones(2))
    with pytest.raises(AssertionError):
        traced(candelabra.ones(3))
    with pytest.raises(fx.TraceError):
        Asserting().trace(lambda x: x if x else 1)
    traced = fx.symbolic_trace(lambda x: candelabra._assert(x > 0, "text"))
    with pytest.raises(AssertionError, match="text"):
        traced(0)


def test_concrete_arguments():
    def f(x, flag, other):
        return x + 1 if flag else other

    traced = fx.symbolic_trace(f, concrete_args={"flag": True})
    assert traced(1, True, 2) == 2
    with pytest.raises(AssertionError, match="flag has been specialized to have value True but got another value"):
        traced(1, False, 2)
    with pytest.raises(RuntimeError, match="Tracing expected 3 arguments but got 1 concrete arguments"):
        fx.Tracer().trace(f, concrete_args=(1,))
    traced = fx.symbolic_trace(lambda x, y: x if y is None else y, concrete_args={"y": None})
    with pytest.raises(AssertionError, match="value None"):
        traced(1, 2)
    graph = fx.Tracer().trace(lambda x: x["a"], concrete_args={"x": {"a": PHWithMeta("key")}})
    assert graph.find_nodes(op="placeholder")[0].meta["ph_key"] == "key"
    with pytest.warns(UserWarning, match="Was not able to add assertion"):
        fx.symbolic_trace(lambda x, y: x, concrete_args={"y": object()})


@dataclasses.dataclass
class Two:
    a: object
    b: object


def test_dataclasses():
    traced = fx.symbolic_trace(lambda x: Two(x, 1))
    assert traced(2) == Two(2, 1)


def test_mutable_operations():
    class Functional(fx.Tracer):
        check_mutable_operations = True

    with pytest.raises(RuntimeError, match="Tried to trace mutable operation"):
        Functional().trace(lambda x: candelabra.relu_(x))
    assert targets(lambda x: candelabra.relu(x), Functional()) == ["x", candelabra.relu, "output"]


def test_meta():
    class Recording(fx.Tracer):
        record_stack_traces = True

    model = nn.Sequential(nn.Sequential(nn.ReLU()))
    graph = Recording().trace(model)
    call = graph.find_nodes(op="call_module")[0]
    assert [path for path, _ in call.meta["nn_module_stack"].values()] == ["0", "0.0"]
    assert "test_tracing.py" in call.stack_trace and "fx/proxy.py" not in call.stack_trace


def test_other_methods():
    class Model(nn.Module):
        def forward(self, x):
            return x

        def encode(self, x):
            return x + 1

    class Encoding(fx.Tracer):
        traced_func_name = "encode"

    assert targets(Model(), Encoding()) == ["x", fx.node.operator.add, "output"]


def test_tracers_that_know_more():
    class Sized(fx.Tracer):
        def to_bool(self, obj):
            return True

        def iter(self, obj):
            return iter([obj[0], obj[1]])

        def keys(self, obj):
            return ["a"]

    def f(x):
        return [each + 1 for each in x] if x.sum() else None

    assert len(targets(f, Sized())) == 7
    assert [str(target) for target in targets(lambda x: dict(**x), Sized())][1] == str(fx.node.operator.getitem)


def test_other_threads_are_not_traced():
    model = nn.Sequential(nn.ReLU())
    results = []

    def f(x):
        thread = threading.Thread(target=lambda: results.append(model(-candelabra.ones(2))))
        thread.start()
        thread.join()
        return x

    fx.symbolic_trace(f)
    assert results[0].tolist() == [0, 0]


def test_nested_tracing():
    def f(x):
        inner = fx.symbolic_trace(nn.Sequential(nn.ReLU()))
        assert len(inner.graph.nodes) == 3
        return x + 1

    assert len(fx.symbolic_trace(f).graph.nodes) == 3
    assert "__getattribute__" not in vars(nn.Module)


def test_proxies_of_graphs():
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    y = candelabra.relu(x) + x.size(0)
    graph.output(y.node)
    assert len(graph.nodes) == 5
    assert {x: 1}[x] == 1
    other = fx.Proxy(fx.Graph().placeholder("y"))
    with pytest.raises(RuntimeError, match="multiple different tracers"):
        candelabra.add(x, other)


def test_annotations():
    def f(x):
        x = fx.annotate.annotate(x, int)
        with fx.traceback.annotate({"part": 1}):
            return x + 1

    with fx.traceback.preserve_node_meta():
        graph = fx.Tracer().trace(f)
    assert graph.find_nodes(op="placeholder")[0].type is int
    assert graph.find_nodes(op="call_function")[0].meta["custom"] == {"part": 1}
    assert not fx.traceback.has_preserved_node_meta()


class Interval(metaclass=fx.ProxyableClassMeta):
    def __init__(self, low, high):
        self.low, self.high = low, high

    def clamp(self, x):
        return x.clamp(self.low, self.high)


def test_classes_whose_construction_is_a_call():
    traced = fx.symbolic_trace(lambda x, low: Interval(low, 2.0).clamp(x))
    assert [node.target for node in traced.graph.nodes if node.op == "call_function"] == [Interval]
    assert traced(candelabra.tensor([0.0, 3.0]), 1.0).tolist() == [1.0, 2.0]
    kept = Interval(0.0, 1.0)
    traced = fx.symbolic_trace(lambda x: (x + 1, kept))
    assert traced(candelabra.ones(1))[1] is kept
    assert isinstance(Interval(1.0, 2.0), Interval)
