"""Write values as Torch 7's files."""

from __future__ import annotations

import os
import struct
from typing import Any, BinaryIO

import candelabra
from candelabra import Tensor

from ..nn.base import LegacyObject
from .classes import fields_of
from .nodes import BOOLEAN, ELEMENTS, NIL, NUMBER, RAW_IN_TEXT, STRING, TABLE, TORCH

_STEMS = {dtype: stem for stem, (_, dtype) in ELEMENTS.items()}


def save_lua(value: Any, file: str | os.PathLike[str] | BinaryIO, *, ascii: bool = False) -> None:
    """Write a value such that Torch 7 and :func:`load_lua` can read it.

    Parameters
    ----------
    value
        None, numbers, strings, tensors, modules and criteria, and lists, tuples and dicts of them.
        Tensors that share memory share it in the file.
    file
        A path, or a file opened for writing bytes.
    ascii
        Whether to write text.

    Raises
    ------
    TypeError
        If Torch 7 has nothing like a value.
    """
    writer = _Writer(ascii)
    writer.write(value)
    data = b"".join(writer.parts)
    if isinstance(file, (str, os.PathLike)):
        with open(file, "wb") as opened:
            opened.write(data)
    else:
        file.write(data)


class _Writer:
    def __init__(self, ascii: bool) -> None:
        self.ascii = ascii
        self.parts: list[bytes] = []
        self.numbers: dict[Any, int] = {}
        #: Objects keep their address while they are here.
        self.kept: list[Any] = []

    def _number(self, code: str, *values: Any) -> None:
        if not self.ascii:
            self.parts.append(struct.pack(f"<{len(values)}{code}", *values))
        elif values:
            self.parts.append(" ".join(map(_text, values)).encode() + b"\n")

    def _string(self, text: bytes) -> None:
        self._number("i", len(text))
        self.parts.append(text + b"\n" if self.ascii and text else text)

    def write(self, value: Any) -> None:
        if value is None:
            self._number("i", NIL)
        elif isinstance(value, bool):
            self._number("i", BOOLEAN)
            self._number("i", int(value))
        elif isinstance(value, (int, float)):
            self._number("i", NUMBER)
            self._number("d", float(value))
        elif isinstance(value, (str, bytes)):
            self._number("i", STRING)
            self._string(value.encode() if isinstance(value, str) else value)
        elif isinstance(value, Tensor):
            self._write_tensor(value)
        elif isinstance(value, LegacyObject):
            if self._begin(TORCH, id(value), value, f"nn.{type(value).__name__}"):
                self.write(fields_of(value))
        elif isinstance(value, (list, tuple)):
            self._write_table(value, dict(enumerate(value, 1)))
        elif isinstance(value, dict):
            self._write_table(value, value)
        else:
            raise TypeError(f"Torch 7 has nothing like {type(value).__name__}")

    def _begin(self, code: int, key: Any, value: Any, class_name: str | None) -> bool:
        """Write an object's number; return whether its content follows."""
        self._number("i", code)
        known = key in self.numbers
        if not known:
            self.numbers[key] = len(self.numbers) + 1
            self.kept.append(value)
        self._number("i", self.numbers[key])
        if not known and class_name is not None:
            self._string(b"V 1")
            self._string(class_name.encode())
        return not known

    def _write_table(self, value: Any, pairs: dict[Any, Any]) -> None:
        if self._begin(TABLE, id(value), value, None):
            self._number("i", len(pairs))
            for key, item in pairs.items():
                self.write(key)
                self.write(item)

    def _write_tensor(self, tensor: Tensor) -> None:
        stem = _STEMS.get(tensor.dtype)
        if stem is None:
            raise TypeError(f"Torch 7 has no tensors of {tensor.dtype}")
        if not self._begin(TORCH, id(tensor), tensor, f"torch.{stem}Tensor"):
            return
        tensor = tensor.detach().cpu()
        if not tensor.numel() or not tensor.dim():
            # Torch 7 has neither scalars nor sizes of zero.
            tensor = tensor.reshape(-1) if tensor.numel() else candelabra.empty(0, dtype=tensor.dtype)
        dimensions = tensor.dim() if tensor.numel() else 0
        self._number("i", dimensions)
        if dimensions:
            self._number("q", *tensor.shape)
            self._number("q", *tensor.stride())
        self._number("q", tensor.storage_offset() + 1)
        if not dimensions:
            self.write(None)
            return
        self._write_storage(tensor, stem)

    def _write_storage(self, tensor: Tensor, stem: str) -> None:
        storage = tensor.untyped_storage()
        if not self._begin(TORCH, ("storage", storage.data_ptr()), tensor, f"torch.{stem}Storage"):
            return
        elements = storage.nbytes() // tensor.element_size()
        vector = candelabra.as_strided(tensor, (elements,), (1,), 0)
        self._number("q", elements)
        code = ELEMENTS[stem][0]
        if not self.ascii or stem in RAW_IN_TEXT:
            data = struct.pack(f"<{elements}{code}", *vector.tolist())
            self.parts.append(data + b"\n" if self.ascii else data)
        else:
            self._number(code, *vector.tolist())


def _text(value: Any) -> str:
    return f"{value:.17g}" if isinstance(value, float) else str(value)
