"""Methods of Storage that read, write and copy its bytes."""

from __future__ import annotations

import sys
from importlib import import_module
from operator import index

from candelabra import _C
from candelabra.catalogue import OPERATORS

from .tensor_protocol import bytes_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from candelabra._C import Storage, Tensor, dtype
    from candelabra.types import Device

_Storage: Any = _C.Storage


def _method(implementation: Callable[..., Any]) -> Callable[..., Any]:
    setattr(_Storage, implementation.__name__, implementation)
    return implementation


def bytes_of(storage: Storage) -> Tensor:
    """Return a uint8 tensor on the memory of a storage."""
    return _C.tensor_on_storage(storage, _C.uint8)


def refuse_meta(storage: Any) -> None:
    """Raise NotImplementedError for a storage without memory."""
    if storage.device.type == "meta":
        raise NotImplementedError("Not available for 'meta' device type")


def _refuse_without_data(storage: Storage) -> None:
    if storage.device.type == "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")


_HOST_MEMORY, _IPC = 1, 64  # CB_CAP_HOST_MEMORY, CB_CAP_IPC


def _span(storage: Storage, key: slice) -> tuple[int, int]:
    start, stop, step = key.indices(storage.nbytes())
    if step != 1:
        raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
    return start, max(stop - start, 0)


def _place(storage: Storage, key: Any) -> int:
    try:
        place = index(key)
    except TypeError:
        raise TypeError(f"can't index a candelabra.UntypedStorage with {type(key).__name__}") from None
    size = storage.nbytes()
    if not -size <= place < size:
        raise IndexError(f"index {place} out of range for storage of size {size}")
    return place % size


def _byte(value: Any, what: str) -> int:
    if not hasattr(value, "__index__"):
        raise RuntimeError(f"{what} int, but got {type(value).__name__}")
    return index(value) % 256


@_method
def __getitem__(self: Storage, key: Any) -> Any:
    """Return one byte as an int, or a storage on a part of the memory."""
    refuse_meta(self)
    if isinstance(key, slice):
        return _C.slice_storage(self, *_span(self, key))
    return bytes_of(self)[_place(self, key)].item()


@_method
def __setitem__(self: Storage, key: Any, value: Any) -> None:
    """Set one byte or several to a number."""
    refuse_meta(self)
    byte = _byte(value, "can only set storage content with a int types: expected")
    if isinstance(key, slice):
        start, count = _span(self, key)
        bytes_of(self)[start : start + count] = byte
    else:
        bytes_of(self)[_place(self, key)] = byte


@_method
def __iter__(self: Storage) -> Iterator[int]:
    """Iterate over the bytes."""
    return iter(bytes_of(self).tolist())


@_method
def tolist(self: Storage) -> list[int]:
    """Return the bytes as a list of ints.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.tensor([1, 2], dtype=candelabra.uint8).untyped_storage().tolist()
    [1, 2]
    """
    refuse_meta(self)
    return bytes_of(self).tolist()


@_method
def fill_(self: Storage, value: int) -> Storage:
    """Set every byte."""
    bytes_of(self).fill_(_byte(value, "fill_ expects"))
    return self


