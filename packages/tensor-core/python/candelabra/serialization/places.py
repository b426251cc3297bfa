"""The memory of loaded storages: that of a device, or the mapped file."""

from __future__ import annotations

from array import array

from candelabra import _C
from candelabra.catalogue import OPERATORS
from candelabra.composite.methods.tensor_protocol import as_class, tensor_on

from .errors import FileError, call_given
from .options import MAP_SHARED, get_default_mmap_options, skipping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from candelabra._C import Tensor

    from .sources import Source
    from .zip_files import ArchiveWriter

#: Storages at other offsets are read, not mapped: their tensors would not be aligned.
_ALIGNED = 16
_MOST_DIMENSIONS = 64


class Piece:
    """Bytes in a file: their number, how to read them, and their offset if they can be mapped."""

    def __init__(
        self, nbytes: int, fill: Callable[[memoryview], None], source: Source | None = None, offset: int = 0
    ) -> None:
        self.nbytes = nbytes
        self.fill = fill
        self.source = source
        self.offset = offset


class Places:
    """Creates storages on the devices that ``map_location`` selects."""

    def __init__(self, map_location: Any = None, mapped: bool = False) -> None:
        if not (
            map_location is None or callable(map_location) or isinstance(map_location, (str, dict, _C.device, int))
        ):
            raise TypeError(
                "load(): map_location must be a device, a str, a dict of devices or a function, but got "
                f"{type(map_location).__name__}"
            )
        self._map_location = map_location
        self.mapped = mapped
        self._shared = mapped and get_default_mmap_options() == MAP_SHARED

    def place(self, piece: Piece, location: str, swap: int = 1, alignment: int = _ALIGNED) -> Tensor:
        """Return the bytes of a storage that was on device `location` as a flat uint8 tensor. The
        bytes of each group of `swap` are reversed. Storages at file offsets that are multiples of
        `alignment` are mapped.

        Mapped are those that begin in the file at multiples of `alignment`.
        """
        wanted = self._map_location
        if callable(wanted):
            storage = self._on_host(piece, swap, alignment).untyped_storage()
            moved = call_given(wanted, storage, location)
            if isinstance(moved, (_C.Storage, _C.Tensor)):
                flat = _C.tensor_on_storage(moved, _C.uint8) if isinstance(moved, _C.Storage) else moved
                if flat.dtype is not _C.uint8 or flat.shape != (piece.nbytes,):
                    raise FileError("map_location returned a tensor with other bytes than it was given")
                return flat
            device = location if moved is None else moved
            return OPERATORS["_to_copy"](_C.tensor_on_storage(storage, _C.uint8), device=_device(device, location))
        device = wanted.get(location, location) if isinstance(wanted, dict) else location if wanted is None else wanted
        found = _device(device, location)
        if found.type == "cpu":
            return self._on_host(piece, swap, alignment)
        return OPERATORS["_to_copy"](self._on_host(piece, swap, alignment), device=found)

    def _on_host(self, piece: Piece, swap: int, alignment: int) -> Tensor:
        if skipping():
            return OPERATORS["zeros"]((piece.nbytes,), dtype=_C.uint8, device="cpu")
        source = piece.source
        if (
            self.mapped
            and source is not None
            and source.descriptor is not None
            and piece.nbytes > 0
            and piece.offset % alignment == 0
            and swap == 1
        ):
            source.check(piece.offset, piece.nbytes)
            return _C.tensor_on_storage(
                _C.map_range(source.descriptor, piece.offset, piece.nbytes, self._shared, "cpu"), _C.uint8
            )
        flat = OPERATORS["empty"]((piece.nbytes,), dtype=_C.uint8, device="cpu")
        if piece.nbytes:
            memory = memoryview(flat).cast("B")  # type: ignore[arg-type]
            piece.fill(memory)
            if swap > 1:
                _swap_bytes(memory, swap)
        return flat


def _swap_bytes(memory: memoryview, size: int) -> None:
    numbers = array({2: "H", 4: "I", 8: "Q"}[size])
    whole = len(memory) // size * size
    numbers.frombytes(memory[:whole])
    numbers.byteswap()
    memory[:whole] = memoryview(numbers).cast("B")


def _device(device: Any, location: str) -> Any:
    if device == location == "meta":
        raise FileError("it holds a tensor without memory, of the device meta")
    if isinstance(device, str) and device == location and not _plausible(device):
        raise FileError(f"it holds a tensor of the device {device[:40]!r}")
    try:
        found = device if isinstance(device, _C.device) else _C.device(device)
        if found.type != "cpu":
            OPERATORS["empty"]((0,), dtype=_C.uint8, device=found)
    except RuntimeError as error:
        if str(device) != location:
            raise
        cuda = "Attempting to deserialize object on a CUDA device. " if location.startswith("cuda") else ""
        raise _C.BackendError(
            f"{cuda}load(): the file holds tensors of the device {location}, which is not there ({error}). Say where they are to go: "
            "candelabra.load(f, map_location='cpu')"
        ) from error
    return found


