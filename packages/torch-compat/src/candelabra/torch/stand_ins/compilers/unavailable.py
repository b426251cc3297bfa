"""Names of PyTorch's compilers that Candelabra has not: functions and classes that raise when they
are called, with what to use instead.
"""

from __future__ import annotations

from typing import Any, NoReturn

_SCRIPT = "nothing is compiled from source; torch.jit.trace, script and load record and run operators"
_BYTECODE = "no bytecode is changed; torch.compiler.explain tells what is recorded"
_SIGNATURES = "programs have no calls of submodules; graph_signature tells what the inputs and results are"

#: By module: what to do instead of each name.
REMEDIES: dict[str, dict[str, str]] = {
    "_dynamo": {
        "bytecode_debugger": _BYTECODE,
        "export": "use torch.export.export",
        "lookup_backend": "backends are no functions of graphs; torch._dynamo.list_backends() has their names",
        "register_backend": "backends are no functions of graphs; kernels of one's own are operators of torch.library",
        "replay": _BYTECODE,
    },
    "compiler": {"load_compiled_function": "torch.export.save and load store programs"},
    "export": {
        "Constraint": "sizes are described by torch.export.Dim",
        "CustomDecompTable": "operators are not decomposed; torch.fx.experimental.proxy_tensor.make_fx takes a table",
        "ExportBackwardSignature": "programs have no backward pass; gradients are those of the module that runs them",
        "FlatArgsAdapter": _SIGNATURES,
        "ModuleCallEntry": _SIGNATURES,
        "ModuleCallSignature": _SIGNATURES,
        "UnflattenedModule": _SIGNATURES,
        "draft_export": "torch.export.export names the operator and the line that cannot be exported",
        "unflatten": "programs have no calls of submodules; module() has their parameters by name",
    },
    "jit": {
        "ONNXTracedModule": "use torch.onnx.export",
        "RecursiveScriptClass": _SCRIPT,
        "_get_trace_graph": "torch.utils.flop_counter.FlopCounterMode counts operations, and torch.fx.symbolic_trace returns a graph",
        "jit_module_from_flatbuffer": "use torch.jit.load",
        "last_executed_optimized_graph": "the graph of a recorded function is its attribute graph",
        "save_jit_module_to_flatbuffer": "use torch.jit.save",
    },
    "onnx": {
        "ExportableModule": "use torch.onnx.export with a module",
        "InputObserver": "use torch.export.AdditionalInputs",
        "JitScalarType": "there are no types of TorchScript; tensors have their dtype",
        "ops": "operators of ONNX are written by torch.onnx.export, or as a torch.library operator with custom_translation_table",
        "symbolic_opset10": "use custom_translation_table of torch.onnx.export",
        "symbolic_opset9": "use custom_translation_table of torch.onnx.export",
        "utils": "use torch.onnx.export",
    },
}


def unavailable(module: str, name: str) -> Any:
    """Return the class or the function of a name, which raises NotImplementedError."""
    message = f"torch.{module}.{name} is not available on Candelabra: {REMEDIES[module][name]}"

    def refuse(*arguments: Any, **options: Any) -> NoReturn:
        raise NotImplementedError(message)

    if name[0].isupper():
        return type(name, (), {"__init__": refuse, "__module__": f"torch.{module}", "__doc__": message})
    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = message
    return refuse


def unavailable_names(module: str) -> dict[str, Any]:
    """Return those of a module."""
    return {name: unavailable(module, name) for name in REMEDIES[module]}
