"""NumPy's files, ``.npy`` and ``.npz`` (documented in ``numpy.lib.format``), read and written
without NumPy, and without pickles.
"""

from __future__ import annotations

import re
from math import prod

from candelabra import _C

from .errors import FileError, NotReadError, explained
from .options import get_crc32_options
from .places import Piece, Places, storage_memory, typed_tensor
from .saving import write_to
from .sources import Source, opened
from .zip_files import STORED, Archive, ArchiveWriter, EntryReader, is_archive, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from candelabra._C import Tensor

    from .sources import Target

_MAGIC = b"\x93NUMPY"
_ALIGNMENT = 64
_LONGEST_HEADER = 10_000

#: Kind and size of NumPy's dtypes, and the code written for each dtype.
_DTYPES = {
    "b1": _C.bool, "u1": _C.uint8, "i1": _C.int8, "i2": _C.int16, "u2": _C.uint16, "i4": _C.int32, "u4": _C.uint32, "i8": _C.int64,
    "u8": _C.uint64, "f2": _C.float16, "f4": _C.float32, "f8": _C.float64, "c8": _C.complex64, "c16": _C.complex128,
}  # fmt: skip
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
#: Sizes of the numbers to swap in files of the other byte order.
_NUMBERS = {"c8": 4, "c16": 8}

# An item of the header, which is the text of a dict of three items. Dtypes of records begin with a
# bracket.
_ITEM = re.compile(
    r"\s*'(descr|fortran_order|shape)'\s*:\s*('[^'\\]{1,32}'|True|False|\((?:\s*[0-9]{1,20}\s*,)*(?:\s*[0-9]{1,20})?\s*\)|\[)\s*(,?)\s*"
)


def is_npy(source: Source) -> bool:
    """Return whether a file begins like an ``.npy`` file."""
    return source.size - source.start >= 8 and source.read(source.start, 6) == _MAGIC


def is_npz(archive: Archive) -> bool:
    """Return whether an archive holds arrays."""
    return bool(archive.entries) and all(name.endswith(".npy") for name in archive.entries)


# ---- reading


def _header(source: Source, start: int) -> tuple[str, bool, list[int], int]:
    """Return the dtype code with its byte order, whether the order is Fortran's, the shape, and the
    offset of the data.
    """
    head = source.read(start, 8)
    if head[:6] != _MAGIC:
        raise FileError("it does not begin as an .npy file")
    if head[6] not in (1, 2, 3):
        raise FileError(f"version {head[6]}.{head[7]} of the format, which is not known")
    width = 2 if head[6] == 1 else 4
    length = int.from_bytes(source.read(start + 8, width), "little")
    if length > _LONGEST_HEADER:
        raise FileError(f"a header of {length} bytes")
    text = source.read(start + 8 + width, length).decode("utf-8" if head[6] == 3 else "latin1")
    described, fortran, shape = _items(text)
    sizes = [int(n) for n in re.findall("[0-9]+", shape)]
    return described.strip("'"), fortran == "True", sizes, start + 8 + width + length


def _items(text: str) -> tuple[str, str, str]:
    """Return the three items of a header, unparsed."""
    text = text.strip()
    found: dict[str, str] = {}
    at = 1
    while text[:1] == "{" and text[-1:] == "}" and (item := _ITEM.match(text, at)):
        key, value, comma = item.groups()
        if value == "[":
            raise NotReadError("it holds records, and tensors have one dtype")
        if key in found:
            break
        found[key] = value
        at = item.end()
        if not comma or at == len(text) - 1:
            break
    kinds = tuple(found.get(key, "") for key in ("descr", "fortran_order", "shape"))
    if at != len(text) - 1 or kinds[0][:1] != "'" or kinds[1] not in ("True", "False") or kinds[2][:1] != "(":
        raise FileError("its header does not say dtype, order and shape")
    return kinds[0], kinds[1], kinds[2]


