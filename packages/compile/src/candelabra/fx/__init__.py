"""Graphs of programs: trace a module or function, look at what it does, change it, run the result.

`symbolic_trace` runs the program on proxies and returns a `GraphModule`, whose `Graph` is a list of
nodes and whose code is generated from it. The names and the behaviour are those of ``torch.fx``.

Examples
--------
>>> import candelabra
>>> from candelabra import fx
>>> def f(x):
...     return candelabra.relu(x) + 1
>>> traced = fx.symbolic_trace(f)
>>> print(traced.code)
<BLANKLINE>
<BLANKLINE>
<BLANKLINE>
def forward(self, x):
    relu = candelabra.relu(x);  x = None
    add = relu + 1;  relu = None
    return add
<BLANKLINE>
"""

from __future__ import annotations

from . import annotate, experimental, immutable_collections, operator_schemas, passes, subgraph_rewriter, traceback
from .codegen import CodeGen, PythonCode
from .graph import Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_aggregate, map_arg
from .proxy import Attribute, ParameterProxy, Proxy, TraceError
from .proxyable_class import ProxyableClassMeta
from .subgraph_rewriter import replace_pattern
from .symbolic import symbolic_trace
from .tracing import PH, Tracer, wrap

__all__ = [
    "PH", "Attribute", "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "ParameterProxy", "Proxy", "ProxyableClassMeta", "PythonCode",
    "TraceError",
    "Tracer", "Transformer", "annotate", "experimental", "has_side_effect", "immutable_collections", "map_aggregate", "map_arg",
    "operator_schemas", "passes",
    "replace_pattern", "subgraph_rewriter", "symbolic_trace", "traceback", "wrap",
]  # fmt: skip
