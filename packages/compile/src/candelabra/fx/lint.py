"""Checks of graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import candelabra.nn as nn
from candelabra import _C, Tensor

from .node import LEGAL_OPS, Node

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["check"]


def check(graph: Graph) -> None:
    """Raise an error if the graph cannot run."""
    names: set[str] = set()
    seen: set[Node] = set()

    def check_argument(argument: Node, user: Node) -> None:
        what = f"Argument '{argument}' of Node '{user}'"
        if argument.graph is not graph:
            raise RuntimeError(
                f"{what} does not belong to this Graph, but was used as an argument! If you are copying nodes from another graph, make "
                f"sure to use ``arg_transform`` on node_copy() to remap values\n{graph}"
            )
        if argument not in seen:
            raise RuntimeError(
                f"{what} was used before it has been defined! Please check that Nodes in the graph are topologically ordered\n{graph}"
            )

    for node in graph.nodes:
        if node.op not in LEGAL_OPS - {"root"}:
            raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
        if node.graph is not graph:
            raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
        for argument in node.all_input_nodes:
            check_argument(argument, node)
        seen.add(node)
        if node.name in names:
            raise RuntimeError(f"Node redefined name {node.name}!")
        names.add(node.name)
        if node.op == "call_function" and not callable(node.target):
            raise ValueError(
                f"Node {node} target {node.target} has type {type(node.target).__name__} but a Callable is expected"
            )
        if node.op != "call_function" and not isinstance(node.target, str):
            raise ValueError(
                f"Node {node} target {node.target} has type {type(node.target).__name__} but a str is expected"
            )
    if graph.owning_module is not None:
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                _check_target(graph.owning_module, node)


def _check_target(module: Any, node: Node) -> None:
    atoms = str(node.target).split(".")
    found: Any = module
    for position, atom in enumerate(atoms):
        if not hasattr(found, atom):
            raise RuntimeError(
                f"Node {node} target {node.target} references nonexistent attribute {atom} of {'.'.join(atoms[:position])}"
            )
        found = getattr(found, atom)
    if node.op == "call_module" and not isinstance(found, nn.Module):
        raise RuntimeError(f"Node {node} target {node.target} does not reference an nn.Module")
    if node.op == "get_attr" and not isinstance(found, nn.Module | nn.Parameter | Tensor):
        _C.warn(
            f"Node {node} target {node.target} does not reference an nn.Module, nn.Parameter, or buffer, which is what 'get_attr' Nodes "
            "typically target",
        )