def _dtype(described: str) -> tuple[Any, int]:
    """Return the dtype, and the size of the numbers whose bytes must be swapped; 1 for none."""
    order, code = (described[0], described[1:]) if described[0] in "<>|=" else ("=", described)
    if code == "O":
        raise NotReadError("it holds objects of Python, which are pickled, and those are not read")
    dtype = _DTYPES.get(code)
    if dtype is None:
        raise NotReadError(f"it holds numbers of NumPy's dtype {described!r}, for which there is no tensor")
    return dtype, _NUMBERS.get(code, dtype.itemsize) if order == ">" else 1


def _array(source: Source, start: int, end: int, places: Places) -> Tensor:
    described, fortran, sizes, begin = _header(source, start)
    dtype, swap = _dtype(described)
    if len(sizes) > 64:
        raise FileError(f"an array of {len(sizes)} dimensions")
    nbytes = prod(sizes) * dtype.itemsize
    if nbytes > end - begin:
        raise FileError(f"it ends before the {nbytes} bytes of its array")
    flat = places.place(Piece(nbytes, lambda memory: source.fill(begin, memory), source, begin), "cpu", swap)
    strides, dense = [0] * len(sizes), 1
    for at in range(len(sizes)) if fortran else reversed(range(len(sizes))):
        strides[at] = dense
        dense *= max(sizes[at], 1)
    return typed_tensor(flat, dtype, sizes, strides, 0)


def read_npy(source: Source, places: Places, start: int = 0) -> Tensor:
    """Return the array in a file."""
    return _array(source, start, source.size, places)


def read_npz(archive: Archive, places: Places) -> dict[str, Tensor]:
    """Return the arrays in an archive by name."""
    made = {}
    for name, entry in archive.entries.items():
        if entry.method == STORED and places.mapped:
            # Mapped; only the header is read.
            made[name.removesuffix(".npy")] = _array(archive.source, entry.offset, entry.offset + entry.size, places)
        else:
            reader = EntryReader(archive, entry)
            made[name.removesuffix(".npy")] = read_npy(reader, places)
            reader.finish()
    return made


def load_npy(f: Target, *, mmap: bool = False) -> Tensor:
    """Read an ``.npy`` file into a tensor.

    Parameters
    ----------
    f
        A path, or a binary file object that can seek.
    mmap
        Whether to map the file into memory, as in :func:`candelabra.load`.

    Raises
    ------
    candelabra.serialization.FileError
        If the file is not an ``.npy`` file, is damaged, or has another dtype than tensors: objects,
        records, text.

    Examples
    --------
    >>> import candelabra, io
    >>> file = io.BytesIO()
    >>> candelabra.serialization.save_npy(file, candelabra.tensor([[1, 2], [3, 4]]))
    >>> _ = file.seek(0)
    >>> candelabra.serialization.load_npy(file)
    tensor([[1, 2],
            [3, 4]])
    """
    with opened(f, "load_npy()") as source, explained("load_npy()", f, ".npy file"):
        return read_npy(source, Places(None, mmap), source.start)


def load_npz(f: Target, *, mmap: bool = False, largest: int | None = None) -> dict[str, Tensor]:
    """Read an ``.npz`` archive into a dict of tensors.

    Parameters
    ----------
    f
        A path, or a binary file object that can seek.
    mmap
        Whether to map uncompressed arrays into memory, as in :func:`candelabra.load`.
    largest
        How many bytes the compressed arrays of a trusted file may unpack to. By default, 16 MiB and
        7 times the length of the file.

    Raises
    ------
    candelabra.serialization.FileError
        If the file is not an ``.npz`` archive, is damaged, or has other dtypes than tensors:
        objects, records, text.

    Examples
    --------
    >>> import candelabra, io
    >>> file = io.BytesIO()
    >>> candelabra.serialization.save_npz(file, x=candelabra.tensor([1, 2]))
    >>> candelabra.serialization.load_npz(file)
    {'x': tensor([1, 2])}
    """
    with opened(f, "load_npz()") as source, explained("load_npz()", f, ".npz archive"):
        if not is_archive(source):
            raise FileError("it is no archive")
        archive = Archive(source, largest)
        if archive.entries and not is_npz(archive):
            raise FileError("it holds more than .npy files")
        return read_npz(archive, Places(None, mmap))


