"""From the nodes of a file to Python's values."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

from candelabra import Tensor

from ..nn.base import LegacyObject
from .classes import Conversion, class_of, new_object, set_fields
from .nodes import T7ReaderException, Table, Torch7Object, TorchNode
from .reading import Reader
from .sources import open_source


def load_lua(
    file: str | os.PathLike[str] | BinaryIO,
    unknown_classes: bool = False,
    *,
    long_size: int = 8,
    ascii: bool | None = None,
) -> Any:
    """Read a file that Torch 7 has written.

    Tensors become tensors, those of the GPU on the processor; storages become vectors. Tables
    become lists if their keys are 1, 2, 3 and so on, and dicts otherwise. Modules and criteria
    become those of :mod:`candelabra.legacy.nn`, with dimensions and indices counted from zero.
    Objects that are in the file once are one object. Functions are refused: nothing of a file is
    run.

    Parameters
    ----------
    file
        A path, or a file opened for reading bytes.
    unknown_classes
        Whether objects of other classes become :class:`Torch7Object` instead of an error.
    long_size
        The bytes of a C long where the file was written: 8, or 4 on 32-bit machines and Windows.
    ascii
        Whether the file is text. By default, its first byte tells.

    Returns
    -------
    object
        The value.

    Raises
    ------
    T7ReaderException
        If the file is damaged, or has a function or a class that is not known.
    """
    if long_size not in (4, 8):
        raise ValueError(f"a long has 4 or 8 bytes, got {long_size}")
    if isinstance(file, (str, os.PathLike)):
        with open(file, "rb") as opened:
            data = opened.read()
    else:
        data = file.read()
    root = Reader(open_source(memoryview(data), long_size, ascii)).read()
    return _Builder(unknown_classes, Conversion(len(data))).build(root)


class _Builder:
    """Convert nodes, each once."""

    def __init__(self, unknown_classes: bool, conversion: Conversion) -> None:
        self.unknown_classes = unknown_classes
        self.conversion = conversion
        self.built: dict[int, Any] = {}

    def build(self, node: Any) -> Any:
        if not isinstance(node, (Table, TorchNode)):
            return node
        if id(node) not in self.built:
            if isinstance(node, Table):
                self._build_table(node)
            else:
                self._build_object(node)
        return self.built[id(node)]

    def _build_table(self, node: Table) -> None:
        keys = [_key(key) for key, _ in node.pairs]
        numbers = {key for key in keys if isinstance(key, int) and not isinstance(key, bool)}
        if keys and len(numbers) == len(keys) and numbers == set(range(1, len(keys) + 1)):
            # The list is known before its entries: one of them can be the table itself.
            items: list[Any] = [None] * len(keys)
            self.built[id(node)] = items
            for key, (_, value) in zip(keys, node.pairs):
                items[key - 1] = self.build(value)
            return
        mapping: dict[Any, Any] = {}
        self.built[id(node)] = mapping
        for key, (_, value) in zip(keys, node.pairs):
            mapping[key] = self.build(value)

    def _build_object(self, node: TorchNode) -> None:
        found = class_of(node.typename)
        if found is None:
            if not self.unknown_classes:
                raise T7ReaderException(
                    f"the class {node.typename!r} is not known: load_lua(file, unknown_classes=True) reads its fields"
                )
            unknown = self.built[id(node)] = Torch7Object(node.typename)
            unknown.fields = self.build(node.content)
            return
        created: LegacyObject = new_object(found)
        self.built[id(node)] = created
        fields = self.build(node.content)
        if not isinstance(fields, dict):
            raise T7ReaderException(f"an {node.typename} without its fields")
        set_fields(created, fields, self.conversion)


def _key(key: Any) -> Any:
    if isinstance(key, (Table, TorchNode, Tensor)) or key is None or key != key:
        raise T7ReaderException("the key of a table is neither a number nor a string")
    return key
