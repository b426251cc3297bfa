"""Autograd functions: the core calls them after an operation that must be recorded.

Each row of the table becomes one flat function and up to three node classes. They are generated as
Python source when the operator is first recorded; ``linecache`` shows the source in tracebacks. The
generator decides which inputs exist, what is saved and what has a version. The generated code
contains no loops or lookups.
"""

from __future__ import annotations

import linecache
import os
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import candelabra
from candelabra import _C, Tensor
from candelabra.catalogue import OPERATORS

from . import node as nodes
from .assembly import PartNode
from .fitting import fit, like
from .table import ROWS, WRITTEN, Row

if TYPE_CHECKING:
    from collections.abc import Callable

    AutogradFunction = Callable[..., Any]

_NUMBERS = 16  # the tag NUMBERS of the catalogue
_SUFFIXES = {
    "_shape": "{}.shape",
    "_dtype": "{}.dtype",
    "_strides": "{}.stride()",
    "_offset": "{}.storage_offset()",
    "_like": "like({})",
}

#: Active autograd functions by operator, wrapped in the active modes (anomaly detection,
#: saved-tensor hooks).
AUTOGRAD_FUNCTIONS: dict[str, AutogradFunction] = {}
_plain: dict[str, AutogradFunction] = {}
_modes: list[Callable[[AutogradFunction], AutogradFunction]] = []
# Held while autograd functions are replaced: a function generated while another thread enters a
# mode must get that mode.
_changing = threading.RLock()
os.register_at_fork(after_in_child=_changing._at_fork_reinit)  # type: ignore[attr-defined]


def _legal(name: str) -> str:
    """Return the name of a parameter as the generated source and the formulas spell it."""
    return "from_" if name == "from" else name


class _Kept(NamedTuple):
    """One value that a node saves."""

    name: str  # the name used by the formulas
    kind: str  # "tensor", "maybe" (a tensor, a number or None), "result" or "value"
    expression: str  # source of the value when the operation is recorded


