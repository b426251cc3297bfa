"""The names of PyTorch 2.13's ``torch.jit``, ``compiler``, ``_dynamo``, ``export``, ``fx`` and
``onnx``, and the parameters of their functions: each works, or raises with what to use instead.
"""

import importlib
import inspect

import pytest

import candelabra
from candelabra.torch.stand_ins.compilers.unavailable import REMEDIES

NAMES = {
    "jit": """
        Attribute CompilationUnit Error Final Future ONNXTracedModule RecursiveScriptClass
        RecursiveScriptModule ScriptFunction ScriptModule ScriptWarning TopLevelTracedModule TracedModule
        TracerWarning TracingCheckError _drop _fork _get_trace_graph _isinstance _overload _overload_method
        _script_if_tracing _set_fusion_strategy _unique_state_dict _unwrap_optional _wait annotate
        enable_onednn_fusion export export_opnames fork freeze fuser ignore interface is_scripting
        is_tracing isinstance jit_module_from_flatbuffer last_executed_optimized_graph load
        onednn_fusion_enabled optimize_for_inference optimized_execution run_frozen_optimizations save
        save_jit_module_to_flatbuffer script script_if_tracing script_method set_fusion_strategy
        strict_fusion trace trace_module unused wait
    """,
    "compiler": """
        allow_in_graph assume_constant_result compile config cudagraph_mark_step_begin disable
        get_default_backend is_compiling is_dynamo_compiling is_exporting keep_portable_guards_unsafe
        keep_tensor_guards_unsafe list_backends load_cache_artifacts load_compiled_function
        nested_compile_region reset save_cache_artifacts set_default_backend set_enable_guard_collectives
        set_stance skip_all_guards_unsafe skip_guard_on_all_nn_modules_unsafe skip_guard_on_globals_unsafe
        skip_guard_on_inbuilt_nn_modules_unsafe substitute_in_graph wrap_numpy
    """,
    "_dynamo": """
        OptimizedModule allow_c_slot allow_in_graph assume_constant_result bytecode_debugger config disable
        disable_nested_graph_breaks disallow_in_graph dont_skip_tracing error_on_graph_break explain export
        forbid_in_graph graph_break is_compiling is_dynamo_disable_recursive is_dynamo_supported
        is_inductor_supported list_backends lookup_backend mark_dynamic mark_static mark_static_address
        maybe_mark_dynamic nonstrict_trace optimize optimize_assert override_cudagraphs
        override_optimization_hint patch_dynamo_config register_backend replay reset reset_code
        reset_recompile_user_contexts run set_recursion_limit set_stance skip_frame step_unsupported
        substitute_in_graph
    """,
    "export": """
        AdditionalInputs Constraint CustomDecompTable Dim ExportBackwardSignature ExportGraphSignature
        ExportedProgram FlatArgsAdapter ModuleCallEntry ModuleCallSignature ShapesCollection
        UnflattenedModule default_decompositions dims draft_export export load register_dataclass save
        unflatten
    """,
    "fx": """
        CodeGen Graph GraphModule Interpreter Node PH Proxy ProxyableClassMeta Tracer Transformer
        has_side_effect map_arg replace_pattern symbolic_trace wrap
    """,
    "onnx": """
        ExportableModule InputObserver JitScalarType ONNXProgram OnnxExporterError OperatorExportTypes
        TensorProtoDataType TrainingMode errors export is_in_onnx_export ops producer_name producer_version
        register_custom_op_symbolic select_model_mode_for_export symbolic_helper symbolic_opset10
        symbolic_opset9 unregister_custom_op_symbolic utils
    """,
}
#: Functions whose parameters have PyTorch's names.
PARAMETERS = {
    "jit._fork": "func",
    "jit._isinstance": "obj target_type",
    "jit._script_if_tracing": "fn",
    "jit._set_fusion_strategy": "strategy",
    "jit._unique_state_dict": "module keep_vars",
    "jit._unwrap_optional": "x",
    "jit._wait": "future",
    "jit.annotate": "the_type the_value",
    "jit.enable_onednn_fusion": "enabled",
    "jit.export": "fn",
    "jit.export_opnames": "m",
    "jit.fork": "func",
    "jit.freeze": "mod preserved_attrs optimize_numerics",
    "jit.fuser": "name",
    "jit.ignore": "drop",
    "jit.interface": "obj",
    "jit.isinstance": "obj target_type",
    "jit.load": "f map_location",
    "jit.optimize_for_inference": "mod other_methods",
    "jit.optimized_execution": "should_optimize",
    "jit.run_frozen_optimizations": "mod optimize_numerics preserved_methods",
    "jit.save": "m f",
    "jit.script": "obj optimize example_inputs",
    "jit.script_if_tracing": "fn",
    "jit.set_fusion_strategy": "strategy",
    "jit.trace": "func example_inputs optimize check_trace check_inputs check_tolerance strict example_kwarg_inputs",
    "jit.trace_module": "mod inputs optimize check_trace check_inputs check_tolerance strict example_inputs_is_kwarg",
    "jit.unused": "fn",
    "jit.wait": "future",
    "compiler.allow_in_graph": "fn",
    "compiler.assume_constant_result": "fn",
    "compiler.disable": "fn recursive reason",
    "compiler.keep_portable_guards_unsafe": "guard_entries",
    "compiler.keep_tensor_guards_unsafe": "guard_entries keep_parameters",
    "compiler.list_backends": "exclude_tags",
    "compiler.load_cache_artifacts": "serialized_artifacts",
    "compiler.nested_compile_region": "fn options max_reuse_entries reuse_hash_fn",
    "compiler.set_default_backend": "backend",
    "compiler.set_enable_guard_collectives": "enabled",
    "compiler.skip_all_guards_unsafe": "guard_entries",
    "compiler.skip_guard_on_all_nn_modules_unsafe": "guard_entries",
    "compiler.skip_guard_on_globals_unsafe": "guard_entries",
    "compiler.skip_guard_on_inbuilt_nn_modules_unsafe": "guard_entries",
    "compiler.substitute_in_graph": "original_fn can_constant_fold_through skip_signature_check",
    "compiler.wrap_numpy": "fn",
    "_dynamo.allow_in_graph": "fn",
    "_dynamo.assume_constant_result": "fn",
    "_dynamo.disable": "fn recursive reason wrapping",
    "_dynamo.disable_nested_graph_breaks": "fn",
    "_dynamo.disallow_in_graph": "fn",
    "_dynamo.dont_skip_tracing": "fn",
    "_dynamo.error_on_graph_break": "error_on_graph_break",
    "_dynamo.forbid_in_graph": "fn",
    "_dynamo.graph_break": "msg",
    "_dynamo.is_dynamo_disable_recursive": "method",
    "_dynamo.list_backends": "exclude_tags",
    "_dynamo.mark_dynamic": "t index hint_override min max specialize_on",
    "_dynamo.mark_static": "t index",
    "_dynamo.mark_static_address": "t guard",
    "_dynamo.maybe_mark_dynamic": "t index",
    "_dynamo.override_cudagraphs": "fwd bwd",
    "_dynamo.override_optimization_hint": "x val",
    "_dynamo.run": "fn",
    "_dynamo.set_recursion_limit": "limit",
    "_dynamo.skip_frame": "msg",
    "_dynamo.step_unsupported": "msg",
    "export.dims": "min max",
    "export.export": "mod args kwargs dynamic_shapes strict preserve_module_call_signature prefer_deferred_runtime_asserts_over_guards",
    "export.load": "f extra_files expected_opset_version",
    "export.register_dataclass": "cls serialized_type_name",
    "export.save": "ep f extra_files opset_version pickle_protocol",
    "fx.has_side_effect": "fn",
    "fx.map_arg": "a fn",
    "fx.replace_pattern": "gm pattern replacement",
    "fx.symbolic_trace": "root concrete_args",
    "fx.wrap": "fn_or_name",
    "onnx.export": "model args f kwargs verbose input_names output_names opset_version dynamo external_data dynamic_shapes custom_translation_table report optimize verify profile dump_exported_program artifacts_dir export_params keep_initializers_as_inputs dynamic_axes training operator_export_type do_constant_folding custom_opsets export_modules_as_functions autograd_inlining",
    "onnx.register_custom_op_symbolic": "symbolic_name symbolic_fn opset_version",
    "onnx.select_model_mode_for_export": "model mode",
    "onnx.unregister_custom_op_symbolic": "symbolic_name opset_version",
}  # fmt: skip


