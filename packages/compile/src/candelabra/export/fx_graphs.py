"""Exported programs as graphs of `candelabra.fx`."""

from __future__ import annotations

import operator
from typing import Any

from candelabra import fx, nn

from .graph import Graph, Ref, Size, find_operator, replaced


def placeholder_names(graph: Graph) -> dict[int, str]:
    """Return the names of the states and inputs as PyTorch has them, by value."""
    names = {}
    for state in graph.states:
        text = state.name.replace(".", "_").lower()
        names[state.value] = {"parameter": f"p_{text}", "buffer": f"b_{text}", "constant": f"c_{text}"}[state.kind]
    for one in graph.inputs:
        if one.value is not None:
            names[one.value] = one.name
    return names


def graph_module(graph: Graph) -> fx.GraphModule:
    """Return the program as a module of a graph, which takes its state and then its arguments."""
    made = fx.Graph()
    nodes: dict[int, Any] = {}
    names = placeholder_names(graph)
    for state in graph.states:
        nodes[state.value] = made.placeholder(names[state.value])
    for one in graph.inputs:
        placeholder = made.placeholder(one.name)
        if one.value is not None:
            nodes[one.value] = placeholder
    for value, node in nodes.items():
        node.meta["tensor_meta"] = graph.described.get(value)

    def argument(value: Any) -> Any:
        if type(value) is Ref:
            return nodes[value.value]
        if type(value) is not Size:
            return value
        sizes = [
            made.call_function(operator.getitem, (made.call_function(getattr, (nodes[v], "shape")), d))
            for v, d in value.of
        ]
        number = sizes[0]
        for size in sizes[1:]:
            number = made.call_function(operator.mul, (number, size))
        sign = -1 if value.rounds_up else 1
        for function, other, neutral in (
            (operator.mul, value.factor * sign, 1),
            (operator.floordiv, value.divisor, 1),
            (operator.mul, sign, 1),
            (operator.add, value.offset, 0),
        ):
            if other != neutral:
                number = made.call_function(function, (number, other))
        return made.call_function(float, (number,)) if value.is_float else number

    for call in graph.nodes:
        target = find_operator(call.op)
        args = tuple(replaced(value, argument) for value in call.args)
        node = made.call_function(
            target, args, {name: replaced(value, argument) for name, value in call.kwargs.items()}
        )
        node.meta["stack_trace"] = f'  File "{call.file}", line {call.line}' if call.file else None
        for position, number in enumerate(call.outputs):
            if number is not None:
                nodes[number] = node if call.is_single else made.call_function(operator.getitem, (node, position))
                nodes[number].meta["tensor_meta"] = graph.described.get(number)
    made.output(tuple(replaced(value, argument) for value in graph.outputs))
    return fx.GraphModule(nn.Module(), made, graph.name)
