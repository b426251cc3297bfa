"""index.json, whose appearance completes a checkpoint: where each part of each tensor is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from candelabra.serialization import FileError
from candelabra.serialization.errors import explained
from candelabra.serialization.limits import parsed_json
from candelabra.serialization.replacing import replaced
from candelabra.serialization.sources import opened

from .rank_files import DTYPES_BY_NAME, StoredPart, StoredTensor, check_part, read_rank_file

NAME = "index.json"
#: The names of the ranks' files.
FILE = re.compile(r"rank-\d{5,}-[0-9a-f]{8}\.safetensors")
_FORMAT = "candelabra.distributed.checkpoint"
_VERSION = 1
# A million parts take a tenth of it.
_LARGEST = 1 << 30


@dataclass
class Index:
    """The contents of a checkpoint: the bytes of each file, the tensors, the other values
    encoded.
    """

    files: dict[str, int] = field(default_factory=dict)
    tensors: dict[str, StoredTensor] = field(default_factory=dict)
    objects: dict[str, Any] = field(default_factory=dict)


def merged(folder: Path, names: Iterable[str]) -> Index:
    """Return the index of the files that the ranks have written.

    Raises
    ------
    FileError
        A file is missing or damaged, files contradict one another, or a tensor is incomplete.
    """
    index = Index()
    for name in names:
        try:
            size, tensors, objects = read_rank_file(folder / name)
        except FileNotFoundError:
            raise FileError(
                f"save(): {name} is not in {folder} on the machine of rank 0; the folder must be on a file system that "
                "all machines share"
            ) from None
        index.files[name] = size
        index.objects = {**objects, **index.objects}
        for key, tensor in tensors.items():
            known = index.tensors.setdefault(key, StoredTensor(tensor.dtype, tensor.shape, []))
            if (known.dtype, known.shape) != (tensor.dtype, tensor.shape):
                raise FileError(
                    f"save(): {key!r} is {tensor.dtype} of shape {list(tensor.shape)} in {name}, and {known.dtype} of shape "
                    f"{list(known.shape)} on another rank"
                )
            regions = {(part.offsets, part.sizes) for part in known.parts}
            known.parts.extend(part for part in tensor.parts if (part.offsets, part.sizes) not in regions)
    for key, tensor in index.tensors.items():
        there = sum(prod(part.sizes) for part in tensor.parts)
        if there != prod(tensor.shape):
            raise FileError(
                f"save(): the ranks have {there} of the {prod(tensor.shape)} elements of {key!r}: the same parts of a "
                "sharded tensor must be saved by one rank, and each by some"
            )
    return index


def write_index(folder: Path, index: Index) -> None:
    """Write the index of a checkpoint, atomically."""
    numbers = {name: number for number, name in enumerate(index.files)}
    described = {
        "format": _FORMAT,
        "version": _VERSION,
        "files": [{"name": name, "bytes": size} for name, size in index.files.items()],
        "tensors": {
            name: {
                "dtype": tensor.dtype,
                "shape": tensor.shape,
                "parts": [[numbers[part.file], part.begin, part.offsets, part.sizes] for part in tensor.parts],
            }
            for name, tensor in index.tensors.items()
        },
        "objects": index.objects,
    }
    text = json.dumps(described, separators=(",", ":"), allow_nan=False).encode()
    with replaced(folder / NAME) as stream:
        stream.write(text)


def read_index(folder: Path) -> Index:
    """Read the index of a checkpoint, and check all of it.

    Raises
    ------
    FileError
        It is damaged, or of a newer version.
    """
    path = folder / NAME
    with opened(path, "load()") as source, explained("load()", path, "index of a checkpoint"):
        if source.size > _LARGEST:
            raise FileError(f"it has {source.size} bytes")
        described = parsed_json(source.read(0, source.size), source.size)
        if not isinstance(described, dict) or described.get("format") != _FORMAT:
            raise FileError("its format is another")
        if type(described["version"]) is not int or described["version"] > _VERSION:
            raise FileError(f"it has version {str(described['version'])[:40]}, and this package reads up to {_VERSION}")
        files = [(file["name"], file["bytes"]) for file in described["files"]]
        for name, size in files:
            if not isinstance(name, str) or FILE.fullmatch(name) is None or type(size) is not int or size < 0:
                raise FileError(f"the file {str(name)[:100]!r} is not described")
        if not isinstance(described["objects"], dict):
            raise FileError("its values are not described")
        index = Index(dict(files), {}, described["objects"])
        for name, tensor in described["tensors"].items():
            index.tensors[name] = _tensor(name, tensor, files)
        return index


def _tensor(name: str, described: dict[str, Any], files: list[tuple[str, int]]) -> StoredTensor:
    tensor = StoredTensor(described["dtype"], tuple(described["shape"]), [])
    for number, begin, offsets, sizes in described["parts"]:
        if type(number) is not int or not 0 <= number < len(files):
            raise FileError(f"a part of {name[:100]!r} is in no file")
        part = StoredPart(files[number][0], begin, tuple(offsets), tuple(sizes))
        check_part(name, tensor, part)
        if begin + prod(part.sizes) * DTYPES_BY_NAME[tensor.dtype].itemsize > files[number][1]:
            raise FileError(f"a part of {name[:100]!r} lies behind the end of {files[number][0][:100]}")
        tensor.parts.append(part)
    return tensor
