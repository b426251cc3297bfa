"""Making the nodes of an ONNX graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import candelabra
import candelabra.export
from candelabra import Tensor
from candelabra.export.interface import Node, Size

from .errors import UnsupportedOperatorError
from .geometry import Place

INT64 = candelabra.int64
FLOAT = candelabra.float32
LARGEST = (1 << 63) - 1
#: Constants of more elements are initializers, not nodes.
_MOST_IN_NODES = 64
#: ONNX's numbers of dtypes, `onnx.TensorProto.DataType`.
ELEMENT_TYPES = {
    candelabra.float32: 1, candelabra.uint8: 2, candelabra.int8: 3, candelabra.uint16: 4, candelabra.int16: 5, candelabra.int32: 6,
    candelabra.int64: 7, candelabra.bool: 9, candelabra.float16: 10, candelabra.float64: 11, candelabra.uint32: 12,
    candelabra.uint64: 13, candelabra.bfloat16: 16, candelabra.float8_e4m3fn: 17, candelabra.float8_e5m2: 19,
}  # fmt: skip


@dataclass(eq=False)
class Value:
    """A tensor argument of an operator."""

    dtype: candelabra.dtype
    #: A number, or a `Size` if it differs from call to call.
    shape: tuple[int | Size, ...]
    #: The sizes in the recorded call.
    example: tuple[int, ...] = ()
    #: The name in the ONNX graph; empty for a constant that has none yet.
    name: str = ""
    #: The tensor of a constant.
    tensor: Tensor | None = None
    #: How often the memory had been written to when this was computed.
    version: int = 0

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


@dataclass
class OnnxNode:
    """A node of the ONNX graph."""

    kind: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]


#: What a rule may give as an input of a node: a value, a name, or nothing.
Operand = Value | str | None
#: A size: a number, a formula, or the name of an int64 tensor with one element.
AnySize = int | Size | str


class Builder:
    """The nodes and the constants of an ONNX graph.

    Parameters
    ----------
    opset
        The version of ONNX's operator set.
    name_of
        Returns the name of a value of the program, given its number, for its sizes.
    """

    def __init__(self, opset: int, name_of: Callable[[int], str]) -> None:
        self.opset = opset
        self.nodes: list[OnnxNode] = []
        self.constants: dict[str, Tensor] = {}
        #: The call that is converted, and the places of its results.
        self.node = Node("", [], {}, [], True)
        self.results: list[Place] = []
        self._name_of = name_of
        self._names: set[str] = set()
        self._made: dict[Any, str] = {}

    # ---- names and nodes

    @property
    def result(self) -> Place:
        """The place of the first result of the call."""
        return self.results[0]

    def new_name(self, stem: str) -> str:
        """Return a name that nothing has yet."""
        name, number = stem, 0
        while name in self._names:
            number += 1
            name = f"{stem}_{number}"
        self._names.add(name)
        return name

    def refuse(self, reason: str) -> NoReturn:
        """Raise because ONNX cannot express the call."""
        place = f"{self.node.file}:{self.node.line}" if self.node.file else ""
        raise UnsupportedOperatorError(self.node.op, self.opset, place=place, reason=reason)

    def op(self, kind: str, *inputs: Operand, **attributes: Any) -> str:
        """Add a node with one result, and return its name."""
        return self.several(kind, 1, *inputs, **attributes)[0]

    def several(self, kind: str, count: int, *inputs: Operand, **attributes: Any) -> list[str]:
        """Add a node with several results, and return their names."""
        names = [self.name(one) for one in inputs]
        while names and not names[-1]:
            names.pop()
        given = {key: value for key, value in attributes.items() if value is not None}
        outputs = [self.new_name(f"{self.node.op.strip('_')}_{kind.lower()}") for _ in range(count)]
        self.nodes.append(OnnxNode(kind, names, outputs, given))
        return outputs

    def name(self, operand: Operand) -> str:
        """Return the name of an operand; a constant becomes a part of the graph."""
        if operand is None or isinstance(operand, str):
            return operand or ""
        if not operand.name:
            assert operand.tensor is not None
            operand.name = self.tensor(operand.tensor)
        return operand.name

    # ---- constants

    def tensor(self, tensor: Tensor) -> str:
        """Return the name of a constant with the values of a tensor."""
        tensor = tensor.detach().clone().contiguous()
        if tensor.numel() > _MOST_IN_NODES:
            name = self.new_name("constant")
            self.constants[name] = tensor
            return name
        key = (tensor.dtype, tuple(tensor.shape), tensor.reshape(-1).view(candelabra.uint8).numpy().tobytes())
        if key not in self._made:
            name = self._made[key] = self.new_name("constant")
            self.nodes.append(OnnxNode("Constant", [], [name], {"value": tensor}))
        return self._made[key]

    def constant(self, value: Any, dtype: candelabra.dtype = INT64) -> str:
        """Return the name of a constant: a number, or a list of numbers."""
        return self.tensor(candelabra.tensor(value, dtype=dtype))

    def as_dtype(self, value: Any, dtype: candelabra.dtype) -> str:
        """Return the name of a value, a number or a `Size` as a tensor of a dtype."""
        if isinstance(value, Value):
            return self.cast(value, dtype)
        if isinstance(value, Size):
            return self.cast(self.number(value), dtype, INT64)
        return self.constant(value, dtype)

    def cast(self, value: Operand, dtype: candelabra.dtype, have: candelabra.dtype | None = None) -> str:
        """Return the name of a value in a dtype; `have` is that of a value which is a name."""
        if isinstance(value, Value):
            have = value.dtype
        if have is dtype:
            return self.name(value)
        if dtype not in ELEMENT_TYPES:
            self.refuse(f"ONNX has no tensors of dtype {dtype}")
        if isinstance(value, Value) and value.tensor is not None:
            return self.tensor(value.tensor.to(dtype))
        return self.op("Cast", value, to=ELEMENT_TYPES[dtype])

    # ---- sizes

    def static(self, size: Any, what: str) -> int:
        """Return a size that must not differ from call to call."""
        if not isinstance(size, int):
            self.refuse(f"{what} differs from call to call; export with this size fixed")
        return size

    def size(self, size: AnySize) -> str:
        """Return the name of a size, as a tensor with one element."""
        if isinstance(size, str):
            return size
        if isinstance(size, int):
            return self.constant([size])
        names = [self._dimension(number, dim) for number, dim in size.of]
        key = ("size", size._replace(is_float=False))
        if key not in self._made:
            name = names[0]
            for other in names[1:]:
                name = self.op("Mul", name, other)
            rounding = size.divisor - 1 if size.rounds_up else 0
            for kind, number, neutral in (
                ("Mul", size.factor, 1),
                ("Add", rounding, 0),
                ("Div", size.divisor, 1),
                ("Add", size.offset, 0),
            ):
                if number != neutral:
                    name = self.op(kind, name, self.constant([number]))
            self._made[key] = name
        return self._made[key]

    def _dimension(self, number: int, dim: int) -> str:
        name = self._name_of(number)
        key = ("dimension", name, dim)
        if key not in self._made:
            self._made[key] = self.op("Shape", name, start=dim, end=dim + 1)
        return self._made[key]

    def sizes(self, sizes: Sequence[AnySize]) -> str:
        """Return the name of several sizes, as a tensor with one dimension."""
        if all(isinstance(size, int) for size in sizes):
            return self.constant(list(sizes))
        if len(sizes) == 1:
            return self.size(sizes[0])
        parts: list[str] = []
        numbers: list[int] = []
        for size in sizes:
            if isinstance(size, int):
                numbers.append(size)
                continue
            if numbers:
                parts.append(self.constant(numbers))
                numbers = []
            parts.append(self.size(size))
        if numbers:
            parts.append(self.constant(numbers))
        return self.op("Concat", *parts, axis=0)

    def plus(self, a: AnySize, b: AnySize) -> AnySize:
        """Return the sum of two sizes."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if isinstance(b, int) and isinstance(a, Size):
            return a._replace(offset=a.offset + b)
        return self.op("Add", self.size(a), self.size(b))

    def times(self, sizes: Sequence[AnySize]) -> AnySize:
        """Return the product of sizes."""
        total: AnySize = 1
        for size in sizes:
            if isinstance(total, int) and isinstance(size, int):
                total *= size
            elif total == 1:
                total = size
            else:
                total = self.op("Mul", self.size(total), self.size(size))
        return total

    def number(self, size: AnySize) -> str:
        """Return the name of a size, as an int64 tensor without dimensions."""
        return self.constant(size) if isinstance(size, int) else self.squeeze(self.size(size), 0)

    # ---- common operators

    def reshape(self, value: Operand, sizes: Sequence[AnySize]) -> str:
        """Reshape; one size may be -1."""
        if sum(not isinstance(size, int) for size in sizes) == 1 and not any(
            isinstance(size, int) and size <= 0 for size in sizes
        ):
            # The only size that differs follows from the number of elements.
            sizes = [size if isinstance(size, int) else -1 for size in sizes]
        return self.op("Reshape", value, self.sizes(sizes), allowzero=1 if 0 in sizes else None)

    def transpose(self, value: Operand, order: Sequence[int]) -> str:
        """Permute the dimensions."""
        return (
            self.name(value)
            if list(order) == list(range(len(order)))
            else self.op("Transpose", value, perm=list(order))
        )

    def expand(self, value: Operand, sizes: Sequence[AnySize]) -> str:
        """Broadcast to sizes."""
        return self.op("Expand", value, self.sizes(sizes))

    def unsqueeze(self, value: Operand, *dims: int) -> str:
        """Insert dimensions of size 1."""
        return self.op("Unsqueeze", value, self.constant(list(dims)))

    def squeeze(self, value: Operand, *dims: int) -> str:
        """Remove dimensions of size 1."""
        return self.op("Squeeze", value, self.constant(list(dims)))

    def slice(self, value: Operand, dim: int, start: AnySize, end: AnySize, step: int = 1) -> str:
        """Take a part of a dimension."""
        steps = self.constant([step]) if step != 1 else None
        return self.op("Slice", value, self.size(start), self.size(end), self.constant([dim]), steps)