class _Writer:
    """Generate the source of one operator's autograd function and node classes."""

    def __init__(self, row: Row, operator: Any) -> None:
        self.row = row
        self.parameters = dict(zip(map(_legal, operator.parameters), operator.parameter_types, strict=True))
        self.results = operator.result_count
        self.numbers = bool(operator.tags & _NUMBERS)
        unknown = [name for name in row.inputs if name not in self.parameters]
        if unknown:
            raise ValueError(
                f"derivative of {row.name!r}: the operator has no argument {unknown[0]!r}, only {', '.join(self.parameters)}"
            )
        self.namespace: dict[str, Any] = {
            "Tensor": Tensor, "SingleNode": nodes.SingleNode, "MultiNode": nodes.MultiNode, "PartNode": PartNode, "new_node": _C.new_node, "edge_of": _C.edge_of,
            "raise_freed": nodes.raise_freed, "raise_modified": nodes.raise_modified, "own_result": nodes.own_result,
            "is_grad_enabled": candelabra.is_grad_enabled, "fit": fit, "like": like,
        }  # fmt: skip
        self.lines: list[str] = []

    def may_be_other(self, name: str) -> bool:
        """Return whether a tensor argument may be a number or None."""
        return self.numbers or self.parameters[name].endswith("?")

    def kept_by(self, formula: Callable[..., Any]) -> list[_Kept]:
        """Return the values that a formula needs, from the names of its parameters."""
        code = formula.__code__
        return [self.kept(name) for name in code.co_varnames[1 : code.co_argcount] if name != "needs"]

    def kept(self, name: str) -> _Kept:
        """Return the value that a parameter of a formula refers to."""
        if name == "result":
            return _Kept(name, "result", "result[0]" if self.results > 1 else "result")
        if name.startswith("result") and name[6:].isdigit():
            return _Kept(name, "result" if name == "result0" else "tensor", f"result[{name[6:]}]")
        kind = self.parameters.get(name)
        if kind is not None:
            if kind.startswith("Tensor") and not kind.endswith(("[]", "[]?")):
                return _Kept(name, "maybe" if self.may_be_other(name) else "tensor", name)
            return _Kept(
                name, "value", f"tuple({name}) if {name}.__class__ is list else {name}" if "[" in kind else name
            )
        for suffix, expression in _SUFFIXES.items():
            argument = name.removesuffix(suffix)
            if argument != name and argument in self.parameters:
                expression = expression.format(argument)
                if self.may_be_other(argument):
                    expression += f" if isinstance({argument}, Tensor) else None"
                return _Kept(name, "value", expression)
        raise ValueError(f"derivative of {self.row.name!r}: nothing is known of the parameter {name!r}")

    def formulas_of(self, inputs: tuple[str, ...]) -> list[tuple[str, Callable[..., Any]]]:
        """Return the named formulas for the gradients of these inputs."""
        if self.row.part is not None:
            return [*self.row.part.items(), ("self", lambda grad, self_shape: None)]
        if self.row.joint is not None:
            return [("joint", self.row.joint)]
        return [(name, self.row.formulas[name]) for name in inputs]

    def write_class(self, class_name: str, inputs: tuple[str, ...]) -> None:
        """Write the node class for the case where at most these inputs need gradients."""
        single = len(inputs) == 1 and self.row.joint is None
        kept: dict[str, _Kept] = {}
        for name, formula in self.formulas_of(inputs):
            self.namespace[f"formula_{name}"] = formula
            kept |= {entry.name: entry for entry in self.kept_by(formula)}
        tensors = [entry for entry in kept.values() if entry.kind != "value"]
        values = [entry for entry in kept.values() if entry.kind == "value"]
        slots = [f"value_{entry.name}" for entry in values]
        if self.row.broadcast:
            slots += [f"like_{name}" for name in inputs]
        write = self.lines.append
        write(f"class {class_name}({'SingleNode' if single else 'MultiNode'}):")
        write(f"    __slots__ = {tuple(slots)!r}")
        write(f"    _saved_names = {tuple(entry.name for entry in tensors)!r}")
        write("    def backward(node, incoming):" if single else "    def backward(node, incoming, edges):")
        if not single:
            write(f"        {', '.join(f'edge_{name}' for name in inputs)}, = edges")
        if tensors:
            write("        saved = node._saved")
            write("        if saved is None: raise_freed(node)")
            write(f"        {', '.join(f'{entry.name}, {entry.name}_version' for entry in tensors)}, = saved")
        optional = not single and len(inputs) != 2
        for entry in tensors:
            guard = f"{entry.name}_version is not None and " if entry.kind == "maybe" or optional else ""
            write(f"        if {guard}{entry.name}._version != {entry.name}_version:")
            own = ", True" if entry.kind == "result" else ""
            write(f"            raise_modified(node, {entry.name}, {entry.name}_version{own})")
        for entry in tensors:
            if entry.kind == "result":
                write(f"        if is_grad_enabled(){f' and {entry.name} is not None' if optional else ''}:")
                write(f"            {entry.name} = own_result({entry.name}, node)")
        if self.row.joint is not None:
            self.write_joint(inputs)
        else:
            for name, formula in self.formulas_of(inputs):
                self.write_gradient(name, formula, single)
        write(
            f"        return grad_{inputs[0]}"
            if single
            else f"        return ({', '.join(f'grad_{name}' for name in inputs)},)"
        )

    def write_part_class(self) -> None:
        """Write the node class of a partial view."""
        part = self.row.part
        assert part is not None
        values = dict.fromkeys(
            name for formula in part.values() for name in formula.__code__.co_varnames[1 : formula.__code__.co_argcount]
        )
        write = self.lines.append
        write("class Node(PartNode):")
        write(f"    __slots__ = {tuple(f'value_{name}' for name in values)!r}")
        for name, formula in part.items():
            self.namespace[f"formula_{name}"] = formula
            first = "whole" if name == "look" else "node.value_self_shape"
            write(f"    def {name}(node{', whole' if name == 'look' else ''}):")
            write(f"        return formula_{name}({self.arguments_of(formula, first)})")

    def arguments_of(self, formula: Callable[..., Any], first: str = "incoming") -> str:
        """Return the argument list for a call of a formula."""
        code = formula.__code__
        names = [first]  # not "grad", because an operator may have an argument of that name
        for name in code.co_varnames[1 : code.co_argcount]:
            names.append(name if name == "needs" or self.kept(name).kind != "value" else f"node.value_{name}")
        return ", ".join(names)

    def write_gradient(self, name: str, formula: Callable[..., Any], single: bool) -> None:
        write = self.lines.append
        indent = "        "
        if not single:
            write(f"        if edge_{name} is None:")
            write(f"            grad_{name} = None")
            write("        else:")
            indent += "    "
        write(f"{indent}grad_{name} = formula_{name}({self.arguments_of(formula)})")
        if self.row.broadcast:
            write(f"{indent}if node.like_{name} is not None: grad_{name} = fit(grad_{name}, node.like_{name})")

    def write_joint(self, inputs: tuple[str, ...]) -> None:
        write = self.lines.append
        assert self.row.joint is not None
        write(f"        needs = ({', '.join(f'edge_{name} is not None' for name in inputs)},)")
        write(
            f"        {', '.join(f'grad_{name}' for name in inputs)}, = formula_joint({self.arguments_of(self.row.joint)})"
        )
        if self.row.broadcast:
            for name in inputs:
                write(f"        if grad_{name} is not None and node.like_{name} is not None:")
                write(f"            grad_{name} = fit(grad_{name}, node.like_{name})")

    def write_node(self, class_name: str, inputs: tuple[str, ...], indent: str) -> None:
        """Write the code of the autograd function that creates a node of this class."""
        single = len(inputs) == 1 and self.row.joint is None
        some = len(inputs) > 2 or self.row.joint is not None  # some inputs may need no gradient
        write = self.lines.append
        write(f"{indent}node = new_node({class_name})")
        if single:
            write(f"{indent}node._edge = edge_{inputs[0]}")
        else:
            write(f"{indent}node._edges = ({', '.join(f'edge_{name}' for name in inputs)},)")
        if self.row.broadcast:
            for name in inputs:
                absent = f"edge_{name} is None or " if some else ""
                write(f"{indent}node.like_{name} = None if {absent}{name}._is_like(result) else like({name})")
        wanted: dict[str, tuple[_Kept, list[str]]] = {}
        for name, formula in self.formulas_of(inputs):
            for entry in self.kept_by(formula):
                wanted.setdefault(entry.name, (entry, []))[1].append(name)
        saved = []
        for entry, wanting in wanted.values():
            if entry.kind == "value":
                write(f"{indent}node.value_{entry.name} = {entry.expression}")
                continue
            conditional = some and self.row.joint is None and len(wanting) < len(inputs)
            condition = " or ".join(f"edge_{name} is not None" for name in wanting)
            if entry.kind == "result":
                source, version = f"{entry.expression}._detached()", f"{entry.expression}._version"
            else:
                source, version = entry.expression, f"{entry.expression}._version"
                if entry.kind == "maybe":
                    condition_version = f"isinstance({entry.expression}, Tensor)"
                    version = f"{version} if {condition_version} else None"
            if conditional:
                source, version = f"{source} if {condition} else None", f"({version}) if {condition} else None"
            saved += [f"({source})" if conditional else source, f"({version})"]
        if saved:
            write(f"{indent}node._saved = ({', '.join(saved)},)")

    def source(self) -> str:
        """Return the complete source: the node classes and the function ``record``."""
        inputs = self.row.inputs
        cases: list[tuple[str, tuple[str, ...]]] = [("Node", inputs)]
        if len(inputs) == 2 and self.row.joint is None:
            cases = [("First", inputs[:1]), ("Second", inputs[1:]), ("Node", inputs)]
        for class_name, case in cases:
            if self.row.part is not None:
                self.write_part_class()
            else:
                self.write_class(class_name, case)
        write = self.lines.append
        write(f"def record(result, {', '.join(self.parameters)}):")
        target = "result[0]" if self.results > 1 else "result"
        if any(kind.startswith("dtype") for kind in self.parameters.values()):
            write(f"    if not ({target}.is_floating_point() or {target}.is_complex()): return result")
        if self.row.may_return_self:
            write(f"    if result is {inputs[0]}: return result")
        for name in inputs:
            write(f"    edge_{name} = edge_of({name})")
        if len(cases) == 3:
            write(f"    if edge_{inputs[1]} is None:")
            self.write_node("First", inputs[:1], "        ")
            write(f"    elif edge_{inputs[0]} is None:")
            self.write_node("Second", inputs[1:], "        ")
            write("    else:")
            self.write_node("Node", inputs, "        ")
        else:
            self.write_node("Node", inputs, "    ")
        write(f"    {target}._set_history(node)")
        write("    return result")
        return "\n".join(self.lines) + "\n"

    def build(self) -> AutogradFunction:
        """Compile the source and return its autograd function."""
        source = self.source()
        filename = f"<candelabra.autograd autograd function of {self.row.name}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        exec(compile(source, filename, "exec"), self.namespace)
        for class_name in ("Node", "First", "Second"):
            made = self.namespace.get(class_name)
            if made is not None:
                made.__name__ = made.__qualname__ = f"{self.row.title}Backward0"
                made.__module__ = "candelabra.autograd"
                _show_saved(made)
        return self.namespace["record"]


