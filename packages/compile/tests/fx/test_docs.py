"""Run the examples in the docstrings."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "", ".codegen", ".experimental.optimization", ".experimental.symbolic_shapes", ".flatten_spec", ".graph", ".graph_module",
        ".immutable_collections", ".interpreter", ".naming", ".node", ".operator_schemas", ".passes.shape_prop", ".passes.split_module", ".proxyable_class",
        ".patching", ".printing", ".proxy", ".subgraph_rewriter", ".symbolic", ".traceback", ".tracing",
    ],
)  # fmt: skip
def test_examples_run(name):
    result = doctest.testmod(importlib.import_module(f"candelabra.fx{name}"))
    assert result.attempted > 0 and result.failed == 0
