"""Optimizations of modules for inference."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import candelabra.nn as nn
from candelabra.nn.utils.fusion import fuse_conv_bn_eval

from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node
from ..symbolic import symbolic_trace

__all__ = ["extract_subgraph", "fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Return whether a node calls a module of the last type on the result of one of the first.

    Parameters
    ----------
    pattern
        The two types.
    node
        The node.
    modules
        The modules by path.
    """
    if not node.args:
        return False
    return all(
        isinstance(each, Node) and each.op == "call_module" and type(modules.get(str(each.target))) is expected
        for expected, each in zip(pattern, (node.args[0], node), strict=True)
    )


def replace_node_module(node: Node, modules: dict[str, Any], new_module: nn.Module) -> None:
    """Replace the module that a node calls."""
    parent, _, name = str(node.target).rpartition(".")
    modules[str(node.target)] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> nn.Module:
    """Return a model whose batch normalizations are part of the convolutions before them; for eval.

    Parameters
    ----------
    model
        The model, in eval mode.
    inplace
        Whether to change the model's modules rather than copies.
    no_trace
        Whether the model is a `GraphModule` already.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import fx, nn
    >>> net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).eval()
    >>> fused = fx.experimental.optimization.fuse(net)
    >>> [node.target for node in fused.graph.find_nodes(op="call_module")]
    ['0']
    """
    if not inplace:
        model = copy.deepcopy(model)
    traced: Any = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    pairs = ((nn.Conv1d, nn.BatchNorm1d), (nn.Conv2d, nn.BatchNorm2d), (nn.Conv3d, nn.BatchNorm3d))
    for pattern in pairs:
        for node in traced.graph.nodes:
            if not matches_module_pattern(pattern, node, modules) or len(node.args[0].users) > 1:
                continue
            convolution, normalization = modules[str(node.args[0].target)], modules[str(node.target)]
            if not normalization.track_running_stats:
                continue
            replace_node_module(node.args[0], modules, fuse_conv_bn_eval(convolution, normalization))
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    return GraphModule(traced, traced.graph)


def remove_dropout(model: nn.Module) -> nn.Module:
    """Return a model without its dropout layers."""

    class DropoutRemover(Transformer):
        def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if isinstance(self.submodules[target], nn.Dropout):
                return args[0]
            return super().call_module(target, args, kwargs)

    return DropoutRemover(symbolic_trace(model)).transform()


def extract_subgraph(orig_module: nn.Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]) -> GraphModule:
    """Return a module of some nodes of a graph.

    Parameters
    ----------
    orig_module
        The module of the graph.
    nodes
        The nodes, in order.
    inputs
        Nodes that become its parameters.
    outputs
        Nodes that become its results.
    """
    graph = Graph()
    copies: dict[Node, Node] = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        copies[node] = graph.node_copy(node, lambda n: copies[n])
    graph.output([copies[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)
