"""Graphs as plain data, and back. What is read is checked before it is used."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.serialization import FileError

from . import trees
from .graph import Described, Graph, Input, Node, Ref, Scaled, Size, State, Symbol, find_operator

VERSION = 1
_MOST_DIMENSIONS = 64
#: Sizes, and numbers that sizes are computed with.
_LARGEST = 1 << 48
_KINDS = ("parameter", "buffer", "constant")
_FORMATS = ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")


# ---- writing


def encoded(graph: Graph) -> dict[str, Any]:
    """Return a graph as plain data and tensors."""
    files = {file: number for number, file in enumerate(dict.fromkeys(node.file for node in graph.nodes))}
    described = graph.described
    nodes = []
    for node in graph.nodes:
        outputs = [
            None if value is None else [value, described[value].dtype, list(described[value].sizes)]
            for value in node.outputs
        ]
        kwargs = [[name, _encoded(value)] for name, value in node.kwargs.items()]
        arguments = [_encoded(value) for value in node.args]
        nodes.append([node.op, arguments, kwargs, outputs, node.is_single, files[node.file], node.line])
    return {
        "candelabra_program": VERSION,
        "name": graph.name,
        "device": graph.device,
        "symbols": [[one.name, one.least, one.most] for one in graph.symbols.values()],
        "inputs": [_encoded_input(one, described) for one in graph.inputs],
        "states": [[one.value, one.kind, one.name, one.is_persistent, one.tensor] for one in graph.states],
        "files": list(files),
        "nodes": nodes,
        "outputs": [_encoded(value) for value in graph.outputs],
        "written": list(graph.written),
        "parameter_names": list(graph.parameter_names),
        "in_spec": trees.described(graph.in_spec),
        "out_spec": trees.described(graph.out_spec),
    }


def _encoded_input(one: Input, described: dict[int, Described]) -> list[Any]:
    if one.value is None:
        return [one.name, _encoded(one.constant)]
    sizes = [list(size) if isinstance(size, Scaled) else size for size in one.sizes]
    return [one.name, one.value, one.dtype, sizes, list(described[one.value].sizes)]


def _encoded(value: Any) -> Any:
    kind = type(value)
    if kind is list:
        return [_encoded(entry) for entry in value]
    if kind is Ref:
        return ("value", value.value)
    if kind is Size:
        return ("size", [list(place) for place in value.of], *value[1:])
    if kind is candelabra.memory_format:
        return ("memory_format", str(value).rpartition(".")[2])
    if kind is candelabra.layout:
        return ("layout", str(value).rpartition(".")[2])
    return value


# ---- reading


class Decoder:
    """Makes a graph of plain data from a file."""

    def __init__(self, content: Any, namespaces: frozenset[str]) -> None:
        if not isinstance(content, dict) or "candelabra_program" not in content:
            raise FileError("it is no program; candelabra.load reads tensors")
        version = content["candelabra_program"]
        if type(version) is not int or version != VERSION:
            raise FileError(f"its version is {str(version)[:40]}, this candelabra-compile reads {VERSION}")
        self._content = content
        self._namespaces = namespaces
        self._described: dict[int, Described] = {}
        self._symbols: dict[str, Symbol] = {}

    def graph(self) -> Graph:
        """Return the graph.

        Raises
        ------
        FileError
            If the data makes no sense.
        """
        for name, least, most in self._list("symbols", 3):
            symbol = Symbol(_text(name), _number(least), None if most is None else _number(most))
            self._symbols[symbol.name] = symbol
        states = [self._state(*one) for one in self._list("states", 5)]
        if len({state.name for state in states}) != len(states):
            raise FileError("two parameters or buffers have one name")
        _check_paths([state.name for state in states])
        inputs = [self._input(one) for one in self._list("inputs")]
        files = [_text(one, 4096) for one in self._list("files")]
        nodes = [self._node(one, files) for one in self._list("nodes", 7)]
        in_spec, out_spec = trees.restored(self._content["in_spec"]), trees.restored(self._content["out_spec"])
        outputs = [self._argument(value) for value in self._list("outputs")]
        if in_spec.num_leaves != len(inputs) or out_spec.num_leaves != len(outputs):
            raise FileError("the form of the arguments or of the result has another number of leaves")
        if [child.type for child in in_spec.children()] != [tuple, dict]:
            raise FileError("the form of the arguments makes no sense")
        known = {state.value for state in states} | {one.value for one in inputs}
        written = [_number(value) for value in self._list("written")]
        if any(value not in known for value in written):
            raise FileError("it writes to a value that is no argument and no state")
        device = self._content["device"]
        if not isinstance(device, candelabra.device):
            raise FileError("its device is missing")
        return Graph(
            _identifier(self._content["name"]), device, inputs, states, nodes, outputs, self._symbols, self._described,
            [_text(one) for one in self._list("parameter_names")], in_spec, out_spec, written,
        )  # fmt: skip

    def _list(self, name: str, length: int | None = None) -> list[Any]:
        found = self._content.get(name)
        if type(found) is not list:
            raise FileError(f"its {name} are missing")
        if length is not None and any(type(one) is not list or len(one) != length for one in found):
            raise FileError(f"its {name} make no sense")
        return found

    def _define(self, value: Any, dtype: Any, sizes: Any) -> int:
        number = _number(value)
        if number in self._described:
            raise FileError(f"value {number} is defined twice")
        if not isinstance(dtype, candelabra.dtype) or type(sizes) is not list or len(sizes) > _MOST_DIMENSIONS:
            raise FileError(f"value {number} has no dtype or no sizes")
        self._described[number] = Described(dtype, tuple(_number(size) for size in sizes))
        return number

    def _state(self, value: Any, kind: Any, name: Any, is_persistent: Any, tensor: Any) -> State:
        if kind not in _KINDS or type(is_persistent) is not bool or not isinstance(tensor, Tensor):
            raise FileError("a parameter or a buffer makes no sense")
        if kind == "parameter" and not isinstance(tensor, candelabra.nn.Parameter):
            raise FileError(f"parameter {_text(name)} is none")
        return State(
            self._define(value, tensor.dtype, list(tensor.shape)), kind, _text(name, 4096), tensor, is_persistent
        )

    def _input(self, one: Any) -> Input:
        if type(one) is not list or len(one) not in (2, 5):
            raise FileError("an argument makes no sense")
        name = _identifier(one[0])
        if len(one) == 2:
            return Input(name, None, constant=self._argument(one[1], is_plain=True))
        _, value, dtype, sizes, example = one
        number = self._define(value, dtype, example)
        if type(sizes) is not list or len(sizes) != len(example):
            raise FileError(f"the sizes of argument {name} make no sense")
        found = [self._scaled(size) if type(size) is list else _number(size) for size in sizes]
        for size, there in zip(found, example, strict=True):
            if type(size) is int and size != there:
                raise FileError(f"the sizes of argument {name} contradict each other")
        return Input(name, number, dtype, found)

    def _scaled(self, size: list[Any]) -> Scaled:
        if len(size) != 3 or size[0] not in self._symbols or _number(size[1]) == 0:
            raise FileError("a size that follows from none")
        return Scaled(size[0], size[1], _integer(size[2]))

    def _node(self, one: list[Any], files: list[str]) -> Node:
        name, args, kwargs, outputs, is_single, file, line = one
        op = self._operator(name)
        if (
            type(args) is not list
            or type(kwargs) is not list
            or type(outputs) is not list
            or type(is_single) is not bool
        ):
            raise FileError(f"a call of {name} makes no sense")
        if len(args) > len(op.parameters) or (is_single and len(outputs) != 1):
            raise FileError(f"a call of {name} has {len(args)} arguments and {len(outputs)} results")
        found = [self._argument(value) for value in args]
        named = {}
        for pair in kwargs:
            if type(pair) is not list or len(pair) != 2 or (pair[0] not in op.parameters and pair[0] != "out"):
                raise FileError(f"a call of {name} has an unknown argument")
            named[pair[0]] = self._argument(pair[1])
        values: list[int | None] = []
        for result in outputs:
            if result is not None and (type(result) is not list or len(result) != 3):
                raise FileError(f"a result of {name} makes no sense")
            values.append(None if result is None else self._define(*result))
        number = _number(file)
        if number >= len(files):
            raise FileError(f"a call of {name} is of no file")
        return Node(name, found, named, values, is_single, files[number], _number(line))

    def _operator(self, name: Any) -> Any:
        namespace, separator, _ = _text(name).rpartition("::")
        if separator and namespace not in self._namespaces:
            raise FileError(
                f"it calls the operator {name}, which is not one of Candelabra's own; if you trust it, import its library and load "
                f"with namespaces=({namespace!r},)"
            )
        op = find_operator(name)
        if op is None:
            raise FileError(f"it calls the operator {name[:80]!r}, which is unknown here")
        return op

    def _argument(self, value: Any, depth: int = 0, is_plain: bool = False) -> Any:
        if type(value) is list and depth < 8:
            return [self._argument(entry, depth + 1, is_plain) for entry in value]
        if type(value) is not tuple:
            if isinstance(
                value, bool | int | float | complex | str | type(None) | candelabra.dtype | candelabra.device
            ):
                return value
            raise FileError(f"an argument is a {type(value).__name__}")
        kind = value[0] if value else None
        if kind == "value" and len(value) == 2 and not is_plain:
            return Ref(self._known(value[1]))
        if kind == "size" and len(value) == 7 and not is_plain:
            return self._size(*value[1:])
        if kind == "memory_format" and len(value) == 2 and value[1] in _FORMATS:
            return getattr(candelabra, value[1])
        if kind == "layout" and value == ("layout", "strided"):
            return candelabra.strided
        raise FileError("an argument of an unknown kind")

    def _known(self, value: Any) -> int:
        number = _number(value)
        if number not in self._described:
            raise FileError(f"value {number} is used before it is computed")
        return number

    def _size(self, of: Any, factor: Any, divisor: Any, offset: Any, rounds_up: Any, is_float: Any) -> Size:
        if (
            type(of) is not list
            or not 0 < len(of) <= 8
            or any(type(place) is not list or len(place) != 2 for place in of)
        ):
            raise FileError("a size that follows from none")
        places = tuple((self._known(value), _number(dim)) for value, dim in of)
        if any(dim >= len(self._described[value].sizes) for value, dim in places) or _number(divisor) == 0:
            raise FileError("a size of a dimension that is not there")
        return Size(places, _integer(factor), divisor, _integer(offset), rounds_up is True, is_float is True)


def _check_paths(names: list[str]) -> None:
    """Check that names are those of attributes of modules, and that none is within another."""
    paths = set(names)
    for name in names:
        atoms = name.split(".")
        if not all(atoms) or any(atom.startswith("__") for atom in atoms):
            raise FileError(f"{name[:80]!r} is no name of a parameter or a buffer")
        if any(".".join(atoms[:k]) in paths for k in range(1, len(atoms))):
            raise FileError(f"{name[:80]!r} is within a tensor")


def _text(value: Any, most: int = 256) -> str:
    if type(value) is not str or len(value) > most:
        raise FileError("a name that is none")
    return value


def _identifier(value: Any) -> str:
    if not _text(value).isidentifier():
        raise FileError(f"{value[:40]!r} is no name")
    return str(value)


def _integer(value: Any) -> int:
    if type(value) is not int or not -_LARGEST < value < _LARGEST:
        raise FileError("a size that is impossible")
    return value


def _number(value: Any) -> int:
    if _integer(value) < 0:
        raise FileError("a size that is impossible")
    return int(value)
