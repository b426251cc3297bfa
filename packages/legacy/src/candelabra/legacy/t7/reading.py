"""The grammar of Torch 7's files."""

from __future__ import annotations

import re
from typing import Any

import candelabra
from candelabra import Tensor

from .nodes import (
    BOOLEAN,
    ELEMENTS,
    FUNCTIONS,
    NIL,
    NUMBER,
    STRING,
    TABLE,
    TORCH,
    T7ReaderException,
    Table,
    TorchNode,
    element_of,
)
from .sources import Source

#: Tables and objects within each other. Networks need about three for each container.
_DEEPEST = 150
_MOST_DIMENSIONS = 64
#: Torch 7 has 64-bit sizes.
_MOST_ELEMENTS = 2**62
_CLASS_NAME = re.compile(r"[A-Za-z_][\w.\-]{0,200}\Z", re.ASCII)


class Reader:
    """Read the objects of a file into nodes: tables, tensors, numbers, strings, and objects.

    An object with the number of one that was read before is that one.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.objects: dict[int, Any] = {}
        self.depth = 0

    def read(self) -> Any:
        """Return the next object."""
        code = self.source.integer()
        if code == NIL:
            return None
        if code == NUMBER:
            value = self.source.double()
            return int(value) if value.is_integer() and abs(value) < 2**53 else value
        if code == BOOLEAN:
            return self.source.integer() == 1
        if code == STRING:
            return _decoded(self.source.text(self.source.integer()))
        if code in FUNCTIONS:
            raise T7ReaderException("the file has a function of Lua, which is code and is not read")
        if code not in (TABLE, TORCH):
            raise T7ReaderException(f"{code} is not the code of a type: this is no file of Torch 7, or it is damaged")
        return self._numbered(code)

    def _numbered(self, code: int) -> Any:
        index = self.source.integer()
        if index in self.objects:
            known = self.objects[index]
            if isinstance(known, Table) != (code == TABLE):
                raise T7ReaderException(f"object {index} is referred to as something that it is not")
            return known
        self.depth += 1
        if self.depth > _DEEPEST:
            raise T7ReaderException(f"objects are within each other more than {_DEEPEST} deep")
        value = self._table(index) if code == TABLE else self._object(index)
        self.depth -= 1
        return value

    def _table(self, index: int) -> Table:
        size = self.source.integer()
        if size < 0:
            raise T7ReaderException(f"a table of {size} entries")
        table = self.objects[index] = Table()
        for _ in range(size):
            key = self.read()
            table.pairs.append((key, self.read()))
        return table

    def _object(self, index: int) -> Any:
        name = self._name()
        if name.startswith("V "):
            name = self._name()
        # Older files have no version in front.
        if not _CLASS_NAME.match(name):
            raise T7ReaderException(f"{name[:40]!r} is not the name of a class")
        element = element_of(name)
        if element is not None:
            stem, kind = element
            value: Any = self._tensor(index, stem) if kind == "Tensor" else self._storage(index, stem)
            return value
        node = self.objects[index] = TorchNode(name)
        node.content = self.read()
        return node

    def _name(self) -> str:
        length = self.source.integer()
        if not 0 < length <= 200:
            raise T7ReaderException(f"a class whose name has {length} characters")
        return self.source.text(length).decode("latin-1")

    def _storage(self, index: int, stem: str) -> Tensor:
        storage = self.objects[index] = self.source.elements(stem, self.source.long())
        return storage

    def _tensor(self, index: int, stem: str) -> Tensor:
        dimensions = self.source.integer()
        if not 0 <= dimensions <= _MOST_DIMENSIONS:
            raise T7ReaderException(f"a tensor of {dimensions} dimensions")
        sizes, strides = self.source.longs(dimensions), self.source.longs(dimensions)
        offset = self.source.long() - 1
        storage = self.read()
        dtype = ELEMENTS[stem][1]
        if storage is None or not dimensions:
            tensor = candelabra.empty(0, dtype=dtype)
        else:
            if not isinstance(storage, Tensor) or storage.dim() != 1 or storage.dtype != dtype:
                raise T7ReaderException(f"a {stem}Tensor without a {stem}Storage")
            _check_bounds(sizes, strides, offset, storage.numel())
            # What is never stepped over can have any stride in the file.
            steps = [1 if size == 1 else stride for size, stride in zip(sizes, strides)]
            tensor = storage.as_strided(sizes, steps, offset)
        self.objects[index] = tensor
        return tensor


def _check_bounds(sizes: list[int], strides: list[int], offset: int, elements: int) -> None:
    """Check that a tensor lies within its storage."""
    count, last = 1, offset
    for size, stride in zip(sizes, strides):
        # A tensor without elements has no dimensions.
        if size < 1 or stride < 0:
            raise T7ReaderException("a tensor with a size of zero, or a negative size or stride")
        count *= size
        last += (size - 1) * stride
    # With a stride of zero, a tensor can have more elements than its storage.
    if offset < 0 or count > _MOST_ELEMENTS or last >= elements:
        raise T7ReaderException(
            f"a tensor of sizes {sizes[:8]} and strides {strides[:8]} is not within a storage of {elements} elements"
        )


def _decoded(text: bytes) -> str | bytes:
    """Return a string; bytes where it is not UTF-8, since Lua's strings have any bytes."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text
