"""Sizes that differ from call to call: `Dim`, and what ``dynamic_shapes`` says of each argument."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from candelabra import Tensor, pytree

from .graph import ExportError, Scaled, Symbol


class _Hint(enum.Enum):
    AUTO = "AUTO"
    DYNAMIC = "DYNAMIC"
    STATIC = "STATIC"

    def __repr__(self) -> str:
        return f"Dim.{self.value}"


class Dim:
    """A size that differs from call to call, for ``dynamic_shapes`` of `export`.

    Dimensions with the same `Dim` have the same size. ``2 * dim`` and ``dim + 1`` are sizes, too.

    Parameters
    ----------
    name
        Its name, an identifier.
    min, max
        The least and the greatest size. By default, sizes from 0.

    Raises
    ------
    ValueError
        If the name is no identifier, or no size is allowed.

    Examples
    --------
    >>> from candelabra.export import Dim
    >>> Dim("batch", min=2, max=64)
    Dim('batch', min=2, max=64)
    """

    AUTO = _Hint.AUTO
    DYNAMIC = _Hint.DYNAMIC
    STATIC = _Hint.STATIC

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"Dim: the name must be an identifier, but got {name!r}")
        self.__name__ = name
        self.min = 0 if min is None else min
        self.max = max
        self.factor, self.offset = 1, 0
        if self.min < 0 or (max is not None and max < self.min):
            raise ValueError(f"Cannot create Dim with inconsistent min={min}, max={max}")

    def __repr__(self) -> str:
        limits = (f", min={self.min}" if self.min else "") + (f", max={self.max}" if self.max is not None else "")
        text = f"Dim({self.__name__!r}{limits})"
        text = f"{self.factor}*{text}" if self.factor != 1 else text
        return f"{text} + {self.offset}" if self.offset else text

    def _derived(self, factor: int, offset: int) -> Dim:
        made = Dim(self.__name__, min=self.min, max=self.max)
        made.factor, made.offset = self.factor * factor, self.offset * factor + offset
        return made

    def __mul__(self, other: int) -> Dim:
        if type(other) is not int or other <= 0:
            raise NotImplementedError(
                f"Attempted to multiply {other} with {self.__name__}, where a positive integer was expected"
            )
        return self._derived(other, 0)

    __rmul__ = __mul__

    def __add__(self, other: int) -> Dim:
        if type(other) is not int:
            raise NotImplementedError(f"Attempted to add {other} to {self.__name__}, where an integer was expected")
        return self._derived(1, other)

    __radd__ = __add__

    def __sub__(self, other: int) -> Dim:
        return self + -other


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Return several `Dim` objects of the same limits.

    Examples
    --------
    >>> from candelabra.export import dims
    >>> dims("height", "width")
    (Dim('height'), Dim('width'))
    """
    return tuple(Dim(name, min=min, max=max) for name in names)


class Shapes(NamedTuple):
    """Which sizes of the tensors in the arguments differ, leaf by leaf."""

    #: By leaf: the sizes that are not those of the example, by dimension.
    by_leaf: list[dict[int, Scaled]]
    symbols: dict[str, Symbol]
    #: The values that the symbols have in the example.
    example: dict[str, int]
    #: Those that become fixed sizes if the program does not work with others.
    optional: set[str]
    #: Those of ``Dim.DYNAMIC``: equal ones become one if the program does not work without.
    joinable: set[str]


def read_shapes(arguments: dict[str, Any], leaves: list[Any], specification: Any) -> Shapes:
    """Return what ``dynamic_shapes`` says.

    Parameters
    ----------
    arguments
        The arguments by name.
    leaves
        The tensors and values in them, in their order.
    specification
        ``dynamic_shapes``: by the names of the arguments, or in their order.

    Raises
    ------
    ExportError
        If it does not fit the arguments.
    """
    shapes = Shapes([{} for _ in leaves], {}, {}, set(), set())
    if specification is None:
        return shapes
    if isinstance(specification, list | tuple):
        if len(specification) != len(arguments):
            raise ExportError(
                f"dynamic_shapes has {len(specification)} entries for the {len(arguments)} arguments {list(arguments)}"
            )
        specification = dict(zip(arguments, specification, strict=True))
    if not isinstance(specification, dict):
        raise ExportError(f"dynamic_shapes must be a dict, a tuple or a list, but got {type(specification).__name__}")
    unknown = [name for name in specification if name not in arguments]
    if unknown:
        raise ExportError(f"dynamic_shapes names {unknown}, but the arguments are {list(arguments)}")
    at = 0
    for name, argument in arguments.items():
        at = _read(shapes, at, argument, specification.get(name), name)
    return shapes