def _show_saved(node_class: Any) -> None:
    """Expose saved values under PyTorch's names, such as ``_saved_self`` and ``_saved_dim``.

    Uses properties, because ``__getattr__`` would slow down all attributes of nodes.
    """

    def tensor(name: str) -> property:
        return property(lambda node: node._saved_value(name))

    def raw(position: int) -> property:
        return property(lambda node: node._saved_tensor(node, position))

    def value(slot: str) -> property:
        return property(lambda node: getattr(node, slot))

    for number, name in enumerate(node_class._saved_names):
        setattr(node_class, f"_saved_{name}", tensor(name))
        setattr(node_class, f"_raw_saved_{name}", raw(2 * number))
    for slot in node_class.__slots__:
        if slot.startswith("value_"):
            name = slot.removeprefix("value_")
            setattr(node_class, f"_saved_{name}", value(slot))
            if name.endswith("_shape"):
                setattr(node_class, f"_saved_{name.removesuffix('_shape')}_sym_sizes", value(slot))


def write_autograd_function(name: str) -> _Writer:
    """Return a writer for the autograd function of operator `name`."""
    return _Writer(ROWS[name], OPERATORS[name])


def inputs_that_need_self(name: str) -> tuple[int, ...]:
    """Return the positions of the inputs whose formulas need the old value of the first argument.

    In-place operations copy that value first.
    """
    row = ROWS[name]
    parameters = list(map(_legal, OPERATORS[name].parameters))

    def needs_self(formula: Callable[..., Any]) -> bool:
        return parameters[0] in formula.__code__.co_varnames[1 : formula.__code__.co_argcount]

    if row.joint is not None:
        return tuple(map(parameters.index, row.inputs)) if needs_self(row.joint) else ()
    return tuple(parameters.index(argument) for argument, formula in row.formulas.items() if needs_self(formula))


