"""Checkpoints of PyTorch: archives of ``torch.save`` read and written, without PyTorch and without running code from a file.

Such an archive is a zip file that holds a pickle, ``data.pkl``, and the bytes of each storage, ``data/0`` and so on. The pickle is read
by a machine that knows the few names of which state dicts are made, and refuses all others.
"""

from __future__ import annotations

import codecs
import collections
import io
import pickle
import struct
import zipfile

from candelabra import _C
from candelabra.catalogue import OPERATORS
from candelabra.composite.tensor_protocol import as_class, tensor_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from candelabra._C import Tensor

#: PyTorch's classes of storages, and the dtypes of what they hold.
STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
    "BoolStorage": "bool", "ComplexDoubleStorage": "complex128", "ComplexFloatStorage": "complex64", "UntypedStorage": "uint8",
}  # fmt: skip
_CLASS_OF = {dtype: name for name, dtype in STORAGES.items() if name != "UntypedStorage"}
# A pickle of a state dict is small; what is larger was made to exhaust memory.
_LARGEST_PICKLE = 1 << 28


class _Storage:
    """A class of storages as the pickle names it."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype


class _Bytes:
    """One storage: its bytes as a tensor, and the dtype it was saved with."""

    def __init__(self, flat: Tensor, dtype: Any) -> None:
        self.flat = flat
        self.dtype = dtype


# ---- reading


def prefix_of(archive: zipfile.ZipFile) -> str | None:
    """The folder of an archive that ``torch.save`` wrote; None for another archive."""
    for name in archive.namelist():
        if name.count("/") == 1 and name.endswith("/data.pkl"):
            return name.removesuffix("data.pkl")
    return None


def read(archive: zipfile.ZipFile, prefix: str, place: Callable[[bytes, str], Tensor]) -> Any:
    """Return what is in an archive; ``place(bytes, device)`` makes the tensor of a storage's bytes."""
    if archive.getinfo(f"{prefix}data.pkl").file_size > _LARGEST_PICKLE:
        raise ValueError("its pickle is too large")
    if f"{prefix}byteorder" in archive.namelist() and archive.read(f"{prefix}byteorder") != b"little":
        raise ValueError("its numbers are of another byte order")
    text = archive.read(f"{prefix}data.pkl")
    try:
        return _Unpickler(text, archive, prefix, place).load()
    except (pickle.UnpicklingError, struct.error, IndexError) as error:
        raise ValueError(str(error)) from error


class _Unpickler(pickle.Unpickler):
    """Knows the names of which state dicts are made."""

    def __init__(self, text: bytes, archive: zipfile.ZipFile, prefix: str, place: Callable[[bytes, str], Tensor]) -> None:
        super().__init__(io.BytesIO(text))
        self._archive = archive
        self._prefix = prefix
        self._place = place
        self._storages: dict[str, Tensor] = {}

    def find_class(self, module: str, name: str) -> Any:
        found = _NAMES.get((module, name))
        if found is not None:
            return found
        if module in ("torch", "torch.storage") and name in STORAGES:
            return _Storage(getattr(_C, STORAGES[name]))
        if module == "torch" and isinstance(getattr(_C, name, None), _C.dtype):
            return getattr(_C, name)
        raise pickle.UnpicklingError(
            f"it holds {module}.{name}, and only tensors and plain data are read; save the state_dict() instead of the module"
        )

    def persistent_load(self, pid: Any) -> _Bytes:
        if not isinstance(pid, tuple) or len(pid) < 4 or pid[0] != "storage" or not isinstance(pid[1], _Storage):
            raise pickle.UnpicklingError("an unknown kind of storage")
        key, location = str(pid[2]), str(pid[3])
        if key not in self._storages:
            self._storages[key] = self._place(self._archive.read(f"{self._prefix}data/{key}"), location)
        return _Bytes(self._storages[key], pid[1].dtype)


def _tensor(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False, hooks: Any = None, metadata: Any = None
) -> Tensor:
    return _typed(storage, offset, size, stride, storage.dtype, requires_grad, metadata)


def _tensor_of_dtype(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, dtype: Any, metadata: Any = None
) -> Tensor:
    return _typed(storage, offset, size, stride, dtype, requires_grad, metadata)


def _typed(storage: Any, offset: Any, size: Any, stride: Any, dtype: Any, requires_grad: Any, metadata: Any) -> Tensor:
    if not isinstance(storage, _Bytes) or not isinstance(dtype, _C.dtype):
        raise pickle.UnpicklingError("a tensor without a storage")
    size, stride = [int(n) for n in size], [int(n) for n in stride]
    offset = int(offset)
    if len(size) != len(stride) or min([offset, *size, *stride]) < 0:
        raise pickle.UnpicklingError("a tensor with impossible sizes or strides")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride)) if 0 not in size else offset - 1
    if (last + 1) * dtype.itemsize > storage.flat.numel():
        raise pickle.UnpicklingError("a tensor that reaches beyond its storage")
    made = tensor_on(storage.flat, dtype, size, stride, offset if last >= offset else 0)
    # PyTorch may keep a tensor as the conjugate or the negative of what is in its memory.
    if metadata and metadata.get("conj"):
        made = OPERATORS["conj_physical"](made)
    if metadata and metadata.get("neg"):
        made = OPERATORS["neg"](made)
    return as_class(_C.Tensor, made, requires_grad is True)


def _parameter(data: Tensor, requires_grad: Any = True, hooks: Any = None, state: Any = None) -> Tensor:
    return as_class(_C.Tensor, data, requires_grad is True)


def _encoded(text: str, encoding: str) -> bytes:
    # How protocol 2 writes bytes.
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes in the encoding {encoding}")
    return text.encode("latin1")


