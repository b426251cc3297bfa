"""Division of a module into submodules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra.nn as nn

from .. import attributes
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..proxy import Proxy

__all__ = ["Partition", "split_module"]


class Partition:
    """One part of a graph: its nodes, and the values that it takes from others and gives to
    them.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        #: Values by name, which keep their order.
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        #: Partitions by name: those that it needs, and those that need it.
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {list(self.inputs)},\n outputs: {list(self.outputs)},\n "
            f"partitions depended on: {list(self.dependencies)},\n partition dependents: {list(self.dependents)}"
        )


_OUTSIDE = ("placeholder", "get_attr", "output")


class _Splitter:
    def __init__(self, module: GraphModule, callback: Callable[[Node], int]) -> None:
        self.module = module
        self.nodes = {node.name: node for node in module.graph.nodes}
        self.partitions: dict[str, Partition] = {}
        self.of: dict[Node, Partition] = {}
        for node in module.graph.nodes:
            if node.op not in _OUTSIDE:
                name = str(callback(node))
                partition = self.partitions.setdefault(name, Partition(name))
                partition.node_names.append(node.name)
                self.of[node] = partition
        for node in module.graph.nodes:
            for used in node.all_input_nodes:
                self._connect(used, node)

    def _connect(self, used: Node, user: Node) -> None:
        source, target = self.of.get(used), self.of.get(user)
        if source is target:
            return
        if source is not None:
            source.outputs.setdefault(used.name)
        if target is None:
            return
        if used.op == "get_attr":
            # An attribute becomes one of the part.
            return
        target.inputs.setdefault(used.name)
        if source is not None:
            target.dependencies.setdefault(source.name)
            source.dependents.setdefault(target.name)

    def sorted(self, keep_original_order: bool) -> list[Partition]:
        if keep_original_order:
            return [self.partitions[name] for name in sorted(self.partitions, key=int)]
        waiting = {name: len(part.dependencies) for name, part in self.partitions.items()}
        found = [part for name, part in self.partitions.items() if not waiting[name]]
        for part in found:
            for name in part.dependents:
                waiting[name] -= 1
                if not waiting[name]:
                    found.append(self.partitions[name])
        if len(found) != len(self.partitions):
            raise RuntimeError("cycle exists between partitions!")
        return found

    def fill(self, keep_node_name: bool, keep_input_name: bool, qualname_map: dict[str, str] | None) -> None:
        """Copy the nodes to the graphs of their partitions."""
        for part in self.partitions.values():
            for number, name in enumerate(part.inputs):
                node = self.nodes[name]
                made = part.graph.placeholder(name if keep_input_name else f"arg_{number}", type_expr=node.type)
                made.meta = node.meta.copy()
                part.environment[node] = made
        for node, part in self.of.items():
            inside = part.environment
            for used in node.all_input_nodes:
                if used.op == "get_attr" and used not in part.environment:
                    part.environment[used] = self._attribute(used, part, qualname_map)
            target = node.target
            if node.op == "call_module":
                target = str(node.target).replace(".", "_")
                part.targets[target] = attributes.fetch(self.module, str(node.target))
                if qualname_map is not None:
                    qualname_map[f"{part.submod_name}.{target}"] = str(node.target)
            made = part.graph.create_node(
                node.op,
                target,
                map_arg(node.args, inside.__getitem__),
                map_arg(node.kwargs, inside.__getitem__),
                node.name if keep_node_name else None,
                node.type,
            )
            made.meta = node.meta.copy()
            part.environment[node] = made

    def _attribute(self, node: Node, part: Partition, qualname_map: dict[str, str] | None) -> Node:
        target = str(node.target).replace(".", "_")
        part.targets[target] = attributes.fetch(self.module, str(node.target))
        if qualname_map is not None:
            qualname_map[f"{part.submod_name}.{target}"] = str(node.target)
        made = part.graph.get_attr(target, type_expr=node.type)
        made.meta = node.meta.copy()
        return made


def split_module(
    m: GraphModule,
    root_m: nn.Module,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """Return a module whose submodules are the parts of another one.

    Parameters
    ----------
    m
        The module.
    root_m
        The module that was traced.
    split_callback
        Returns the number of the part of a node.
    qualname_map
        A dict to which the new paths of attributes are added, with the old ones.
    keep_original_order
        Whether the parts run in the order of their numbers.
    keep_original_node_name
        Whether the nodes of the parts have the names of the original.
    keep_original_input_name
        Whether the parameters of the parts have the names of the values.
    partition_affix
        Text for the names of the submodules: ``submod_AFFIX_0``.
    tuple_return
        Whether parts with one output return a tuple too.

    Raises
    ------
    RuntimeError
        If parts need each other.

    Examples
    --------
    >>> from candelabra import fx
    >>> traced = fx.symbolic_trace(lambda x: (x + 1) * 2)
    >>> split = fx.passes.split_module.split_module(traced, traced, lambda node: int(node.name == "mul"))
    >>> print(split.code)
    <BLANKLINE>
    <BLANKLINE>
    <BLANKLINE>
    def forward(self, x):
        submod_0 = self.submod_0(x);  x = None
        submod_1 = self.submod_1(submod_0);  submod_0 = None
        return submod_1
    <BLANKLINE>
    """
    splitter = _Splitter(m, split_callback)
    if partition_affix is not None:
        for part in splitter.partitions.values():
            part.submod_name = f"submod_{partition_affix}_{part.name}"
    splitter.fill(bool(keep_original_node_name), keep_original_input_name, qualname_map)
    graph = Graph()
    graph._codegen = m.graph._codegen
    values: dict[Node, Node] = {}
    root: dict[str, Any] = {}
    for node in m.graph.nodes:
        if node.op == "placeholder":
            default = node.args or ()
            values[node] = graph.create_node("placeholder", node.target, default, {}, type_expr=node.type)
            values[node].meta = node.meta.copy()
        elif node.op == "get_attr" and any(user not in splitter.of for user in node.users):
            values[node] = graph.get_attr(str(node.target), type_expr=node.type)
            values[node].meta = node.meta.copy()
            root[str(node.target)] = attributes.fetch(m, str(node.target))
    for part in splitter.sorted(bool(keep_original_order)):
        outputs = [splitter.nodes[name] for name in part.outputs]
        results = tuple(part.environment[node] for node in outputs)
        if len(results) == 1 and not tuple_return:
            part.graph.output(results[0])
        else:
            part.graph.output(results)
        root[part.submod_name] = GraphModule(part.targets, part.graph, part.submod_name)
        call = graph.call_module(part.submod_name, tuple(values[splitter.nodes[name]] for name in part.inputs))
        if len(outputs) == 1 and not tuple_return:
            values[outputs[0]] = call
            continue
        if outputs:
            for position, node in enumerate(outputs):
                values[node] = Proxy(call)[position].node
    for node in m.graph.nodes:
        if node.op == "output":
            result = graph.output(map_arg(node.args[0], lambda n: values[n]), type_expr=node.type)
            result.meta = node.meta.copy()
    return GraphModule(root, graph)