@pytest.fixture(scope="module")
def torch():
    candelabra.torch.install()
    yield importlib.import_module("torch")
    candelabra.torch.uninstall()


@pytest.mark.parametrize("module", NAMES)
def test_names(torch, module):
    found = importlib.import_module(f"torch.{module}")
    missing = [name for name in NAMES[module].split() if not hasattr(found, name)]
    assert not missing
    assert set(REMEDIES.get(module, ())) <= set(NAMES[module].split())


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(torch, name):
    module, _, function = name.rpartition(".")
    found = inspect.signature(getattr(importlib.import_module(f"torch.{module}"), function)).parameters
    assert set(PARAMETERS[name].split()) <= set(found)


@pytest.mark.parametrize(("module", "name"), [(module, name) for module in REMEDIES for name in REMEDIES[module]])
def test_what_is_unavailable_says_what_to_use(torch, module, name):
    unavailable = getattr(importlib.import_module(f"torch.{module}"), name)
    with pytest.raises(NotImplementedError, match=rf"torch\.{module}\.{name} is not available on Candelabra: \w+"):
        unavailable(1)


def test_unknown_options_are_refused(torch):
    for call in (
        lambda: torch.jit.trace(lambda x: x, torch.ones(1), check_tolerence=1),
        lambda: torch.jit.script(lambda x: x, optimise=True),
        lambda: torch.compile(lambda x: x, fullgraf=True),
        lambda: torch.compiler.set_stance("default", backend="eager"),
        lambda: torch.compiler.disable(lambda x: x, reson=""),
    ):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            call()


