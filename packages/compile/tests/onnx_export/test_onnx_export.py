"""The arguments of `onnx.export`, files, and errors."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="the export writes its files with onnx: pip install onnx")
pytest.importorskip("onnxruntime", reason="the oracle of these tests: pip install onnxruntime")

import onnx as package
import onnxruntime
from onnx_oracle import Of, assert_same, exported

import candelabra
from candelabra import nn, onnx
from candelabra.export import Dim


def linear():
    return nn.Sequential(nn.Linear(300, 4), nn.ReLU()).eval()


X = candelabra.ones(2, 300)


def test_import_of_candelabra_does_not_import_onnx():
    code = "import sys, candelabra, candelabra.onnx, candelabra.export; assert 'onnx' not in sys.modules and 'google' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'candelabra-compile\[onnx\]'"):
        onnx.export(linear(), (X,))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.delitem(sys.modules, "onnx")
    with pytest.raises(ModuleNotFoundError, match="pip install onnxruntime"):
        onnx.export(linear(), (X,))(X)


def test_files(tmp_path):
    model, path = linear(), tmp_path / "model.onnx"
    program = onnx.export(model, (X,), path)
    # The weight is in the file beside the model, the bias is small.
    assert (tmp_path / "model.onnx.data").stat().st_size == model[0].weight.numel() * 4
    package.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"input": X.numpy()})
    candelabra.testing.assert_close(candelabra.from_numpy(found), model(X).detach())
    program.save(tmp_path / "one.onnx")
    assert not (tmp_path / "one.onnx.data").exists()
    assert package.load(tmp_path / "one.onnx") == program.model_proto
    program.save(tmp_path / "inputs.onnx", include_initializers=False, keep_initializers_as_inputs=True)
    graph = package.load(tmp_path / "inputs.onnx").graph
    assert [one.name for one in graph.input] == ["input", "0.weight", "0.bias"] and not graph.initializer
    assert [dim.dim_value for dim in graph.input[1].type.tensor_type.shape.dim] == [4, 300]
    file = io.BytesIO()
    onnx.export(model, (X,), file)
    assert package.load_from_string(file.getvalue()) == program.model_proto


def test_large_weights_are_in_a_file_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr("candelabra.onnx.program._LARGEST_MESSAGE", 1000)
    model = linear()
    program = onnx.export(model, (X,), tmp_path / "model.onnx", external_data=False)
    assert (tmp_path / "model.onnx.data").exists()
    with pytest.raises(onnx.OnnxExporterError, match="2 GB"):
        program.model_proto
    assert_same(program, model, (X,))


def test_weights_are_replaced():
    program, other = onnx.export(linear(), (X,)), linear()
    program.apply_weights(other.state_dict())
    assert_same(program, other, (X,))
    with pytest.warns(onnx.OnnxExporterWarning, match="'missing' not found"):
        program.apply_weights({"missing": X})


def test_arguments_by_name_and_in_containers():
    def weighted(pair, *, weights, scale=2.0, extra=None):
        return {"sum": pair[0] * weights["a"] + pair[1], "scale": scale, "none": extra, "size": pair[0].shape[0]}

    args, kwargs = ((X, X + 1),), {"weights": {"a": X * 3}, "scale": 3.0}
    program = onnx.export(Of(weighted).eval(), args, kwargs=kwargs, output_names=["total"])
    graph = program.model_proto.graph
    assert [one.name for one in graph.input] == ["args_0_0", "args_0_1", "weights_a"]
    total, scale, size = program(*args, **kwargs)
    assert total.equal(X * 3 + X + 1) and scale.item() == 3.0 and size.item() == 2
    assert [one.name for one in onnx.export(Of(weighted).eval(), (*args, kwargs)).model_proto.graph.input] == [
        one.name for one in graph.input
    ]
    with pytest.raises(TypeError, match="takes 3 tensors"):
        program(X)


def test_dynamic_axes():
    model = linear()
    with pytest.warns(UserWarning, match="dynamic_axes"):
        program = onnx.export(
            model, (X,), input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "rows-1"}, "y": {0: "rows-1"}}
        )
    graph = program.model_proto.graph
    assert [one.type.tensor_type.shape.dim[0].dim_param for one in (*graph.input, *graph.output)] == ["rows-1"] * 2
    assert_same(program, model, (candelabra.ones(5, 300),))
    with pytest.warns(UserWarning, match="dynamic_axes"):
        program = onnx.export(model, (X,), input_names=["x"], dynamic_axes={"x": [0]})
    assert program.model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "x_dynamic_axes_1"
    with pytest.warns(UserWarning, match="dynamic_axes"), pytest.raises(ValueError, match="neither|not among"):
        onnx.export(model, (X,), dynamic_axes={"nothing": [0]})
    with pytest.warns(UserWarning, match="dynamic_axes"), pytest.raises(ValueError, match="has 2 dimensions"):
        onnx.export(model, (X,), dynamic_axes={"input": [2]})


def test_exported_programs():
    model = linear()
    program = candelabra.export.export(model, (X,), dynamic_shapes=({0: Dim("rows")},))
    made = onnx.export(program, f=None)
    made.rename_axes({"rows": "batch"})
    assert made.model_proto.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert made.exported_program is program
    assert_same(made, model, (candelabra.ones(3, 300),))


def test_without_dynamo(tmp_path):
    model, path = linear().train(), tmp_path / "model.onnx"
    model.append(nn.Dropout())
    with pytest.warns(DeprecationWarning, match="dynamo=False"):
        assert onnx.export(model, (X,), path, dynamo=False) is None
    assert model.training and model[0].training
    assert [node.op_type for node in package.load(path).graph.node] == ["Gemm", "Relu"]
    assert len(package.load(path).graph.initializer) == 2 and not (tmp_path / "model.onnx.data").exists()
    with pytest.warns(DeprecationWarning, match="dynamo=False"):
        onnx.export(model, (X,), path, dynamo=False, training=onnx.TrainingMode.TRAINING)
    assert "Dropout" in [node.op_type for node in package.load(path).graph.node]
    with pytest.warns(DeprecationWarning, match="dynamo=False"), pytest.raises(ValueError, match="dynamic_axes"):
        onnx.export(model, (X,), path, dynamo=False, dynamic_shapes=({0: "rows"},))


def test_operator_sets():
    gelu = Of(lambda x: candelabra.nn.functional.gelu(x)).eval()
    for version, kinds in ((20, {"Gelu"}), (18, {"Mul", "Erf", "Add", "Constant"})):
        program = onnx.export(gelu, (X,), opset_version=version)
        assert program.model_proto.opset_import[0].version == version
        assert {node.op_type for node in program.model_proto.graph.node} == kinds
        assert_same(program, gelu, (X,), 1e-5)
    program = onnx.export(Of(lambda x: x.relu() + 1).eval(), (X,), opset_version=17)
    assert program.model_proto.opset_import[0].version == 17
    for version in (6, 99):
        with pytest.raises(ValueError, match="opset_version"):
            onnx.export(gelu, (X,), opset_version=version)


def test_errors():
    with pytest.raises(
        onnx.UnsupportedOperatorError, match=r"'digamma' \(.*test_onnx_export.py:\d+\) to ONNX opset version 20"
    ):
        exported(lambda x: x.digamma(), (X,))
    with pytest.raises(onnx.OnnxExporterError, match=r"item\(\).*test_onnx_export.py"):
        exported(lambda x: x * x.sum().item(), (X,))
    with pytest.raises(onnx.UnsupportedOperatorError, match="differs from call to call; export with this size fixed"):
        exported(
            lambda x: candelabra.nn.functional.adaptive_avg_pool1d(x, 7), (X[None],), dynamic_shapes=({2: "length"},)
        )
    state, weight = candelabra.zeros(1, 2, 3), candelabra.ones(12, 3)
    with pytest.raises(
        onnx.UnsupportedOperatorError, match="'recurrent_layer' .*a result of it that ONNX does not have"
    ):
        exported(
            lambda x: candelabra.ops.recurrent_layer(
                x, weight, None, state[0], state[0], weight, None, [], False, "lstm"
            )[1],
            (candelabra.ones(5, 2, 3),),
        )
    packed = nn.utils.rnn.pack_sequence([candelabra.ones(3, 4), candelabra.ones(1, 4)])
    layer = nn.GRU(4, 3)
    with pytest.raises(onnx.UnsupportedOperatorError, match="packed sequences"):
        exported(lambda x: layer(packed._replace(data=x))[0].data, (packed.data,))
    with pytest.raises(onnx.OnnxExporterError, match="input_names has 2 names"):
        exported(lambda x: x + 1, (X,), input_names=["a", "b"])
    with pytest.raises(onnx.OnnxExporterError, match=r"\['0.bias'\], which are names of weights"):
        onnx.export(linear(), (X,), output_names=["0.bias"])
    with pytest.raises(onnx.UnsupportedOperatorError, match="complex"):
        exported(lambda x: candelabra.view_as_real(candelabra.complex(x, x)), (X,))
    for name in ("custom_translation_table", "profile", "custom_opsets", "export_modules_as_functions"):
        with pytest.raises(NotImplementedError, match=name):
            onnx.export(linear(), (X,), **{name: {"a": 1}})
    with pytest.raises(TypeError, match="module or an exported program"):
        onnx.export(None, (X,))
    with pytest.warns(UserWarning, match="training mode"):
        onnx.export(linear().train(), (X,))


def test_a_module_knows_that_it_is_exported():
    asked = []

    def function(x):
        asked.append(onnx.is_in_onnx_export())
        return x + 1

    exported(function, (X,))
    assert asked == [True] and not onnx.is_in_onnx_export()


def test_the_module_stays_as_it_was():
    model = nn.BatchNorm1d(300)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.warns(UserWarning, match="training mode"):
        program = onnx.export(model, (candelabra.randn(4, 300),))
    assert all(model.state_dict()[name].equal(tensor) for name, tensor in before.items())
    x = candelabra.randn(4, 300)
    candelabra.testing.assert_close(program(x)[0], model(x).detach(), rtol=1e-4, atol=1e-4)


def test_results_that_are_arguments_weights_and_numbers():
    model = nn.BatchNorm1d(3).eval()

    def function(x):
        model.num_batches_tracked.add_(1)
        x.mul_(2)
        return x, x, model.weight, model.num_batches_tracked, None, x.shape[0], True

    module = Of(function)
    module.inner = model
    found = onnx.export(module.eval(), (candelabra.ones(3),))(candelabra.ones(3))
    assert [one.tolist() for one in found] == [[2, 2, 2], [2, 2, 2], [1, 1, 1], 1, 3, True]
    assert model.num_batches_tracked.item() == 0


def test_constants_are_computed_at_the_export():
    def masked(x):
        mask = candelabra.zeros(300, dtype=candelabra.bool)
        mask[10:20] = True
        return x.masked_fill(mask.logical_not(), 0) + candelabra.arange(300).remainder(3)

    program = exported(masked, (X,))
    kinds = [node.op_type for node in program.model_proto.graph.node if node.op_type != "Constant"]
    assert sorted(kinds) == ["Add", "Where"]
    assert_same(program, masked, (X,))


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[4] / "docs" / "onnx.md"
    code = page.read_text().split("```python\n")[1].split("```")[0]
    names = {"__name__": "page"}
    exec(compile(code, str(page), "exec"), names)
    assert names["scores"].shape == (7, 10) and (tmp_path / "model.onnx").exists()


def test_report_verification_and_text(tmp_path, capsys):
    program = onnx.export(
        linear(), (X,), verify=True, report=True, dump_exported_program=True, artifacts_dir=tmp_path, verbose=True
    )
    assert "Gemm" in capsys.readouterr().out and "Gemm" in repr(program)
    (report,) = tmp_path.glob("*.md")
    assert "| `linear` | 1 |" in report.read_text()
    (dumped,) = tmp_path.glob("*.cex")
    assert candelabra.export.load(dumped).module()(X).shape == (2, 4)
