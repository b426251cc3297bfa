"""candelabra.jit: arguments of its functions, and what recorded modules tell."""

import io

import pytest

import candelabra
from candelabra import jit, nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.factor = 2.0

    def forward(self, x, offset=0.0):
        return self.linear(x) * self.factor + offset

    def doubled(self, x):
        return 2 * self(x)


def test_traces_by_names_of_arguments():
    model, x = Scaled(), candelabra.randn(4, 3)
    traced = jit.trace(model, example_kwarg_inputs={"x": x, "offset": candelabra.ones(2)})
    assert traced(x=x, offset=candelabra.ones(2)).equal(model(x, 1.0))
    by_dict = jit.trace_module(
        model,
        {"forward": {"x": x, "offset": candelabra.ones(2)}},
        check_inputs=[{"forward": {"x": x + 1, "offset": candelabra.zeros(2)}}],
        example_inputs_is_kwarg=True,
    )
    assert by_dict(x=x, offset=candelabra.ones(2)).equal(model(x, 1.0))
    by_position = jit.trace_module(model, {"forward": (x,)}, check_inputs=[{"forward": x + 1}])
    assert by_position(x).equal(model(x))


def test_arguments_of_traces_that_are_refused():
    with pytest.raises(AttributeError, match="dictionary of"):
        jit.trace_module(Scaled(), candelabra.ones(1, 3))
    with pytest.raises(NotImplementedError, match="only forward is traced, not \\['doubled'\\]"):
        jit.trace_module(Scaled(), {"forward": candelabra.ones(1, 3), "doubled": candelabra.ones(1, 3)})
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        jit.trace(Scaled(), candelabra.ones(1, 3), check_tolerence=1)


@pytest.mark.parametrize("strict", [True, False])
def test_results_in_containers(strict):
    traced = jit.trace(lambda x: {"a": x + 1, "b": [x * 2]}, candelabra.ones(2), strict=strict)
    found = traced(candelabra.ones(3))
    assert found["a"].tolist() == [2.0] * 3
    assert found["b"][0].tolist() == [2.0] * 3


def test_scripts_with_examples_need_no_call():
    function = jit.script(lambda x: x.relu() + 1, example_inputs=[(candelabra.ones(2),)])
    assert "relu" in function.code
    model = Scaled()
    module = jit.script(model, example_inputs={model.forward: [(candelabra.ones(1, 3),)]})
    assert "linear" in module.code
    with pytest.raises(ValueError, match="example_inputs"):
        jit.script(model, example_inputs={model.doubled: [(candelabra.ones(1, 3),)]})


@pytest.mark.parametrize("make", [jit.script, lambda model: jit.trace(model, candelabra.ones(1, 3))])
def test_what_recorded_modules_tell(make):
    model = make(Scaled().eval())
    x = candelabra.randn(5, 3)
    expected = model(x)
    assert str(model.inlined_graph) == str(model.graph)
    assert str(model.graph_for(x)) == str(model.graph)
    code, constants = model.code_with_constants
    assert code == model.code
    assert isinstance(constants, dict)
    assert jit.load(io.BytesIO(model.save_to_buffer()))(x).equal(expected)
    extra = {"note": ""}
    jit.load(io.BytesIO(model.save_to_buffer(_extra_files={"note": "kept"})), _extra_files=extra)
    assert extra["note"] in ("kept", b"kept")
    assert jit.export_opnames(model) == ["aten::add", "aten::linear", "aten::mul"]
    with pytest.raises(NotImplementedError, match="nothing is compiled from source"):
        model.define("def f(self): return 1")
    with pytest.raises(NotImplementedError, match="no executor"):
        model.get_debug_state()


def test_what_recorded_functions_tell():
    def shifted(x, by: float = 1.0):
        return x + by

    function = jit.script(shifted)
    function(candelabra.ones(2))
    assert function.name == "shifted"
    assert function.qualified_name.endswith("test_what_recorded_functions_tell.<locals>.shifted")
    assert list(function.schema.parameters) == ["x", "by"]
    assert jit.export_opnames(function) == ["aten::add"]
    with pytest.raises(TypeError, match="is no program"):
        jit.export_opnames(shifted)


def test_frozen_modules_keep_what_is_named():
    model, x = jit.script(Scaled().eval()), candelabra.randn(2, 3)
    frozen = jit.freeze(model, preserved_attrs=["factor", "doubled", "forward"])
    assert frozen.factor == 2.0
    assert frozen.doubled(x).equal(model.doubled(x))
    assert not list(frozen.parameters())
    with pytest.raises(AttributeError):
        _ = jit.freeze(model).factor
    with pytest.raises(AttributeError):
        jit.freeze(model, preserved_attrs=["missing"])
    assert jit.optimize_for_inference(model, other_methods=["doubled"]).doubled(x).equal(model.doubled(x))
    jit.run_frozen_optimizations(frozen)
    assert frozen(x).equal(model(x))


def test_loading_to_a_device_and_unknown_files():
    file = io.BytesIO()
    jit.save(jit.trace(lambda x: x + 1, candelabra.ones(2)), file)
    for place in (None, "cpu", candelabra.device("cpu")):
        file.seek(0)
        assert jit.load(file, map_location=place)(candelabra.zeros(3)).tolist() == [1.0] * 3
    file.seek(0)
    with pytest.raises(candelabra.serialization.FileError, match="no extra file 'other'"):
        jit.load(file, _extra_files={"other": ""})
    with pytest.raises(TypeError, match="is no program"):
        jit.save(nn.Linear(1, 1), io.BytesIO())