def test_futures_of_fork(torch):
    future = torch.jit.fork(lambda x, scale: x * scale, torch.ones(2), scale=3)
    assert isinstance(future, torch.jit.Future)
    assert torch.jit.wait(future).tolist() == [3.0, 3.0]
    failed = torch.jit.fork(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        torch.jit.wait(failed)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ([1], list[int], True), (["a"], list[int], False), ({"a": 1}, dict[str, int], True), ({"a": "b"}, dict[str, int], False),
        ((1, "a"), tuple[int, str], True), ((1, 2), tuple[int, str], False), ((1,), tuple[int, str], False), (None, int | None, True),
        (2.0, int | str, False), ([["a"]], list[list[str]], True), ([[1]], list[list[str]], False), (1, (str, int), True),
        ([], list[int], True), ((1, 2), list[int], False),
    ],
)  # fmt: skip
def test_isinstance(torch, value, kind, expected):
    assert torch.jit.isinstance(value, kind) is expected


def test_isinstance_without_types_of_entries(torch):
    with pytest.raises(RuntimeError, match=r"Please add a contained type, e\.g\. List\[int\]"):
        torch.jit.isinstance([1], list)
    with pytest.raises(RuntimeError, match="must be a type or a tuple of types"):
        torch.jit.isinstance([1], [int])


def test_the_default_backend(torch):
    assert torch.compiler.get_default_backend() in torch.compiler.list_backends()
    torch.compiler.set_default_backend("eager")
    try:

        def function(x):
            return x + 1

        assert torch.compile(function) is function
    finally:
        torch.compiler.set_default_backend(None)
    with pytest.raises(ValueError, match="Unknown backend"):
        torch.compiler.set_default_backend("unknown")


def test_names_of_compiled_functions(torch):
    compiled = torch.compile(lambda x: x * x.sum().item(), name="scaled")
    compiled(torch.ones(2))
    with pytest.warns(UserWarning, match="scaled is not replayed"):
        compiled(torch.ones(2))
    with pytest.raises(NotImplementedError, match="every signature has its own program"):
        torch.compile(lambda x: x, shapes_spec={})


def test_functions_of_arrays(torch):
    @torch.compiler.wrap_numpy
    def total(a, *, scale):
        return {"sum": (a * scale).sum(), "kept": a, "scale": scale}

    found = total(torch.arange(3), scale=2)
    assert found["sum"].item() == 6
    assert found["kept"].tolist() == [0, 1, 2]
    assert found["scale"] == 2


def test_marks_of_functions_change_nothing(torch):
    dynamo = importlib.import_module("torch._dynamo")

    def function(x):
        return x * 2

    for mark in (
        torch.compiler.nested_compile_region, torch.compiler.assume_constant_result, dynamo.disallow_in_graph, dynamo.nonstrict_trace,
        dynamo.forbid_in_graph, dynamo.dont_skip_tracing, torch.compiler.substitute_in_graph(len), torch.compiler.nested_compile_region(),
    ):  # fmt: skip
        assert mark(function) is function
    with dynamo.override_cudagraphs(fwd=False), dynamo.dont_skip_tracing(), dynamo.error_on_graph_break(False):
        assert function(2) == 4
    with pytest.raises(NotImplementedError, match="fullgraph=True"):
        dynamo.error_on_graph_break(True)
    assert torch.compiler.skip_all_guards_unsafe([1, 2]) == [True, True]
    assert torch.compiler.save_cache_artifacts() is None
    assert torch.compiler.load_cache_artifacts(b"") is None
    assert not torch.compiler.set_enable_guard_collectives(False)
    with pytest.raises(NotImplementedError, match="each process records"):
        torch.compiler.set_enable_guard_collectives(True)
    assert dynamo.is_dynamo_supported()
    assert dynamo.is_dynamo_disable_recursive(torch.compiler.disable(function))
    assert dynamo.is_dynamo_disable_recursive(function) is None


def test_replays_without_new_programs(torch):
    dynamo = importlib.import_module("torch._dynamo")
    compiled = torch.compile(lambda x: x + 1)
    replayed = dynamo.run(compiled)
    for _ in range(5):
        assert replayed(torch.ones(1)).item() == 2
    assert not compiled.programs
    for _ in range(4):
        compiled(torch.ones(1))
    assert len(compiled.programs) == 1
    assert dynamo.optimize_assert("inductor")(lambda x: x + 1)(torch.ones(1)).item() == 2


def test_modes_of_modules_written_as_onnx(torch):
    onnx = importlib.import_module("torch.onnx")
    model = torch.nn.Linear(1, 1)
    with onnx.select_model_mode_for_export(model, onnx.TrainingMode.EVAL):
        assert not model.training
    assert model.training
    assert onnx.TensorProtoDataType.INT64 == 7
    assert onnx.producer_name == "candelabra"
