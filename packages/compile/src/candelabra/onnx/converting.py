"""Converting a recorded graph to the nodes of an ONNX graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra
import candelabra.export
from candelabra import Tensor
from candelabra.export.interface import RANDOM, Graph, Node, Ref, Size, find_operator, replaced, walk

from .builder import ELEMENT_TYPES, Builder, OnnxNode, Value
from .errors import OnnxExporterError
from .geometry import Place, geometry
from .rewriting import with_last_states
from .rules import RULES

#: A constant that is computed at the export has at most so many elements more than its arguments.
_MOST_FOLDED = 1 << 16
_EMPTY = frozenset({"allocate", "empty", "empty_like", "empty_strided"})
#: Arguments that say nothing of values.
_IGNORED = frozenset({"device", "layout", "memory_format", "non_blocking", "out", "pin_memory", "requires_grad"})
#: Views that are the same as their base.
_UNCHANGED = frozenset({"alias", "contiguous", "detach", "to"})
#: Nodes whose results may be left out where nothing needs them.
_OPTIONAL = frozenset({"Dropout", "GRU", "LSTM", "MaxPool", "RNN"})
#: Views whose elements are those of their base in the same order.
_IN_ORDER = frozenset({"reshape", "squeeze", "unflatten", "unsqueeze", "view"})


class Converted:
    """The parts of an ONNX graph."""

    def __init__(self, builder: Builder, inputs: list[tuple[str, Place]], outputs: list[tuple[str, Place]]) -> None:
        self.inputs, self.outputs = inputs, outputs
        self.nodes = _named(_needed(builder.nodes, [name for name, _ in outputs]))
        used = {name for node in self.nodes for name in node.inputs} | {name for name, _ in outputs}
        #: Constants that have no name in the program.
        self.constants = {name: tensor for name, tensor in builder.constants.items() if name in used}
        self.used = used


def _named(nodes: list[OnnxNode]) -> list[OnnxNode]:
    """Return nodes without those that only give the result of another node a name."""
    made = {name for node in nodes for name in node.outputs}
    names: dict[str, str] = {}
    kept = []
    for node in nodes:
        source = node.inputs[0] if node.kind == "Identity" else ""
        if source and source in made and source not in names:
            names[source] = node.outputs[0]
        else:
            kept.append(node)
    for node in kept:
        node.inputs = [names.get(name, name) for name in node.inputs]
        node.outputs = [names.get(name, name) for name in node.outputs]
    return kept


def _needed(nodes: list[OnnxNode], outputs: list[str]) -> list[OnnxNode]:
    """Return the nodes that results need."""
    needed, kept = set(outputs), []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.outputs):
            kept.append(node)
            needed.update(node.inputs)
            if node.kind in _OPTIONAL:
                node.outputs = [name if name in needed else "" for name in node.outputs]
                while not node.outputs[-1]:
                    node.outputs.pop()
    return kept[::-1]


class Converter:
    """Writes the operators of a graph by the table of rules.

    Operators that write to a tensor become operators with a new result: each memory has a version,
    and views of it are computed again when they are read after a write. What follows from
    constants only is computed here.

    Parameters
    ----------
    graph
        The recorded graph.
    opset
        The version of ONNX's operator set.
    """

    def __init__(self, graph: Graph, opset: int) -> None:
        self._graph = with_last_states(graph)
        self._places = geometry(self._graph)
        self._builder = Builder(opset, lambda number: self._builder.name(self.value(number)))
        self._values: dict[int, Value] = {}
        #: The value that another one is the same as: before a write to it, or before a view of all.
        self._same: dict[int, int] = {}
        self._roots: dict[int, int] = {}
        #: The nodes that make values, by value.
        self._makers: dict[int, Node] = {}
        #: By the value that has a memory of its own: how often it was written to.
        self._versions: dict[int, int] = {}

    def convert(self, input_names: Sequence[str] | None, output_names: Sequence[str] | None) -> Converted:
        """Return the parts of the ONNX graph.

        Raises
        ------
        UnsupportedOperatorError
            If there is no rule for an operator, or not for its arguments.
        """
        builder = self._builder
        for state in self._graph.states:
            if state.kind == "constant":
                self._define(state.value, "", state.tensor.detach())
            else:
                self._define(state.value, builder.new_name(state.name))
        taken = {state.name for state in self._graph.states}.intersection([*(input_names or ()), *(output_names or ())])
        if taken:
            raise OnnxExporterError(f"input_names and output_names have {sorted(taken)}, which are names of weights")
        inputs = [one for one in self._graph.inputs if one.value is not None]
        names = _given_names("input_names", input_names, [one.name for one in inputs])
        found = []
        for one, name in zip(inputs, names, strict=True):
            assert one.value is not None
            found.append((builder.new_name(name), self._places[one.value]))
            self._define(one.value, found[-1][0])
        wanted = [leaf for leaf in self._graph.outputs if leaf is not None]
        results = _given_names(
            "output_names", output_names, ["output" if k == 0 else f"output_{k}" for k in range(len(wanted))]
        )
        reserved = [builder.new_name(name) for name in results]
        for node in self._graph.nodes:
            builder.node = node
            self._convert_node(node)
        builder.node = Node("result", [], {}, [], True)
        outputs = [(name, self._output(leaf, name)) for leaf, name in zip(wanted, reserved, strict=True)]
        return Converted(builder, found, outputs)

    def _output(self, leaf: Any, name: str) -> Place:
        """Add the node that names a result, and return its place."""
        if type(leaf) is Ref:
            source, place = self._builder.name(self.value(leaf.value)), self._places[leaf.value]
        elif isinstance(leaf, int | float) or type(leaf) is Size:
            dtype = candelabra.float32 if isinstance(leaf, float) else candelabra.int64
            dtype = candelabra.bool if isinstance(leaf, bool) else dtype
            source, place = self._builder.as_dtype(leaf, dtype), Place(dtype, (), ())
        else:
            raise OnnxExporterError(
                f"the program returns a {type(leaf).__name__}; ONNX programs return tensors and numbers"
            )
        self._builder.nodes.append(OnnxNode("Identity", [source], [name], {}))
        return place

    # ---- values

    def _define(self, number: int, name: str, tensor: Tensor | None = None) -> None:
        number = self._first(number)
        place = self._places[number]
        version = self._versions.setdefault(self._root(number), 0)
        self._values[number] = Value(place.dtype, place.shape, place.example, name, tensor, version)

    def _first(self, number: int) -> int:
        """Return the first value that a value is the same as."""
        return self._same.get(number, number)

    def _parent(self, number: int) -> int | None:
        """Return what a value is a view of."""
        parent = self._places[number].parent
        return None if parent is None else self._first(parent)

    def _root(self, number: int) -> int:
        """Return the value that has the memory of a value."""
        number = self._first(number)
        if number not in self._roots:
            parent = self._parent(number)
            self._roots[number] = number if parent is None else self._root(parent)
        return self._roots[number]

    def value(self, number: int) -> Value:
        """Return a value as it is now."""
        number = self._first(number)
        value = self._values.get(number)
        if value is None:
            self._builder.node = self._makers[number]
            self._builder.refuse("the program uses a result of it that ONNX does not have")
        if value.version != self._versions[self._root(number)]:
            builder = self._builder
            node, results = builder.node, builder.results
            builder.node = self._makers[number]
            self._apply_rule(builder.node)
            builder.node, builder.results = node, results
        return self._values[number]

    def _note_maker(self, number: int, node: Node) -> None:
        """Note which node makes a value, and whether it has all elements of another one."""
        self._makers[number] = node
        place, op = self._places[number], find_operator(node.op)
        if place.parent is None:
            return
        writes = op.functional is not None or "!" in op.schema or "out" in node.kwargs
        in_order = node.op in _IN_ORDER and self._places[place.parent].example == place.example
        if writes or in_order or node.op in _UNCHANGED:
            self._same[number] = self._first(place.parent)

    # ---- nodes

    def _convert_node(self, node: Node) -> None:
        for number in node.outputs:
            if number is not None:
                self._note_maker(number, node)
        target = self._target(node)
        if self._fold(node, target):
            return
        if target is None:
            self._apply_rule(node)
            return
        name = self._functional(node, target)
        self._write(target, name)
        for number in node.outputs:
            if number is not None:
                self._define(number, name)

    def _target(self, node: Node) -> int | None:
        """Return the value that an operator writes to, or None.

        Running statistics, which programs do not return, stay as they are.
        """
        op = find_operator(node.op)
        if "out" in node.kwargs:
            return int(node.kwargs["out"].value)
        if op.functional is not None or op.parameter_types[:1] == ("Tensor(a!)",):
            return int((node.args[0] if node.args else node.kwargs[op.parameters[0]]).value)
        if "!" in op.schema and node.op != "native_batch_norm":
            self._builder.refuse("it writes to several tensors")
        return None

    def _arguments(self, node: Node) -> tuple[list[Any], dict[str, Any]]:
        def argument(value: Any) -> Any:
            return self.value(value.value) if type(value) is Ref else value

        kwargs = {name: value for name, value in node.kwargs.items() if name not in _IGNORED}
        return [replaced(value, argument) for value in node.args], {
            name: replaced(value, argument) for name, value in kwargs.items()
        }

    def _call(self, node: Node, op: Any) -> list[str | None]:
        """Return the names of the results of an operator, by its rule."""
        found = RULES.get(op.name)
        if found is None:
            self._builder.refuse("it has no rule")
        args, kwargs = self._arguments(node)
        while len(args) < op.positional_count and op.parameters[len(args)] in kwargs:
            args.append(kwargs.pop(op.parameters[len(args)]))
        for position, (value, kind) in enumerate(zip(args, op.parameter_types, strict=False)):
            if kind.startswith("int[") and type(value) in (int, Size):
                args[position] = [value]
        for name, value in [*zip(op.parameters, args, strict=False), *kwargs.items()]:
            if name not in found.sizes and any(type(leaf) is Size for leaf in walk(value)):
                self._builder.refuse(f"argument '{name}' differs from call to call; export with its size fixed")
        results = found.function(self._builder, *args, **kwargs)
        return [results] if isinstance(results, str) else list(results)

    def _apply_rule(self, node: Node) -> None:
        self._builder.results = [self._places[number] for number in node.outputs if number is not None]
        for number, name in zip(node.outputs, self._call(node, find_operator(node.op)), strict=True):
            if number is not None and name is not None:
                self._define(number, name)

    def _functional(self, node: Node, target: int) -> str:
        """Return the name of what an operator writes."""
        op, place = find_operator(node.op), self._places[target]
        self._builder.results = [place]
        if node.op == "copy_":
            return self._copied(node, target)
        if node.op == "fill_":
            value = node.args[1]
            scalar = self._builder.as_dtype(self.value(value.value) if type(value) is Ref else value, place.dtype)
            return self._builder.expand(scalar, self.value(target).shape)
        name = self._call(node, op.functional or op)[0]
        if name is None:
            self._builder.refuse("ONNX does not have its result")
        return name

    def _copied(self, node: Node, target: int) -> str:
        builder, source, place = self._builder, self.value(node.args[1].value), self._places[target]
        name = builder.cast(source, place.dtype)
        same = self._places[node.args[1].value].example == place.example
        return name if same else builder.expand(name, self.value(target).shape)

    # ---- writes

    def _write(self, number: int, name: str) -> None:
        """Note that a value has new elements, and with it what it is a view of."""
        number = self._first(number)
        parent = self._parent(number)
        while parent is not None:
            name = self._merged(number, parent, name)
            number, parent = parent, self._parent(parent)
        self._versions[number] += 1
        self._define(number, name)

    def _merged(self, number: int, parent: int, name: str) -> str:
        """Return the elements of a value, with those of a view of it replaced."""
        builder, base = self._builder, self.value(parent)
        if self._makers[number].op in _IN_ORDER:
            return builder.reshape(name, base.shape)
        numbers = builder.op(
            "Range", builder.constant(0), builder.number(builder.times(base.shape)), builder.constant(1)
        )
        places = Value(candelabra.int64, base.shape, base.example, builder.reshape(numbers, base.shape))
        kept, self._values[parent] = self._values[parent], places
        node, results, of_view = builder.node, builder.results, self._values[number]
        places.version = kept.version
        builder.node = self._makers[number]
        self._apply_rule(builder.node)
        index = builder.name(self._values[number])
        builder.node, builder.results = node, results
        self._values[parent], self._values[number] = kept, of_view
        flat, index, updates = (builder.reshape(one, [-1]) for one in (base, index, name))
        return builder.reshape(builder.op("ScatterElements", flat, index, updates, axis=0), base.shape)

    # ---- constants

    def _fold(self, node: Node, target: int | None) -> bool:
        """Compute an operator of constants only; return whether it was one."""
        op = find_operator(node.op)
        leaves = list(walk([*node.args, *node.kwargs.values()]))
        if op.tags & RANDOM or any(type(leaf) is Size for leaf in leaves):
            return False
        numbers = [leaf.value for leaf in leaves if type(leaf) is Ref]
        if any(self._values.get(number) is None or self.value(number).tensor is None for number in numbers):
            return False
        given = sum(candelabra.Size(self._places[number].example).numel() for number in numbers)
        made = [candelabra.Size(self._places[number].example).numel() for number in node.outputs if number is not None]
        if sum(made) > given + _MOST_FOLDED:
            return False

        def argument(value: Any) -> Any:
            return self.value(value.value).tensor if type(value) is Ref else value

        args = [replaced(value, argument) for value in node.args]
        kwargs = {name: replaced(value, argument) for name, value in node.kwargs.items()}
        with candelabra.no_grad():
            results = op(*args, **kwargs)
            if node.op in _EMPTY:
                results.zero_()
        if target is not None:
            self._forget_names(self._root(target))
        for number, result in zip(node.outputs, [results] if node.is_single else results, strict=True):
            if number is not None:
                self._define(number, "", result)
        return True

    def _forget_names(self, root: int) -> None:
        """Let constants of a memory that was written to have new names when they are used."""
        for number, value in self._values.items():
            if self._root(number) == root:
                value.name = ""


def _given_names(what: str, given: Sequence[str] | None, names: list[str]) -> list[str]:
    """Return names with the first ones replaced by those that were given."""
    given = list(given or ())
    if len(given) > len(names):
        raise OnnxExporterError(f"{what} has {len(given)} names, but the program has {len(names)} of them")
    if len(set(given)) != len(given):
        raise OnnxExporterError(f"{what} has a name twice: {given}")
    return given + names[len(given) :]


def element_type(dtype: candelabra.dtype) -> int:
    """Return ONNX's number of a dtype.

    Raises
    ------
    OnnxExporterError
        If ONNX has none.
    """
    found = ELEMENT_TYPES.get(dtype)
    if found is None:
        raise OnnxExporterError(f"ONNX has no tensors of dtype {dtype}")
    return found
