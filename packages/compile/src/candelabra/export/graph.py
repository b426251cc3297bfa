"""The graph of a program: operators, their arguments and their results, as plain data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import candelabra
from candelabra import Tensor


class ExportError(RuntimeError):
    """A program cannot be exported; the message says why, and where in the program."""


class Ref(NamedTuple):
    """A value, in the arguments of an operator."""

    value: int


class Size(NamedTuple):
    """A number that follows from sizes: ``product * factor // divisor + offset``.

    The quotient is rounded down, or up.
    """

    #: The sizes that are multiplied: values and their dimensions.
    of: tuple[tuple[int, int], ...]
    factor: int = 1
    divisor: int = 1
    offset: int = 0
    rounds_up: bool = False
    is_float: bool = False

    def evaluate(self, shape_of: Callable[[int], Sequence[int]]) -> int | float:
        """Return the number, given the shapes of values."""
        product = math.prod(shape_of(value)[dim] for value, dim in self.of)
        scaled = product * self.factor
        number = (-(-scaled // self.divisor) if self.rounds_up else scaled // self.divisor) + self.offset
        return float(number) if self.is_float else number


@dataclass
class Node:
    """A call of an operator."""

    op: str
    args: list[Any]
    kwargs: dict[str, Any]
    #: The values of its results, or None for those that are None.
    outputs: list[int | None]
    #: Whether it returns a tensor, and not a tuple or list of them.
    is_single: bool
    file: str = ""
    line: int = 0

    def place(self) -> str:
        """Return the operator with its line, for messages."""
        return f"{self.op} ({self.file}:{self.line})" if self.file else self.op


@dataclass
class State:
    """A parameter, a buffer or a constant of a program."""

    value: int
    kind: str
    name: str
    tensor: Tensor
    is_persistent: bool = True


@dataclass
class Symbol:
    """A size that differs from call to call."""

    name: str
    least: int
    most: int | None

    def allows(self, size: int) -> bool:
        """Return whether the size may have this value."""
        return size >= self.least and (self.most is None or size <= self.most)


class Scaled(NamedTuple):
    """The size of an input: ``symbol * factor + offset``."""

    symbol: str
    factor: int = 1
    offset: int = 0


@dataclass
class Input:
    """A leaf of the arguments: a tensor, or a value that each call must repeat."""

    name: str
    value: int | None
    dtype: candelabra.dtype | None = None
    sizes: list[int | Scaled] = field(default_factory=list)
    constant: Any = None


@dataclass
class Described:
    """What is known of a value: its dtype, and its sizes in the recording."""

    dtype: candelabra.dtype
    sizes: tuple[int, ...]


@dataclass
class Graph:
    """A program."""

    name: str
    device: candelabra.device
    inputs: list[Input]
    states: list[State]
    nodes: list[Node]
    #: Leaves of the result: Ref, Size or plain values.
    outputs: list[Any]
    symbols: dict[str, Symbol]
    described: dict[int, Described]
    #: The names of the arguments that can be given by position or by name.
    parameter_names: list[str]
    in_spec: Any
    out_spec: Any
    #: The values that the program writes to, of those from before the call.
    written: list[int] = field(default_factory=list)


def walk(argument: Any) -> Iterator[Any]:
    """Iterate over the leaves of an argument."""
    if type(argument) is list:
        for entry in argument:
            yield from walk(entry)
    else:
        yield argument


def uses(arguments: Sequence[Any]) -> Iterator[int]:
    """Iterate over the values that arguments need."""
    for leaf in walk(list(arguments)):
        if type(leaf) is Ref:
            yield leaf.value
        elif type(leaf) is Size:
            yield from (value for value, _ in leaf.of)


def replaced(argument: Any, function: Callable[[Any], Any]) -> Any:
    """Return an argument with `function` applied to its leaves."""
    if type(argument) is list:
        return [replaced(entry, function) for entry in argument]
    return function(argument)


def find_operator(name: str) -> Any:
    """Return the operator of a name, or None."""
    found: Any = candelabra.ops
    for part in name.split("::"):
        found = getattr(found, part, None)
    return found if isinstance(found, candelabra._C.Operator) else None
