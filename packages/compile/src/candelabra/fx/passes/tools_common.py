"""Parts of passes that divide graphs."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any

import candelabra
import candelabra.nn as nn

from ..graph import Graph
from ..graph_module import GraphModule
from ..naming import qualified_name
from ..node import Node

__all__ = [
    "CALLABLE_NODE_OPS", "NodeList", "NodeSet", "Names", "TensorOrTensors", "Tensors", "get_acc_ops_name", "get_node_target",
    "is_node_output_tensor", "legalize_graph", "stable_topological_sort",
]  # fmt: skip

Tensors = tuple[candelabra.Tensor, ...] | list[candelabra.Tensor]
TensorOrTensors = candelabra.Tensor | Tensors
NodeList = list[Node]
NodeSet = set[Node]
Names = list[str]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_acc_ops_name(k: Any) -> str:
    """Return the name of a function, with its module unless that is of operators of an
    accelerator.
    """
    if isinstance(k, str):
        return k
    if k.__module__ and "acc_ops" in k.__module__:
        return f"acc_ops.{k.__name__}"
    return f"{k.__module__.replace('torch._ops', 'torch.ops') if k.__module__ else ''}.{k.__name__}"


def get_node_target(submodules: Mapping[str, nn.Module], node: Node) -> str:
    """Return the name of what a node calls: the type of a module, or that of a function or
    method.
    """
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(sorted(CALLABLE_NODE_OPS))}, but found {node.op}")
    if node.op == "call_module":
        module = submodules[str(node.target)]
        return get_acc_ops_name(getattr(module, "_base_class_origin", type(module)))
    if node.op == "call_function":
        function: Any = node.target
        return get_acc_ops_name(function) if "acc_ops" in (function.__module__ or "") else qualified_name(function)
    return str(node.target)


def is_node_output_tensor(node: Node) -> bool:
    """Return whether the value of a node is a tensor, as `ShapeProp` has noted."""
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, candelabra.Tensor)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Order the nodes of a graph so that each comes after its arguments, and else as they were.

    Raises
    ------
    RuntimeError
        If the graph has a cycle.
    """
    waiting = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    number = {node: position for position, node in enumerate(gm.graph.nodes)}
    ready = [position for node, position in number.items() if not waiting[node]]
    heapq.heapify(ready)
    nodes = list(gm.graph.nodes)
    made = Graph()
    copies: dict[Node, Node] = {}
    made._codegen = gm.graph._codegen
    while ready:
        node = nodes[heapq.heappop(ready)]
        copies[node] = made.node_copy(node, lambda n: copies[n])
        for user in node.users:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, number[user])
    if len(made.nodes) < len(nodes):
        cycle = [node for node, count in waiting.items() if count]
        raise RuntimeError(f"Input graph has cycles, unable to add {cycle}")
    gm.graph = made
    return gm


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Order the nodes of a graph so that each comes after its arguments."""
    return stable_topological_sort(gm)