def _use(name: str, record: AutogradFunction) -> AutogradFunction:
    """Wrap an autograd function in the active modes and install it."""
    for mode in _modes:
        record = mode(record)
    AUTOGRAD_FUNCTIONS[name] = record
    operator = OPERATORS[name]
    if not only_changes(operator):
        operator.autograd_function = record
    return record


def only_changes(operator: Any) -> bool:
    """Return whether the operator's only result is the argument that it changes."""
    return "!)" in operator.schema and operator.result_count == 1


def _lazy(name: str) -> AutogradFunction:
    def first_time(*arguments: Any) -> Any:
        with _changing:
            if _plain[name] is first_time:
                _plain[name] = WRITTEN[name] if name in WRITTEN else write_autograd_function(name).build()
                _use(name, _plain[name])
            record = AUTOGRAD_FUNCTIONS[name]
        return record(*arguments)

    return first_time


def enter_mode(mode: Callable[[AutogradFunction], AutogradFunction]) -> None:
    """Wrap all autograd functions until :func:`leave_mode`."""
    with _changing:
        _modes.append(mode)
        _use_all()


def leave_mode(mode: Callable[[AutogradFunction], AutogradFunction]) -> None:
    """Remove a wrapper from all autograd functions."""
    with _changing:
        _modes.remove(mode)
        _use_all()


def _use_all() -> None:
    for name, record in _plain.items():
        _use(name, record)


def install() -> None:
    """Install autograd functions for all operators in the table."""
    for name in (*ROWS, *WRITTEN):
        operator = OPERATORS.get(name)
        if operator is None:
            raise RuntimeError(
                f"candelabra-autograd has a formula for {name!r}, which this candelabra-tensor-core does not know"
            )
        _plain[name] = _lazy(name)
        _use(name, _plain[name])
