"""Shapes of a program from a file: its operators' shape rules compute them again, without
memory.
"""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.serialization import FileError

from .graph import Graph, Node, Ref, Size, find_operator, replaced

#: The greatest size of a tensor that an operator splits: each part takes memory.
_MOST_PARTS = 1 << 14


def check_shapes(graph: Graph) -> None:
    """Check that each operator takes its arguments, and gives the dtypes and sizes that are noted.

    The sizes are those of the recorded call. Nothing is computed.

    Raises
    ------
    FileError
        If an operator refuses its arguments, or gives something else.
    """
    values: dict[int, Tensor] = {}
    for number in [one.value for one in graph.inputs if one.value is not None] + [one.value for one in graph.states]:
        described = graph.described[number]
        values[number] = candelabra.empty(described.sizes, dtype=described.dtype, device="meta")
    for state in graph.states:
        values[state.value] = candelabra.empty_strided(
            tuple(state.tensor.shape), state.tensor.stride(), dtype=state.tensor.dtype, device="meta"
        )
    with candelabra.no_grad():
        for node in graph.nodes:
            _check_node(node, graph, values)


def _check_node(node: Node, graph: Graph, values: dict[int, Tensor]) -> None:
    def argument(value: Any) -> Any:
        if type(value) is Ref:
            return values[value.value]
        if type(value) is Size:
            return value.evaluate(lambda number: values[number].shape)
        return candelabra.device("meta") if type(value) is candelabra.device else value

    args = [replaced(value, argument) for value in node.args]
    kwargs = {name: replaced(value, argument) for name, value in node.kwargs.items()}
    op = find_operator(node.op)
    if "[]" in op.schema.rpartition("->")[2] and len(node.outputs) < _widest(args):
        # A list of more tensors than are noted could be far longer than the file.
        limit = _widest(args)
        if limit > _MOST_PARTS:
            raise FileError(f"{node.place()} splits a tensor of size {limit}")
    try:
        result = op(*args, **kwargs)
    except Exception as error:
        raise FileError(f"{node.place()} does not take its arguments: {error}") from error
    entries = [result] if node.is_single and isinstance(result, Tensor) else result
    if not isinstance(entries, list | tuple) or len(entries) != len(node.outputs):
        raise FileError(f"{node.place()} gives another number of results than is noted")
    for entry, number in zip(entries, node.outputs, strict=True):
        if number is None:
            continue
        noted = graph.described[number]
        if not isinstance(entry, Tensor) or entry.dtype is not noted.dtype or tuple(entry.shape) != noted.sizes:
            raise FileError(f"{node.place()} gives another dtype or other sizes than are noted")
        values[number] = entry


def _widest(args: list[Any]) -> int:
    return max((size for value in args if isinstance(value, Tensor) for size in value.shape), default=0)
