"""What a file consists of, before it becomes Python's values."""

from __future__ import annotations

from typing import Any

import candelabra

# Type codes in front of each object.
NIL, NUMBER, STRING, TABLE, TORCH, BOOLEAN = range(6)
#: Functions, of three versions of the format. Their bytecode is Lua's and is not read.
FUNCTIONS = (6, 7, 8)

#: The types of elements: struct's code, and the dtype.
ELEMENTS = {
    "Byte": ("B", candelabra.uint8),
    "Char": ("b", candelabra.int8),
    "Short": ("h", candelabra.int16),
    "Int": ("i", candelabra.int32),
    "Long": ("q", candelabra.int64),
    "Float": ("f", candelabra.float32),
    "Double": ("d", candelabra.float64),
    "Half": ("e", candelabra.float16),
}
#: In text, these are raw bytes.
RAW_IN_TEXT = ("Byte", "Char")


class T7ReaderException(RuntimeError):
    """A file is damaged, or has something that cannot be read."""


class Torch7Object:
    """An object of a class that is not known here.

    Attributes
    ----------
    typename
        Torch 7's name of the class.
    fields
        What the file has of the object: usually a dict.
    """

    def __init__(self, typename: str, fields: Any = None) -> None:
        self.typename = typename
        self.fields = fields

    def __repr__(self) -> str:
        return f"Torch7Object({self.typename!r})"


class Table:
    """A Lua table: pairs in the order of the file."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Any, Any]] = []


class TorchNode:
    """An object of a class other than tensors and storages."""

    def __init__(self, typename: str) -> None:
        self.typename = typename
        self.content: Any = None


def element_of(class_name: str) -> tuple[str, str] | None:
    """Return the type of elements and ``'Tensor'`` or ``'Storage'``, or None for another class.

    Tensors on the GPU are read as those on the processor: ``torch.CudaTensor`` as floats.
    """
    prefix, _, name = class_name.partition(".")
    if prefix != "torch":
        return None
    for kind in ("Tensor", "Storage"):
        if name.endswith(kind):
            stem = name.removesuffix(kind)
            if stem.startswith("Cuda"):
                stem = stem.removeprefix("Cuda") or "Float"
            return (stem, kind) if stem in ELEMENTS else None
    return None