@_method
def copy_(self: Storage, source: Any, non_blocking: bool | None = None) -> Storage:
    """Copy the bytes of another storage of the same size."""
    source = source.untyped()
    if self.device.type != "meta":
        _refuse_without_data(source)
    if self.nbytes() != source.nbytes():
        raise RuntimeError(f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes")
    bytes_of(self).copy_(bytes_of(source))
    return self


def _as_type_of(self: Storage, made: Storage) -> Storage:
    """Return a new storage as one of a subclass, where `self` is of that."""
    if type(self) is _Storage:
        return made
    return type(self)(made.nbytes(), device=made.device).copy_(made)


@_method
def clone(self: Storage) -> Storage:
    """Return a copy of the memory."""
    return _as_type_of(self, OPERATORS["clone"](bytes_of(self)).untyped_storage())


@_method
def __copy__(self: Storage) -> Storage:
    """Return a copy of the memory."""
    return self.clone()


@_method
def __deepcopy__(self: Storage, memo: dict[Any, Any]) -> Storage:
    """Return a copy of the memory, the same for all storages on it."""
    key = ("candelabra memory", self._cdata)
    if key not in memo:
        # The memo also keeps the storage, so that its number is not used again meanwhile.
        memo[key] = (self, self.clone())
    return memo[key][1]


@_method
def __sizeof__(self: Storage) -> int:
    """Return the size of the object and its memory."""
    return object.__sizeof__(self) + self.nbytes()


@_method
def new(self: Storage) -> Storage:
    """Return a storage of no bytes on the same device."""
    return type(self)(device=self.device)


@_method
def resizable(self: Storage) -> bool:
    """Return whether the size can be changed: not where something outside Candelabra, such as a
    NumPy array or another process, has the memory.
    """
    return _C.is_resizable(self)


@_method
def resize_(self: Storage, size: int) -> Storage:
    """Give the storage another number of bytes; what it holds is kept.

    A storage that is made smaller keeps its memory, because tensors may view it.

    Raises
    ------
    RuntimeError
        If the storage is not resizable, or `size` is negative.

    Examples
    --------
    >>> import candelabra
    >>> storage = candelabra.UntypedStorage([1, 2])
    >>> storage.resize_(3)[:2].tolist()
    [1, 2]
    """
    size = index(size)
    if size < 0:
        raise RuntimeError(f"resize_(): a storage of {size} bytes cannot be made")
    if not _C.is_resizable(self):
        raise RuntimeError("Trying to resize storage that is not resizable")
    if size <= _C.storage_capacity(self):
        _C.resize_storage(self, size)
        return self
    made = OPERATORS["empty"]((size,), dtype=_C.uint8, device=self.device)
    kept = self.nbytes()
    made[:kept].copy_(bytes_of(self))
    _C.resize_storage(self, size, made.untyped_storage())
    return self


@_method
def to(self: Storage, *, device: Device, non_blocking: bool = False) -> Storage:
    """Return a copy on a device; the storage itself if it is there."""
    moved = bytes_of(self).to(device=device)
    return self if moved.device == self.device else _as_type_of(self, moved.untyped_storage())


@_method
def cuda(self: Storage, device: Device = None, non_blocking: bool = False) -> Storage:
    """Return a copy on a CUDA device, by default the current one; the storage itself if it is
    there.
    """
    return to(
        self, device="cuda" if device is None else _C.device("cuda", device) if isinstance(device, int) else device
    )


@_method
def cpu(self: Storage) -> Storage:
    """Return a copy on the CPU; the storage itself if it is there."""
    return to(self, device="cpu")


@_method
def untyped(self: Storage) -> Storage:
    """Return the storage itself, which has no dtype."""
    return self


@_method
def element_size(self: Storage) -> int:
    """Return the size of an element: 1, a byte."""
    return 1


@_method
def get_device(self: Storage) -> int:
    """Return the index of the device; -1 for the CPU."""
    return -1 if self.device.index is None else self.device.index


@_method
def is_shared(self: Storage) -> bool:
    """Return whether the memory is shared between processes. Device memory that other processes can
    open always counts as shared.
    """
    if _C.storage_owner(self) is not None:
        return True
    capabilities = _C.backend_info(self.device.type)["capabilities"]
    return not capabilities & _HOST_MEMORY and bool(capabilities & _IPC)


@_method
def share_memory_(self: Storage) -> Storage:
    """Move the memory of all its tensors to shared memory; candelabra-multiprocessing implements
    this.

    Memory that is not in the host's, of a CUDA device for one, stays as it is.
    """
    if self.device.type == "meta":
        raise RuntimeError("_share_fd_: only available on CPU")
    return import_module("candelabra.multiprocessing").share(self)


@_method
def _write_file(self: Storage, f: Any, is_real_file: bool, save_size: bool, element_size: int) -> None:
    """Write the bytes to a file object, as PyTorch's old format has them: with `save_size`, the
    number of elements before, in eight bytes.
    """
    _refuse_without_data(self)
    if save_size:
        f.write((self.nbytes() // element_size).to_bytes(8, "little"))
    f.write(self.tobytes())


def _shared_file(self: Storage, method: str, attribute: str, otherwise: str) -> Any:
    """Move the memory to shared memory; return what not all files of shared memory have."""
    if self.device.type != "cpu":
        raise RuntimeError(f"{method}: only available on CPU")
    found = getattr(_C.storage_owner(self.share_memory_()), attribute, None)
    if found is None:
        raise RuntimeError(f"{method}cpu_: the memory lies in {otherwise}")
    return found


@_method
def _share_fd_cpu_(self: Storage) -> tuple[int, int]:
    """Move the memory to shared memory; return the descriptor of its file, and the size in bytes.

    Raises
    ------
    RuntimeError
        If the memory is not the CPU's, or its file has a name: with the sharing strategy
        ``"file_system"``.
    """
    descriptor: int = _shared_file(self, "_share_fd_", "descriptor", "a file with a name: it has no descriptor")
    return descriptor, self.nbytes()


@_method
def _share_filename_cpu_(self: Storage) -> tuple[bytes, bytes, int]:
    """Move the memory to shared memory; return nothing for the manager, the name of its file, and
    the size in bytes.

    Raises
    ------
    RuntimeError
        If the memory is not the CPU's, or its file has no name: with the sharing strategy
        ``"file_descriptor"``.
    """
    path: str = _shared_file(self, "_share_filename_", "path", "a file without a name")
    return b"", path.encode(), self.nbytes()


@_method
def _fix_weakref(self: Storage) -> None:
    """Do nothing: an object from a weak reference is as good as any other here."""


@_method
def is_pinned(self: Storage, device: Device = None) -> bool:
    """Return whether the memory is pinned, so that an accelerator can copy it asynchronously."""
    accelerator = import_module("candelabra.accelerator")
    return (device is not None or accelerator.is_available()) and _C.is_pinned(self, accelerator.resolve(device))


@_method
def pin_memory(self: Storage, device: Device = None) -> Storage:
    """Return a copy in pinned memory; the storage itself if it is pinned.

    Raises
    ------
    TypeError
        If the memory is not the host's.
    """
    if not _C.backend_info(self.device.type)["capabilities"] & _HOST_MEMORY:
        raise TypeError(f"cannot pin '{self.type()}' only CPU memory can be pinned")
    return bytes_of(self).pin_memory(device).untyped_storage()


@_method
def byteswap(self: Storage, dtype: dtype) -> None:
    """Reverse the bytes of every number of a dtype; of complex numbers, those of each part."""
    size = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    numbers = bytes_of(self)[: self.nbytes() // size * size].view(-1, size)
    numbers.copy_(numbers.flip(1))


def _type(self: Storage, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Return the name of the class, or a storage of another class with a copy of the bytes.

    Raises
    ------
    RuntimeError
        If the storages of the class have elements of more than one byte.
    """
    kind = type(self)
    if dtype is None:
        return f"candelabra.storage.{kind.__name__ if kind is not _Storage else 'UntypedStorage'}"
    if isinstance(dtype, str):
        dtype = getattr(import_module("candelabra"), dtype.rpartition(".")[2])
    return self if dtype is kind else dtype(self.nbytes()).copy_(self)


_type.__name__ = _type.__qualname__ = "type"
_Storage.type = _type


def _converting(name: str) -> Callable[[Storage], Any]:
    def convert(self: Storage) -> Any:
        goal = getattr(_C, name)
        made = bytes_of(self).to(goal)
        return import_module("candelabra.storage").TypedStorage(
            wrap_storage=(made.clone() if goal is _C.uint8 else made).untyped_storage(), dtype=goal, _internal=True
        )

    convert.__doc__ = f"Return a typed storage with the bytes as numbers of dtype {name}."
    return convert


#: The methods that convert, by the name of the dtype.
CONVERSIONS = {
    "double": "float64", "float": "float32", "half": "float16", "bfloat16": "bfloat16", "long": "int64", "int": "int32",
    "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "complex_float": "complex64", "complex_double": "complex128",
    **{name: name for name in ("float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz")},
}  # fmt: skip
for _method_name, _name in CONVERSIONS.items():
    setattr(_Storage, _method_name, _converting(_name))


# ---- making storages


def _made(*args: Any, device: Device = None, size: Any = None) -> Storage:
    """Return the memory of ``UntypedStorage(...)``: a number of bytes, or a sequence of them."""
    if len(args) > 1 or (args and size is not None):
        raise TypeError(
            "candelabra.UntypedStorage() received an invalid combination of arguments - expected a number of bytes or a sequence of them, "
            "and device="
        )
    given: Any = args[0] if args else 0 if size is None else size
    if hasattr(given, "__index__") and not isinstance(given, bool):
        count = index(given)
        if count < 0:
            raise RuntimeError(f"candelabra.UntypedStorage(): a storage of {count} bytes cannot be made")
        return OPERATORS["empty"]((count,), dtype=_C.uint8, device=device).untyped_storage()
    if not hasattr(given, "__len__") or not hasattr(given, "__getitem__"):
        raise RuntimeError(f"candelabra.UntypedStorage(): Expected a sequence type, but got {type(given).__name__}")
    for item in given:
        if not hasattr(item, "__index__"):
            raise RuntimeError(
                f"candelabra.UntypedStorage(): tried to construct a storage from a sequence ({type(given).__name__}), but one of the "
                f"items was of type {type(item).__name__} instead of int"
            )
    return _C.tensor_from_data([index(item) % 256 for item in given], _C.uint8, device).untyped_storage()


_C.set_storage_maker(_made)


def _from_buffer(
    cls: Any, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, dtype: dtype | None = None
) -> Storage:
    """Return a storage with a copy of the numbers of a buffer.

    Parameters
    ----------
    buffer
        An object with Python's buffer protocol.
    byte_order
        ``"native"``, ``"little"`` or ``"big"``: that of the buffer. Needed except for bytes.
    count
        The number of elements; all by default.
    offset
        The number of bytes before the first.
    dtype
        That of the elements.

    Raises
    ------
    RuntimeError
        If `dtype` or `byte_order` are missing.
    ValueError
        If there is no such byte order, or the buffer has too few elements, or a part of one.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.UntypedStorage.from_buffer(b"abcd", "big", dtype=candelabra.int16).tolist()
    [98, 97, 100, 99]
    """
    if dtype is None:
        raise RuntimeError("argument 'dtype' cannot be None")
    if byte_order is None and dtype not in (_C.uint8, _C.int8):
        raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
    size = dtype.itemsize
    if byte_order not in ("big", "little", "native") and size > 1:
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    data = memoryview(buffer).cast("B")
    held = len(data)
    if offset < 0 or offset > held:
        raise ValueError(f"offset must be non-negative and no greater than buffer length ({held}) , but got {offset}")
    if count < 0:
        if (held - offset) % size:
            raise ValueError(f"buffer size ({held}) must be a multiple of element size ({size})")
        count = (held - offset) // size
    elif offset + count * size > held:
        raise ValueError(
            f"buffer has only {(held - offset) // size} elements after offset {offset}, but specified a size of {count}"
        )
    made = bytes_tensor(bytes(data[offset : offset + count * size]), "cpu").untyped_storage()
    if byte_order in ("big", "little") and byte_order != sys.byteorder and dtype is not _C.bool:
        made.byteswap(dtype)
    return made if cls is _Storage else cls(made.nbytes()).copy_(made)


_from_buffer.__name__ = _from_buffer.__qualname__ = "from_buffer"
_Storage.from_buffer = classmethod(_from_buffer)


def _new_shared(cls: Any, size: int, *, device: Device = "cpu") -> Storage:
    """Return a storage in memory that other processes can be given."""
    made = cls(size, device=device)
    return made.share_memory_()


_Storage._new_shared = classmethod(_new_shared)


def _attribute(name: str, value: Callable[[Any], Any], doc: str) -> None:
    setattr(_Storage, name, property(value, doc=doc))


_attribute("is_cuda", lambda self: self.device.type == "cuda", "Whether the memory is on the device type ``cuda``.")
_attribute("is_sparse", lambda self: False, "False: there are no sparse tensors.")
for _layout in ("csr", "csc", "bsr", "bsc"):
    _attribute(f"is_sparse_{_layout}", lambda self: False, "False: there are no sparse tensors.")
_attribute("is_hpu", lambda self: False, "False: there is no such backend.")


@_method
def __repr__(self: Storage) -> str:
    """Return the bytes as text, and what the storage is."""
    where = f"[{self.type()}(device={self.device}) of size {self.nbytes()}]"
    return "".join(f" {byte}\n" for byte in bytes_of(self).tolist()) + where