def named_device(name: Any) -> Any:
    """Return the device that a file names."""
    if not isinstance(name, str) or not _plausible(name):
        raise FileError(f"a device without a name: {str(name)[:40]!r}")
    return _C.device(name)


def _plausible(device: str) -> bool:
    """Return whether a text from a file may be a device name. Backends are searched only for such
    names.
    """
    kind, colon, number = device.partition(":")
    return (
        0 < len(kind) <= 32
        and kind.isidentifier()
        and kind.isascii()
        and (not colon or (number.isdecimal() and len(number) <= 4))
    )


def typed_tensor(flat: Tensor, dtype: Any, size: Sequence[Any], stride: Sequence[Any], offset: Any) -> Tensor:
    """Return a tensor of this geometry on the bytes of a storage, whose size is checked."""
    if len(size) != len(stride):
        raise FileError("a tensor with sizes and strides of different length")
    if len(size) > _MOST_DIMENSIONS:
        raise FileError(f"a tensor of {len(size)} dimensions")
    size, stride = [whole(n) for n in size], [whole(n) for n in stride]
    offset = whole(offset)
    last = offset + sum((n - 1) * step for n, step in zip(size, stride)) if 0 not in size else offset - 1
    if (last + 1) * dtype.itemsize > flat.numel():
        raise FileError("a tensor that reaches beyond its storage")
    count = 1
    for n in size:
        count *= max(n, 1)
    # Numbers must fit the core's integers. Strides of empty tensors are not used, but must fit as
    # well.
    if count * dtype.itemsize >= 1 << 63 or max([0, *stride]) >= 1 << 62:
        raise FileError("a tensor with impossible sizes or strides")
    return tensor_on(flat, dtype, size, stride, offset if last >= offset else 0)


def meta_tensor(dtype: Any, size: Sequence[Any], stride: Sequence[Any]) -> Tensor:
    """Return a tensor of this geometry on the device meta, which has no memory."""
    last = sum((n - 1) * step for n, step in zip(map(whole, size), map(whole, stride)) if n > 0)
    if last >= 1 << 58:
        raise FileError("a tensor with impossible sizes or strides")
    flat = OPERATORS["empty"](((last + 1) * dtype.itemsize,), dtype=_C.uint8, device="meta")
    return typed_tensor(flat, dtype, size, stride, 0)


def whole(value: Any) -> int:
    """Return a number that must be a count."""
    if type(value) is not int or value < 0:
        raise FileError(f"a tensor with impossible sizes or strides: {str(value)[:40]}")
    return value


def leaf(made: Tensor, requires_grad: Any) -> Tensor:
    """Return a tensor, as a leaf that requires grad if the file says so."""
    if requires_grad is not True:
        return made
    if not (made.dtype.is_floating_point or made.dtype.is_complex):
        raise FileError(f"a tensor of {made.dtype.name} that requires grad")
    return as_class(_C.Tensor, made, True)


def parameter(made: Tensor, requires_grad: Any) -> Any:
    """Return a parameter, or a tensor if candelabra-nn is not installed."""
    from candelabra.assembly import MissingPackageError

    data = leaf(made.detach(), requires_grad)
    try:
        from candelabra.nn import Parameter  # type: ignore[attr-defined, unused-ignore]
    except (MissingPackageError, ImportError):
        return data
    return Parameter(data.detach(), data.requires_grad)


def is_parameter(tensor: Tensor) -> bool:
    """Return whether a tensor is a parameter of candelabra.nn."""
    return type(tensor) is not _C.Tensor and getattr(type(tensor), "_prints_as_tensor", False)


def add_storage(archive: ArchiveWriter, name: str, storage: Any) -> None:
    """Write the bytes of a storage to an archive; in `skip_data` only reserve their space."""
    archive.add(name, bytes(storage.nbytes()) if skipping() else storage_memory(storage))


def storage_memory(storage: Any) -> Any:
    """Return the bytes of a storage as a buffer, without a copy if they are in host memory."""
    if storage.nbytes() == 0:
        return b""
    try:
        return memoryview(_C.tensor_on_storage(storage, _C.uint8)).cast("B")  # type: ignore[arg-type]
    except BufferError:
        return storage.tobytes()