def _bytearray(content: Any = b"", *encoding: str) -> bytearray:
    # A number would be a size, as large as the file says.
    if not isinstance(content, (bytes, str)):
        raise pickle.UnpicklingError("a bytearray without bytes")
    return bytearray(content, *encoding) if isinstance(content, str) else bytearray(content)


def _device(*arguments: Any) -> Any:
    return _C.device(":".join(str(argument) for argument in arguments))


_NAMES: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("collections", "defaultdict"): collections.defaultdict,
    ("collections", "Counter"): collections.Counter,
    ("torch._utils", "_rebuild_tensor"): _tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_tensor_v3"): _tensor_of_dtype,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _parameter,
    ("torch", "Size"): _C.Size,
    ("torch", "device"): _device,
    ("_codecs", "encode"): _encoded,
    ("builtins", "set"): set,
    ("builtins", "complex"): complex,
    ("builtins", "bytearray"): _bytearray,
    ("__builtin__", "set"): set,
    ("__builtin__", "complex"): complex,
    ("__builtin__", "bytearray"): _bytearray,
}
for _name in ("dict", "list", "int", "float"):
    # What a defaultdict is made with.
    _NAMES["builtins", _name] = _NAMES["__builtin__", _name] = getattr(__import__("builtins"), _name)


# ---- writing

_PLAIN = (bool, int, float, complex, str, bytes, type(None), list, tuple, dict, set, collections.OrderedDict)

# That of C cannot be told how to write.
_PythonPickler: Any = pickle._Pickler  # type: ignore[attr-defined]

#: What pickle itself writes to make some of these again.
_MAKERS = (collections.OrderedDict, set, complex, codecs.encode, bytes)


class _Pickler(_PythonPickler):
    """Writes tensors as PyTorch does, whose functions need not be there."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream, protocol=2)
        self.storages: list[Any] = []
        self._numbers: dict[int, int] = {}

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if isinstance(obj, _C.Tensor):
            known = self.memo.get(id(obj))
            if known is not None:
                self.write(self.get(known[0]))
            else:
                self._save_tensor(obj)
                self.memoize(obj)
        elif isinstance(obj, _C.dtype):
            self._save_name("torch", obj.name)
        elif isinstance(obj, _C.Size):
            self._save_call("torch", "Size", (tuple(obj),))
        elif isinstance(obj, _C.device):
            self._save_call(
                "torch", "device", tuple(part if number == 0 else int(part) for number, part in enumerate(str(obj).split(":")))
            )
        elif type(obj) in _PLAIN or any(obj is maker for maker in _MAKERS):
            super().save(obj, save_persistent_id)
        else:
            raise _refused(obj)

    def _save_name(self, module: str, name: str) -> None:
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())

    def _save_call(self, module: str, name: str, arguments: tuple[Any, ...]) -> None:
        self._save_name(module, name)
        self.write(pickle.MARK)
        for argument in arguments:
            self.save(argument)
        self.write(pickle.TUPLE + pickle.REDUCE)

    def _save_tensor(self, tensor: Any) -> None:
        if type(tensor) is not _C.Tensor and getattr(type(tensor), "_prints_as_tensor", False):
            self._save_name("torch._utils", "_rebuild_parameter")
            self.write(pickle.MARK)
            self._save_plain(tensor, False)
            self.save(tensor.requires_grad)
            self.save(collections.OrderedDict())
            self.write(pickle.TUPLE + pickle.REDUCE)
        else:
            self._save_plain(tensor, tensor.requires_grad)

    def _save_plain(self, tensor: Any, requires_grad: bool) -> None:
        storage = tensor.untyped_storage()
        number = self._numbers.get(id(storage))
        if number is None:
            number = self._numbers[id(storage)] = len(self.storages)
            self.storages.append(storage)
        # Dtypes that came late have no storage of their own in PyTorch.
        typed = tensor.dtype.name in _CLASS_OF
        self._save_name("torch._utils", "_rebuild_tensor_v2" if typed else "_rebuild_tensor_v3")
        self.write(pickle.MARK)
        self.write(pickle.MARK)
        self.save("storage")
        if typed:
            self._save_name("torch", _CLASS_OF[tensor.dtype.name])
        else:
            self._save_name("torch.storage", "UntypedStorage")
        self.save(str(number))
        self.save(str(storage.device))
        self.save(storage.nbytes() // (tensor.dtype.itemsize if typed else 1))
        self.write(pickle.TUPLE + pickle.BINPERSID)
        self.save(tensor.storage_offset())
        self.save(tuple(tensor.shape))
        self.save(tuple(tensor.stride()))
        self.save(requires_grad)
        self.save(collections.OrderedDict())
        if not typed:
            self.save(tensor.dtype)
        self.write(pickle.TUPLE + pickle.REDUCE)


def _refused(value: Any) -> TypeError:
    kind = type(value)
    return TypeError(
        f"candelabra.save(): cannot store {kind.__module__}.{kind.__qualname__} for PyTorch: only tensors and plain data are stored; save the "
        "state_dict() of a module or an optimizer"
    )


def write(stream: Any, obj: Any, entry: Callable[[str], zipfile.ZipInfo]) -> None:
    """Write tensors and plain data as an archive that ``torch.load`` reads; ``entry(name)`` describes a file in it."""
    text = io.BytesIO()
    pickler = _Pickler(text)
    pickler.dump(obj)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        archive.writestr(entry("archive/data.pkl"), text.getvalue())
        archive.writestr(entry("archive/byteorder"), "little")
        for number, storage in enumerate(pickler.storages):
            archive.writestr(entry(f"archive/data/{number}"), storage.tobytes())
        archive.writestr(entry("archive/version"), "3\n")
