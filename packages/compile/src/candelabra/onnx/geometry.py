"""Which sizes of a program differ from call to call, and which values share memory.

The operators of the graph run on the device meta: at the recorded sizes, and at others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import candelabra
import candelabra.export
from candelabra import Tensor
from candelabra.export.interface import Graph, Node, Ref, Scaled, Size, find_operator, replaced, walk

from .errors import OnnxExporterError

#: Functions of a symbol's number and its size, for other sizes at which a graph runs.
_OTHERS = (
    lambda k, size: size + 1 + k,
    lambda k, size: 2 * size + 3 + k,
    lambda k, size: 3 * size,
    lambda k, size: 2 * size,
    lambda k, size: (k + 4) * size,
    lambda k, size: size - 1,
)


@dataclass
class Place:
    """The dtype and the sizes of a value, and whose memory it has."""

    dtype: candelabra.dtype
    #: A number, or a `Size` of this value if it differs from call to call.
    shape: tuple[int | Size, ...]
    #: The sizes in the recorded call.
    example: tuple[int, ...]
    #: The value that this one is a view of, or is after a write; None for memory of its own.
    parent: int | None = None
    #: Names of the sizes that are symbols, by dimension.
    names: dict[int, str] | None = None


def geometry(graph: Graph) -> dict[int, Place]:
    """Return the places of all values of a graph.

    Raises
    ------
    OnnxExporterError
        If an operator does not run at other sizes that the graph allows.
    """
    symbols = _example(graph)
    runs = [_Run(graph, symbols)]
    if symbols:
        runs += list(_other_runs(graph, symbols))
    first = runs[0]
    places = {}
    for number, tensor in first.values.items():
        sizes = [tuple(run.values[number].shape) for run in runs]
        shape = tuple(
            size if len({one[dim] for one in sizes}) == 1 else Size(((number, dim),))
            for dim, size in enumerate(tensor.shape)
        )
        names = {
            dim: name
            for dim, size in enumerate(shape)
            if isinstance(size, Size)
            for name in symbols
            if all(run.symbols[name] == one[dim] for run, one in zip(runs, sizes, strict=True))
        }
        places[number] = Place(tensor.dtype, shape, tuple(tensor.shape), first.parents.get(number), names)
    return places


def _example(graph: Graph) -> dict[str, int]:
    """Return the recorded values of the symbols."""
    found = {}
    for one in graph.inputs:
        if one.value is not None:
            for size, number in zip(one.sizes, graph.described[one.value].sizes, strict=True):
                if isinstance(size, Scaled):
                    found[size.symbol] = (number - size.offset) // size.factor
    return found


def _other_runs(graph: Graph, symbols: dict[str, int]) -> Iterator[_Run]:
    """Iterate over two runs at other sizes; a second one tells sizes apart that agree by chance."""
    error: Exception | None = None
    count = 0
    for make in _OTHERS:
        sizes = {name: make(k, size) for k, (name, size) in enumerate(symbols.items())}
        if not all(size > 1 and graph.symbols[name].allows(size) for name, size in sizes.items()):
            continue
        try:
            yield _Run(graph, sizes)
        except OnnxExporterError as refused:
            error = refused
            continue
        count += 1
        if count == 2:
            return
    if count == 0:
        raise error or OnnxExporterError(f"the program has no sizes other than {symbols}; export it with fixed sizes")


class _Run:
    """The operators of a graph, run on the device meta."""

    def __init__(self, graph: Graph, symbols: dict[str, int]) -> None:
        self.symbols = symbols
        self.values: dict[int, Tensor] = {}
        self.parents: dict[int, int] = {}
        for state in graph.states:
            tensor = state.tensor
            self.values[state.value] = candelabra.empty_strided(
                tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="meta"
            )
        for one in graph.inputs:
            if one.value is not None and one.dtype is not None:
                sizes = [
                    symbols[size.symbol] * size.factor + size.offset if isinstance(size, Scaled) else size
                    for size in one.sizes
                ]
                self.values[one.value] = candelabra.empty(sizes, dtype=one.dtype, device="meta")
        with candelabra.no_grad():
            for node in graph.nodes:
                self._run(node)

    def _argument(self, value: Any) -> Any:
        if type(value) is Ref:
            return self.values[value.value]
        if type(value) is Size:
            return value.evaluate(lambda number: self.values[number].shape)
        return candelabra.device("meta") if type(value) is candelabra.device else value

    def _run(self, node: Node) -> None:
        args = [replaced(value, self._argument) for value in node.args]
        kwargs = {name: replaced(value, self._argument) for name, value in node.kwargs.items()}
        try:
            if node.op in ("index_put", "index_put_"):
                # Masks have no places on the device meta; the result is like the first argument.
                result = args[0] if node.op == "index_put_" else args[0].clone()
            else:
                result = find_operator(node.op)(*args, **kwargs)
        except Exception as error:
            raise OnnxExporterError(
                f"{node.place()} does not run with {self.symbols or 'its arguments'}: {error}"
            ) from error
        entries = [result] if node.is_single else result
        arguments = [leaf.value for leaf in walk([*node.args, *node.kwargs.values()]) if type(leaf) is Ref]
        for number, entry in zip(node.outputs, entries, strict=True):
            if number is None:
                continue
            self.values[number] = entry
            memory = entry.untyped_storage()
            for other in arguments:
                if other != number and self.values[other].untyped_storage() is memory:
                    self.parents[number] = other
                    break
