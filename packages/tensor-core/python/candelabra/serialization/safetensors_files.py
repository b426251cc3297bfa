"""safetensors files, read: a header in JSON, and behind it the bytes of the tensors.

:mod:`candelabra.safetensors` has the functions for users.
"""

from __future__ import annotations

from math import prod

from candelabra import _C

from .errors import FileError
from .limits import parsed_json
from .places import Piece, typed_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

    from .places import Places
    from .sources import Source

#: The names of dtypes in headers.
DTYPES = {
    "BOOL": _C.bool, "U8": _C.uint8, "I8": _C.int8, "I16": _C.int16, "U16": _C.uint16, "F16": _C.float16, "BF16": _C.bfloat16,
    "I32": _C.int32, "U32": _C.uint32, "F32": _C.float32, "I64": _C.int64, "U64": _C.uint64, "F64": _C.float64, "C64": _C.complex64,
    "F8_E4M3": _C.float8_e4m3fn, "F8_E4M3FNUZ": _C.float8_e4m3fnuz, "F8_E5M2": _C.float8_e5m2, "F8_E5M2FNUZ": _C.float8_e5m2fnuz,
    "F8_E8M0": _C.float8_e8m0fnu,
}  # fmt: skip
NAMES = {dtype: name for name, dtype in DTYPES.items()}
#: Names that the format has and that are no dtypes here.
_NOT_HERE = frozenset({"F4", "F6_E2M3", "F6_E3M2"})
LONGEST_HEADER = 100_000_000


class Described:
    """A tensor as a header describes it."""

    __slots__ = ("begin", "dtype", "end", "name", "shape")

    def __init__(self, name: str, dtype: str, shape: list[int], begin: int, end: int) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.begin = begin
        self.end = end


def is_safetensors(source: Source) -> bool:
    """Tell whether a file begins as those of safetensors do."""
    if source.size - source.start < 10:
        return False
    head = source.read(source.start, 9)
    return int.from_bytes(head[:8], "little") <= LONGEST_HEADER and head[8:] == b"{"


def read_header(source: Source) -> tuple[dict[str, Described], dict[str, str] | None, int]:
    """The tensors by name, the metadata, and where the bytes of the tensors begin."""
    start = source.start
    length = int.from_bytes(source.read(start, 8), "little")
    if length > LONGEST_HEADER:
        raise FileError(f"a header of {length} bytes")
    text = source.read(start + 8, length)
    if text[:1] != b"{":
        raise FileError("its header is no JSON")
    header = parsed_json(text, source.size - source.start)
    metadata = header.pop("__metadata__", None)
    if metadata is not None and (
        not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values())
    ):
        raise FileError("its metadata are more than text")
    found = {name: _described(name, value) for name, value in header.items()}
    end = 0
    for described in sorted(found.values(), key=lambda each: (each.begin, each.end)):
        if described.begin != end:
            raise FileError(f"the bytes of {described.name[:100]!r} do not follow those before")
        end = described.end
    begin = start + 8 + length
    if begin + end != source.size:
        raise FileError(f"it has {source.size - begin} bytes of tensors instead of {end}")
    return found, metadata, begin


def _described(name: str, value: Any) -> Described:
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise FileError(f"the tensor {name[:100]!r} is not described")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or not isinstance(shape, list) or not isinstance(offsets, list) or len(offsets) != 2:
        raise FileError(f"the tensor {name[:100]!r} is not described")
    if len(shape) > 64 or not all(type(n) is int and 0 <= n < 1 << 63 for n in [*shape, *offsets]):
        raise FileError(f"the tensor {name[:100]!r} has impossible sizes or places")
    if prod(max(n, 1) for n in shape) >= 1 << 59:
        raise FileError(f"the tensor {name[:100]!r} has impossible sizes or places")
    begin, end = offsets
    if dtype in DTYPES:
        if end - begin != prod(shape) * DTYPES[dtype].itemsize:
            raise FileError(
                f"the tensor {name[:100]!r} has {end - begin} bytes, and {dtype} of shape {shape} has others"
            )
    elif dtype not in _NOT_HERE or begin > end:
        raise FileError(f"the tensor {name[:100]!r} has the dtype {dtype[:40]!r}, which is not known")
    return Described(name, dtype, shape, begin, end)


def read_tensor(source: Source, places: Places, described: Described, begin: int) -> Tensor:
    dtype = DTYPES.get(described.dtype)
    if dtype is None:
        raise FileError(
            f"the tensor {described.name[:100]!r} is of the dtype {described.dtype}, which is not there: the smallest floating-point "
            "dtypes are those of float8"
        )
    at = begin + described.begin
    piece = Piece(described.end - described.begin, lambda memory: source.fill(at, memory), source, at)
    strides, dense = [0] * len(described.shape), 1
    for dim in reversed(range(len(described.shape))):
        strides[dim] = dense
        dense *= max(described.shape[dim], 1)
    return typed_tensor(places.place(piece, "cpu", alignment=dtype.itemsize), dtype, described.shape, strides, 0)


def read_all(source: Source, places: Places) -> tuple[dict[str, Tensor], dict[str, str] | None]:
    """Return the tensors and the metadata in a file."""
    found, metadata, begin = read_header(source)
    for described in found.values():
        if described.dtype not in DTYPES:
            read_tensor(source, places, described, begin)
    return {name: read_tensor(source, places, described, begin) for name, described in found.items()}, metadata