# ---- writing


def _written(tensor: Any) -> tuple[bytes, Any]:
    """Return the header and the data of a tensor."""
    if not isinstance(tensor, _C.Tensor):
        raise TypeError(f"save_npy(): expected a Tensor, but got {type(tensor).__name__}")
    code = _CODES.get(tensor.dtype)
    if code is None:
        raise TypeError(
            f"save_npy(): NumPy has no dtype {tensor.dtype.name}; save x.float(), or the bits as x.view(candelabra.int16)"
        )
    detached = tensor.detach()
    reverse = detached.permute(tuple(reversed(range(detached.ndim)))) if detached.ndim > 1 else detached
    fortran = detached.ndim > 1 and not detached.is_contiguous() and reverse.is_contiguous()
    dense = (reverse if fortran else detached).contiguous().cpu()
    order = "|" if dense.dtype.itemsize == 1 else "<"
    shape = tuple(detached.shape)
    header = f"{{'descr': '{order}{code}', 'fortran_order': {fortran}, 'shape': {shape!r}, }}".encode()
    padding = -(len(_MAGIC) + 4 + len(header) + 1) % _ALIGNMENT
    header += b" " * padding + b"\n"
    begin = dense.storage_offset() * dense.dtype.itemsize
    memory = memoryview(storage_memory(dense.untyped_storage()))[begin : begin + dense.numel() * dense.dtype.itemsize]
    return _MAGIC + b"\x01\x00" + len(header).to_bytes(2, "little") + header, memory


def save_npy(f: Target, tensor: Tensor) -> None:
    """Write a tensor as an ``.npy`` file, which ``numpy.load`` reads.

    Parameters
    ----------
    f
        A path, whose file is replaced all at once, or a binary file object.
    tensor
        Of any dtype except bfloat16, which NumPy lacks.

    Raises
    ------
    TypeError
        If it is not a tensor, or has a dtype that NumPy lacks.

    Examples
    --------
    >>> import candelabra, io, numpy
    >>> file = io.BytesIO()
    >>> candelabra.serialization.save_npy(file, candelabra.ones(2))
    >>> _ = file.seek(0)
    >>> numpy.load(file)
    array([1., 1.], dtype=float32)
    """
    header, memory = _written(tensor)

    def write(stream: Any) -> None:
        write_all(stream, header)
        write_all(stream, memory)

    write_to(f, write)


def save_npz(f: Target, *tensors: Tensor, compressed: bool = False, **named: Tensor) -> None:
    """Write tensors as an ``.npz`` archive, which ``numpy.load`` reads.

    Parameters
    ----------
    f
        A path, whose file is replaced all at once, or a binary file object.
    *tensors
        Saved as ``arr_0``, ``arr_1`` and so on.
    compressed
        Whether to compress the arrays. Compressed arrays cannot be mapped.
    **named
        Saved under their names.

    Raises
    ------
    TypeError
        If one is not a tensor, or has a dtype that NumPy lacks.
    ValueError
        If a name is given twice.

    Examples
    --------
    >>> import candelabra, io, numpy
    >>> file = io.BytesIO()
    >>> candelabra.serialization.save_npz(file, candelabra.ones(2), bias=candelabra.zeros(1))
    >>> _ = file.seek(0)
    >>> sorted(numpy.load(file))
    ['arr_0', 'bias']
    """
    together = {f"arr_{number}": tensor for number, tensor in enumerate(tensors)}
    for name, tensor in named.items():
        if name in together:
            raise ValueError(f"save_npz(): the name {name!r} is that of a tensor without one")
        together[name] = tensor
    written = {name: _written(tensor) for name, tensor in together.items()}

    def write(stream: Any) -> None:
        archive = ArchiveWriter(stream, get_crc32_options() or compressed)
        for name, (header, memory) in written.items():
            archive.add(f"{name}.npy", _joined(header, memory), compressed)
        archive.close()

    write_to(f, write)


def _joined(header: bytes, memory: Sequence[int]) -> bytes:
    return b"".join((header, memory))  # type: ignore[arg-type]
