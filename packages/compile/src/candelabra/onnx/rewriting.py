"""Changes of a graph before it is converted."""

from __future__ import annotations

import dataclasses

from candelabra import export as _export  # noqa: F401  (a package is imported before its modules)
from candelabra.export.interface import Graph, Node, Ref, Size, uses


def with_last_states(graph: Graph) -> Graph:
    """Return a graph whose recurrent layers give the cell states after the last step only.

    The recorded layer gives those of all steps where there are gradients. ONNX's layers do not.
    """
    users: dict[int, list[Node]] = {}
    for node in graph.nodes:
        for number in uses([*node.args, *node.kwargs.values()]):
            users.setdefault(number, []).append(node)
    kept = set(uses(graph.outputs))
    changed: dict[int, Node] = {}
    for node in graph.nodes:
        if node.op != "recurrent_layer":
            continue
        cells = node.outputs[1]
        selects = [] if cells is None else users.get(cells, [])
        if cells in kept or not all(_is_last(one, node, graph) for one in selects):
            continue
        if any(number in users or number in kept for number in node.outputs[2:] if number is not None):
            continue
        names = [one.outputs[0] for one in selects]
        first = names[0] if names else None
        changed[id(node)] = dataclasses.replace(node, op="recurrent_layer_states", outputs=[node.outputs[0], first])
        for one in selects:
            changed[id(one)] = dataclasses.replace(one, op="alias", args=[Ref(first or 0)], kwargs={})
        # The first is made by the layer itself.
        if selects:
            changed[id(selects[0])] = dataclasses.replace(selects[0], op="")
    nodes = [changed.get(id(node), node) for node in graph.nodes]
    return dataclasses.replace(graph, nodes=[node for node in nodes if node.op])


def _is_last(node: Node, layer: Node, graph: Graph) -> bool:
    """Return whether a node takes the cell states after the last step of a layer."""
    if node.op != "select" or node.kwargs or node.args[1] != 0:
        return False
    index, reverse = node.args[2], layer.args[8]
    cells = graph.described[node.args[0].value]
    if type(index) is Size or not cells.sizes:
        return type(index) is Size and not reverse
    return bool(index == 0 if reverse else index in (-1, cells.sizes[0] - 1))