def _read(shapes: Shapes, at: int, argument: Any, entry: Any, name: str) -> int:
    """Read the entry of an argument, whose first leaf is number `at`; return that of the next."""
    if isinstance(argument, Tensor):
        for dim, size in _by_dimension(argument, entry, name):
            _take(shapes, at, dim, argument.shape[dim], size, name)
        return at + 1
    children, spec = pytree.tree_flatten(argument, lambda node: node is not argument)
    if spec.is_leaf():
        if entry is not None:
            raise ExportError(f"dynamic_shapes has sizes for {name}, which is no tensor")
        return at + 1
    if entry is None:
        entries = [None] * len(children)
    elif isinstance(argument, dict) and isinstance(entry, dict):
        entries = [entry.get(key) for key in spec.context]
    elif isinstance(entry, list | tuple) and len(entry) == len(children):
        entries = list(entry)
    else:
        raise ExportError(f"dynamic_shapes of {name} has another form than the argument")
    for number, (child, one) in enumerate(zip(children, entries, strict=True)):
        at = _read(shapes, at, child, one, f"{name}[{number}]")
    return at


def _by_dimension(tensor: Tensor, entry: Any, name: str) -> list[tuple[int, Any]]:
    if entry is None:
        return []
    if isinstance(entry, list | tuple):
        if len(entry) != tensor.ndim:
            raise ExportError(f"dynamic_shapes has {len(entry)} sizes for {name}, which has {tensor.ndim} dimensions")
        return list(enumerate(entry))
    if not isinstance(entry, dict):
        raise ExportError(f"dynamic_shapes of the tensor {name} must be a dict, a tuple or a list")
    for dim in entry:
        if type(dim) is not int or not -tensor.ndim <= dim < tensor.ndim:
            raise ExportError(f"dynamic_shapes names dimension {dim!r} of {name}, which has {tensor.ndim} dimensions")
    return [(dim % tensor.ndim, size) for dim, size in entry.items()]


def _take(shapes: Shapes, leaf: int, dim: int, size: int, wanted: Any, name: str) -> None:
    if wanted is None or wanted is Dim.STATIC:
        return
    if type(wanted) is int:
        if wanted != size:
            raise ExportError(f"dynamic_shapes says {wanted} for dimension {dim} of {name}, whose size is {size}")
        return
    if isinstance(wanted, _Hint):
        symbol = Symbol(f"s{size}", 0, None) if wanted is Dim.AUTO else Symbol(f"d{leaf}_{dim}", 0, None)
        scaled, value = Scaled(symbol.name), size
        (shapes.optional if wanted is Dim.AUTO else shapes.joinable).add(symbol.name)
    elif isinstance(wanted, Dim):
        symbol = Symbol(wanted.__name__, wanted.min, wanted.max)
        scaled = Scaled(symbol.name, wanted.factor, wanted.offset)
        value, rest = divmod(size - wanted.offset, wanted.factor)
        if rest or value < 0:
            raise ExportError(f"dimension {dim} of {name} has size {size}, which is not {wanted!r}")
    else:
        raise ExportError(f"dynamic_shapes has {wanted!r} for dimension {dim} of {name}; it takes Dim, int or None")
    known = shapes.example.setdefault(symbol.name, value)
    if known != value:
        raise ExportError(
            f"{symbol.name} is {known} and {value} in the example; dimension {dim} of {name} needs another Dim"
        )
    if not symbol.allows(value):
        raise ExportError(f"{symbol.name} is {value} in the example, outside of {symbol.least} to {symbol.most}")
    shapes.symbols[symbol.name] = symbol
    shapes.by_leaf[leaf][dim] = scaled
