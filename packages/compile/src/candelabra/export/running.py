"""Running a graph: its operators are called from a Python function that is made of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import candelabra
from candelabra import Tensor, pytree

from .graph import Graph, Node, Ref, Scaled, Size, find_operator, uses

_numbers = itertools.count()


class Runner:
    """Calls the operators of a graph one after another.

    Tensors are given up after their last use. Only numbers of values are in the text that is
    compiled; operators and constants are its globals.
    """

    def __init__(self, graph: Graph) -> None:
        self._nodes = graph.nodes
        self._file = f"<candelabra program {next(_numbers)}>"
        self._globals: dict[str, Any] = {}
        #: By line of the text: the node that it calls.
        self._lines: dict[int, Node] = {}
        exec(compile(self._text(graph), self._file, "exec"), self._globals)
        self._function: Callable[..., Any] = self._globals["run"]

    def _text(self, graph: Graph) -> str:
        inputs = [f"v{one.value}" if one.value is not None else "_" for one in graph.inputs]
        states = [f"v{state.value}" for state in graph.states]
        lines = [
            "def run(inputs, states):",
            f"    [{', '.join(inputs)}] = inputs",
            f"    [{', '.join(states)}] = states",
        ]
        last = self._last_uses(graph)
        for number, node in enumerate(graph.nodes):
            targets = ["_" if value is None else f"v{value}" for value in node.outputs]
            left = targets[0] if node.is_single else f"[{', '.join(targets)}]"
            self._globals[f"op{number}"] = find_operator(node.op)
            arguments = [self._expression(value) for value in node.args]
            arguments += [f"{name}={self._expression(value)}" for name, value in node.kwargs.items()]
            self._lines[len(lines) + 1] = node
            lines.append(f"    {left} = op{number}({', '.join(arguments)})")
            if last.get(number):
                lines.append("    " + " = ".join(f"v{value}" for value in last[number]) + " = None")
        lines.append(f"    return [{', '.join(self._expression(value) for value in graph.outputs)}]")
        return "\n".join(lines)

    def _last_uses(self, graph: Graph) -> dict[int, list[int]]:
        """Return the values that no node needs after each node."""
        last: dict[int, int] = {}
        for number, node in enumerate(graph.nodes):
            last.update(dict.fromkeys((value for value in node.outputs if value is not None), number))
            last.update(dict.fromkeys(uses([*node.args, *node.kwargs.values()]), number))
        for value in uses(graph.outputs):
            last.pop(value, None)
        found: dict[int, list[int]] = {}
        for value, number in last.items():
            found.setdefault(number, []).append(value)
        return found

    def _expression(self, value: Any) -> str:
        if type(value) is Ref:
            return f"v{value.value}"
        if type(value) is Size:
            product = " * ".join([*(f"v{v}.shape[{dim}]" for v, dim in value.of), str(value.factor)])
            scaled = f"-(-({product}) // {value.divisor})" if value.rounds_up else f"({product}) // {value.divisor}"
            return f"float({scaled} + {value.offset})" if value.is_float else f"({scaled} + {value.offset})"
        if type(value) is list:
            return f"[{', '.join(map(self._expression, value))}]"
        if value is None or type(value) in (bool, int):
            return repr(value)
        name = f"k{len(self._globals)}"
        self._globals[name] = value
        return name

    def __call__(self, inputs: list[Any], states: list[Tensor]) -> list[Any]:
        try:
            found: list[Any] = self._function(inputs, states)
        except Exception as error:
            self._explain(error)
            raise
        return found

    def _explain(self, error: Exception) -> None:
        """Note in an error which operator of the program raised it."""
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._file and trace.tb_lineno in self._lines:
                error.add_note(f"in the exported program: {self._lines[trace.tb_lineno].place()}")
            trace = trace.tb_next


class Arguments:
    """What the arguments of a program must be."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._names = graph.parameter_names

    def flatten(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return the leaves of the arguments.

        Raises
        ------
        TypeError
            If the arguments have another form than those that the program was exported with.
        RuntimeError
            If a tensor has another dtype, device or size than the program takes, or another value
            differs.
        """
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._graph.in_spec:
            leaves, spec = pytree.tree_flatten(self._arranged(args, kwargs))
            if spec != self._graph.in_spec:
                raise TypeError(
                    f"{self._graph.name}: the arguments have another form than those of export: {spec} instead of {self._graph.in_spec}"
                )
        self._check(leaves)
        return leaves

    def _arranged(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments by position and by name as they were at the export."""
        positional, named = self._graph.in_spec.children()
        given = dict(zip(self._names, args, strict=False)) | kwargs
        names = self._names[: positional.num_children]
        if len(given) != len(args) + len(kwargs) or len(given) != positional.num_children + named.num_children:
            return args, kwargs
        if any(name not in given for name in (*names, *named.context)):
            return args, kwargs
        return tuple(given[name] for name in names), {name: given[name] for name in named.context}

    def _check(self, leaves: list[Any]) -> None:
        graph = self._graph
        symbols: dict[str, int] = {}
        for given, expected in zip(leaves, graph.inputs, strict=True):
            if expected.value is None:
                if type(given) is not type(expected.constant) or given != expected.constant:
                    raise RuntimeError(
                        f"{graph.name}: argument {expected.name} is {given!r}, and the program was exported with {expected.constant!r}"
                    )
                continue
            if not isinstance(given, Tensor):
                raise TypeError(
                    f"{graph.name}: argument {expected.name} must be a tensor, but got {type(given).__name__}"
                )
            shape = given.shape
            if given.dtype is not expected.dtype or len(shape) != len(expected.sizes):
                raise RuntimeError(
                    f"{graph.name}: argument {expected.name} must be of {expected.dtype} and have {len(expected.sizes)} dimensions, but got "
                    f"{given.dtype} and sizes {list(shape)}"
                )
            if given.device.type != graph.device.type:
                raise RuntimeError(
                    f"{graph.name}: argument {expected.name} is on {given.device}, and the program is for {graph.device}; "
                    "candelabra.export.load(f, device=...) loads it for another device"
                )
            for dim, (size, wanted) in enumerate(zip(shape, expected.sizes, strict=True)):
                if size != wanted and (not isinstance(wanted, Scaled) or not _fits(graph, symbols, size, wanted)):
                    raise RuntimeError(
                        f"{graph.name}: dimension {dim} of argument {expected.name} is {size}, but must be "
                        f"{_text(graph, symbols, wanted)}"
                    )


def _fits(graph: Graph, symbols: dict[str, int], size: int, wanted: Scaled) -> bool:
    value, rest = divmod(size - wanted.offset, wanted.factor)
    known = symbols.setdefault(wanted.symbol, value)
    return rest == 0 and known == value and graph.symbols[wanted.symbol].allows(value)


def _text(graph: Graph, symbols: dict[str, int], wanted: int | Scaled) -> str:
    if not isinstance(wanted, Scaled):
        return f"{wanted}, which dynamic_shapes of export leaves fixed"
    symbol = graph.symbols[wanted.symbol]
    factor = f"{wanted.factor} * " if wanted.factor != 1 else ""
    offset = f" + {wanted.offset}" if wanted.offset else ""
    most = "" if symbol.most is None else f" to {symbol.most}"
    return f"{factor}{symbol.name}{offset}, with {symbol.name} = {symbols[symbol.name]} elsewhere and from {symbol.least}{most}"


def on_device(graph: Graph, device: candelabra.device) -> None:
    """Let a graph compute on another device than that of its recording."""
    from .graph import replaced

    before = graph.device

    def moved(value: Any) -> Any:
        is_same = type(value) is candelabra.device and value.type == before.type
        return device if is_same else value

    for node in graph.nodes:
        node.args = [replaced(value, moved) for value in node.args]
        node.kwargs = {name: replaced(value, moved) for name, value in node.kwargs.items()}
    graph.device = device
