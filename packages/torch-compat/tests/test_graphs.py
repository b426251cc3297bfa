"""``torch.fx`` and ``torch.ao.quantization`` by PyTorch's names."""

from __future__ import annotations

import importlib

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra.torch
from candelabra import fx


@pytest.fixture(autouse=True)
def torch():
    candelabra.torch.install()
    yield importlib.import_module("torch")
    candelabra.torch.uninstall()


def test_names_of_libraries(torch):
    assert torch.fx.Tracer is fx.Tracer and torch.fx.symbolic_trace is fx.symbolic_trace
    names = {
        "torch.fx": "GraphModule Interpreter Node Proxy Transformer has_side_effect map_arg replace_pattern wrap",
        "torch.fx._compatibility": "compatibility",
        "torch.fx._pytree": "register_pytree_flatten_spec tree_flatten_spec",
        "torch.fx._symbolic_trace": "PH Tracer is_fx_tracing symbolic_trace wrap",
        "torch.fx.experimental.optimization": "fuse remove_dropout",
        "torch.fx.experimental.symbolic_shapes": "free_symbols guard_or_false guard_or_true statically_known_true",
        "torch.fx.graph": "CodeGen Graph PythonCode _PyTreeCodeGen",
        "torch.fx.graph_module": "GraphModule _CodeOnlyModule _USER_PRESERVED_ATTRIBUTES_KEY _copy_attr reduce_graph_module",
        "torch.fx.immutable_collections": "immutable_dict immutable_list",
        "torch.fx.node": "Argument Node Target _get_qualified_name map_aggregate map_arg",
        "torch.fx.operator_schemas": "normalize_function normalize_module",
        "torch.fx.passes.infra.pass_base": "PassBase PassResult",
        "torch.fx.passes.shape_prop": "ShapeProp TensorMetadata",
        "torch.fx.passes.split_module": "split_module",
        "torch.fx.passes.tools_common": "get_node_target legalize_graph",
        "torch.fx.passes.utils.matcher_utils": "InternalMatch SubgraphMatcher",
        "torch.fx.proxy": "Attribute GraphAppendingTracer ParameterProxy Proxy Scope TraceError TracerBase",
        "torch.fx.subgraph_rewriter": "Match replace_pattern replace_pattern_with_filters",
        "torch.fx.traceback": "annotate format_stack preserve_node_meta",
    }
    for module, listed in names.items():
        found = importlib.import_module(module)
        assert [name for name in listed.split() if not hasattr(found, name)] == []


def test_tracing(torch):
    scope = {"torch": torch, "__name__": "program"}
    exec(
        "@torch.fx.wrap\ndef half(x):\n    return x / 2 if x.sum() > 0 else x\n"
        "def f(x):\n    torch._assert(x.size(0) == 2, 'size')\n    return half(torch.relu(x))",
        scope,
    )
    traced = torch.fx.symbolic_trace(scope["f"])
    assert traced(torch.ones(2)).tolist() == [0.5, 0.5]
    with pytest.raises(AssertionError, match="size"):
        traced(torch.ones(3))


def test_a_module_that_pytorch_has_pickled(torch):
    # PyTorch's pickles of such modules have its names in their code.
    module = importlib.import_module("torch.fx.graph_module")
    body = {
        **vars(torch.nn.Sequential(torch.nn.ReLU())),
        "_code": "def forward(self, x):\n    return torch.neg(getattr(self, '0')(x))",
    }
    made = module.reduce_graph_module(body, "import torch\n")
    assert made(torch.ones(2)).tolist() == [-1, -1]


def test_quantization(torch):
    ao = importlib.import_module("torch.ao.quantization")
    model = torch.nn.Sequential(ao.QuantStub(), torch.nn.ReLU(), ao.DeQuantStub())
    assert model(torch.ones(2)).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match=r"torch.ao.quantization.convert\(\): there are no quantized tensors"):
        torch.ao.quantization.convert(model)
