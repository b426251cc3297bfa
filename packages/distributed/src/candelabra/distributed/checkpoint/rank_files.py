"""The file of one rank: safetensors, with the place of each part in its whole tensor as
metadata.
"""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.serialization import FileError
from candelabra.serialization.errors import explained
from candelabra.serialization.places import storage_memory
from candelabra.serialization.replacing import replaced
from candelabra.serialization.safetensors_files import DTYPES, LONGEST_HEADER, NAMES, read_header
from candelabra.serialization.sources import opened

from .regions import contiguous_blocks

#: The names of dtypes in an index: those of safetensors, and one that it lacks.
DTYPE_NAMES = {**NAMES, candelabra.complex128: "C128"}
DTYPES_BY_NAME = {name: dtype for dtype, name in DTYPE_NAMES.items()}
_PARTS = "candelabra.parts"
_OBJECTS = "candelabra.objects"
_WHAT = "file of a checkpoint"


@dataclass(frozen=True)
class Part:
    """A part of a tensor that a rank saves."""

    name: str
    shape: Sequence[int]
    offsets: Sequence[int]
    tensor: Tensor


@dataclass(frozen=True)
class StoredPart:
    """A part of a tensor in a file: `begin` is the offset of its bytes."""

    file: str
    begin: int
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]


@dataclass
class StoredTensor:
    """A tensor in a checkpoint."""

    dtype: str
    shape: tuple[int, ...]
    parts: list[StoredPart]


def encoded(value: Any) -> Any:
    """Return plain data as JSON: as it is, or as the bytes of `candelabra.save`."""
    if _is_json(value):
        return {"json": value}
    stream = io.BytesIO()
    candelabra.save(value, stream)
    return {"archive": base64.b64encode(stream.getvalue()).decode("ascii")}


def _is_json(value: Any) -> bool:
    if type(value) is list:
        return all(_is_json(item) for item in value)
    return (
        value is None
        or type(value) in (bool, str)
        or (type(value) is int and abs(value) < 1 << 63)
        or (type(value) is float and math.isfinite(value))
    )


def decoded(described: Any) -> Any:
    """Return what `encoded` has encoded."""
    if isinstance(described, dict) and len(described) == 1:
        if "json" in described:
            return described["json"]
        if "archive" in described:
            return candelabra.load(io.BytesIO(base64.b64decode(described["archive"], validate=True)))
    raise FileError("a value that is not described")


def write_rank_file(path: Path, parts: Sequence[Part], objects: Mapping[str, Any], is_synced: bool = True) -> int:
    """Write the file of a rank, which appears complete or not at all; return its bytes.

    Parameters
    ----------
    path
        Of the file.
    parts
        The parts of tensors.
    objects
        The other values by name, encoded.
    is_synced
        Whether the bytes are on the disk before the file has its name.
    """
    head, order = _header(parts, objects)
    written = len(head)
    with replaced(path) if is_synced else path.open("wb") as stream:
        stream.write(head)
        for part in order:
            tensor = part.tensor
            blocks: Iterable[Tensor]
            if tensor.device.type == "cpu" and tensor.is_contiguous():
                blocks = [tensor] if tensor.numel() else []
            else:
                blocks = contiguous_blocks(tensor)
            for block in blocks:
                begin = block.storage_offset() * block.dtype.itemsize
                nbytes = block.numel() * block.dtype.itemsize
                stream.write(memoryview(storage_memory(block.untyped_storage()))[begin : begin + nbytes])
                written += nbytes
    return written


def _header(parts: Sequence[Part], objects: Mapping[str, Any]) -> tuple[bytes, list[Part]]:
    described: dict[str, Any] = {}
    # The largest numbers first, so that all are aligned.
    order = sorted(parts, key=lambda part: (-part.tensor.dtype.itemsize, part.name, tuple(part.offsets)))
    header: dict[str, Any] = {}
    at = 0
    for part in order:
        if part.tensor.dtype not in DTYPE_NAMES:
            raise TypeError(f"save(): {part.name!r} is of {part.tensor.dtype}, which checkpoints do not store")
        key = part.name
        if key in header or key == "__metadata__" or list(part.tensor.shape) != list(part.shape):
            key = f"{part.name}@{','.join(map(str, part.offsets))}"
        while key in header:
            key += "'"
        shape, dtype = list(part.tensor.shape), DTYPE_NAMES[part.tensor.dtype]
        described[key] = {"name": part.name, "shape": list(part.shape), "offsets": list(part.offsets)}
        if dtype not in DTYPES:
            described[key]["dtype"] = dtype
            shape, dtype = [*shape, 2], "F64"
        nbytes = part.tensor.numel() * part.tensor.dtype.itemsize
        header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + nbytes]}
        at += nbytes
    metadata = {_PARTS: json.dumps(described, separators=(",", ":"))}
    if objects:
        metadata[_OBJECTS] = json.dumps(dict(objects), separators=(",", ":"), allow_nan=False)
    text = json.dumps({"__metadata__": metadata, **header}, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    if len(text) > LONGEST_HEADER:
        raise ValueError(f"save(): names, shapes and values take {len(text)} bytes, more than safetensors allows")
    return len(text).to_bytes(8, "little") + text, order


def read_rank_file(path: Path) -> tuple[int, dict[str, StoredTensor], dict[str, Any]]:
    """Return the bytes of a rank's file, the tensors of which it has parts, and the other values.

    Raises
    ------
    FileError
        It is no such file, or damaged.
    """
    with opened(path, "save()") as source, explained("save()", path, _WHAT):
        found, metadata, begin = read_header(source)
        described = json.loads((metadata or {}).get(_PARTS, "null"))
        objects = json.loads((metadata or {}).get(_OBJECTS, "{}"))
        if not isinstance(described, dict) or not isinstance(objects, dict) or set(described) != set(found):
            raise FileError("the parts of its tensors are not described")
        tensors: dict[str, StoredTensor] = {}
        for key, part in described.items():
            dtype = part.get("dtype", found[key].dtype)
            sizes = found[key].shape if dtype == found[key].dtype else found[key].shape[:-1]
            stored = StoredPart(path.name, begin + found[key].begin, tuple(part["offsets"]), tuple(sizes))
            tensor = tensors.setdefault(part["name"], StoredTensor(dtype, tuple(part["shape"]), []))
            check_part(part["name"], tensor, stored)
            if tensor.dtype != dtype or list(tensor.shape) != part["shape"]:
                raise FileError(f"the parts of {part['name'][:100]!r} differ in dtype or shape")
            tensor.parts.append(stored)
        return source.size, tensors, objects


def check_part(name: str, tensor: StoredTensor, part: StoredPart) -> None:
    """Raise FileError unless a part lies within its tensor."""
    shape = tensor.shape
    numbers = [*shape, *part.offsets, *part.sizes, part.begin]
    if len(part.offsets) != len(shape) or len(part.sizes) != len(shape) or len(shape) > 64:
        raise FileError(f"a part of {name[:100]!r} has another number of dimensions")
    if not all(type(number) is int and 0 <= number < 1 << 63 for number in numbers):
        raise FileError(f"a part of {name[:100]!r} has impossible sizes or offsets")
    if any(at + size > whole for at, size, whole in zip(part.offsets, part.sizes, shape, strict=True)):
        raise FileError(f"a part of {name[:100]!r} lies outside of the tensor")
    if tensor.dtype not in DTYPES_BY_NAME or prod(max(size, 1) for size in shape) >= 1 << 59:
        raise FileError(f"{name[:100]!r} has an unknown dtype or an impossible shape")
