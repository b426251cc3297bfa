"""save and load: tensors and plain data in a zip archive that never holds code.

The archive has a description in JSON, ``description.json``, and one entry of plain bytes for each storage, ``storages/0`` and so
on. Tensors that share a storage share it again when they are loaded. Only dict, OrderedDict, list, tuple, str, bool, int, float,
complex, bytes, None, dtype, Size, device and Tensor are stored; anything else is refused when saving.
"""

from __future__ import annotations

import base64
import collections
import io
import json
import math
import os
import tempfile
import zipfile
import zlib

from candelabra import _C, pytorch_archive
from candelabra.catalogue import OPERATORS
from candelabra.composite.tensor_protocol import as_class, bytes_tensor, tensor_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

    from candelabra._C import Tensor

    Target = str | os.PathLike[str] | IO[bytes]

FORMAT = "candelabra archive"
VERSION = 1
DESCRIPTION = "description.json"
# A description is small; what is larger was made to exhaust memory.
_LARGEST_DESCRIPTION = 1 << 28

__all__ = ["load", "save"]


# ---- saving


class _Writer:
    """Describes an object as JSON, and collects the storages of its tensors."""

    def __init__(self) -> None:
        self.storages: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._open: set[int] = set()

    def describe(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind in (bool, str, int):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is complex:
            return {"complex": [repr(value.real), repr(value.imag)]}
        if kind is bytes:
            return {"bytes": base64.b64encode(value).decode("ascii")}
        if isinstance(value, _C.Tensor):
            return {"tensor": self._tensor(value)}
        if kind.__module__ == "numpy" and kind.__name__ != "ndarray" and hasattr(value, "item"):
            plain = value.item()
            # np.mean(losses) and the like: by their value. (That of a long double is a long double.)
            if type(plain) is not kind:
                return self.describe(plain)
        if kind is _C.dtype:
            return {"dtype": value.name}
        if kind is _C.device:
            return {"device": str(value)}
        if kind is _C.Size:
            return {"size": list(value)}
        if kind in (list, tuple, dict, collections.OrderedDict):
            return self._container(value, kind)
        raise TypeError(
            f"candelabra.save(): cannot store {kind.__module__}.{kind.__qualname__}: only tensors and plain data (dict, list, tuple, "
            "str, numbers, bytes, None) are stored; save the state_dict() of a module or an optimizer, and "
            "candelabra.from_numpy(array) of an array"
        )

    def _container(self, value: Any, kind: type) -> Any:
        if id(value) in self._open:
            raise ValueError("candelabra.save(): a container that contains itself cannot be stored")
        self._open.add(id(value))
        if kind is list:
            described: Any = [self.describe(item) for item in value]
        elif kind is tuple:
            described = {"tuple": [self.describe(item) for item in value]}
        else:
            name = "dict" if kind is dict else "ordered_dict"
            described = {name: [[self.describe(key), self.describe(item)] for key, item in value.items()]}
        self._open.discard(id(value))
        return described

    def _tensor(self, t: Tensor) -> dict[str, Any]:
        storage = t.untyped_storage()
        number = self._numbers.get(id(storage))
        if number is None:
            number = self._numbers[id(storage)] = len(self.storages)
            self.storages.append(storage)
        return {
            "storage": number,
            "dtype": t.dtype.name,
            "size": list(t.shape),
            "stride": list(t.stride()),
            "offset": t.storage_offset(),
            "requires_grad": t.requires_grad,
        }


def save(obj: Any, f: Target, *, pickle_protocol: int | None = None, format: str = "candelabra") -> None:
    """Write tensors and plain data to a file.

    Parameters
    ----------
    obj
        Tensors in any nesting of dict, OrderedDict, list and tuple, with str, numbers, bytes, None, dtypes, sizes and devices. Numbers
        of NumPy are stored as Python's.
    f
        A path, which is replaced all at once when everything is written; or a binary file object.
    pickle_protocol
        Taken for PyTorch's sake and without effect: nothing is pickled.
    format
        ``"candelabra"``, or ``"pytorch"`` for an archive that ``torch.load`` reads.

    Raises
    ------
    ValueError
        Where there is no such format.
    TypeError
        Where something else is in there.
    AttributeError
        Where `f` is neither a path nor a file.

    Examples
    --------
    >>> import candelabra, io
    >>> file = io.BytesIO()
    >>> candelabra.save({"weight": candelabra.tensor([1.0, 2.0])}, file)
    >>> _ = file.seek(0)
    >>> candelabra.load(file)
    {'weight': tensor([1., 2.])}
    """
    if not hasattr(f, "write") and not isinstance(f, (str, bytes, os.PathLike)):
        raise AttributeError(
            f"save(): expected 'f' to be string, path, or a file-like object with a 'write' attribute, but got {type(f).__name__}"
        )
    if format == "pytorch":
        archived = io.BytesIO()
        pytorch_archive.write(archived, obj, _entry)

        def write(stream: Any) -> None:
            stream.write(archived.getbuffer())
    elif format == "candelabra":
        writer = _Writer()
        content = writer.describe(obj)
        storages = [{"bytes": storage.nbytes(), "device": str(storage.device)} for storage in writer.storages]
        description = {"format": FORMAT, "version": VERSION, "storages": storages, "content": content}
        text = json.dumps(description, allow_nan=False, separators=(",", ":"))

        def write(stream: Any) -> None:
            _write_archive(stream, text, writer.storages)
    else:
        raise ValueError(f"save(): format must be 'candelabra' or 'pytorch', but got {format!r}")
    if hasattr(f, "write"):
        write(f)
        return
    path = os.path.abspath(os.fspath(f))  # type: ignore[arg-type]
    # Written beside it and renamed: a reader, or a crash, never meets half a file.
    handle, temporary = tempfile.mkstemp(prefix=os.path.basename(path) + ".", suffix=".part", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp made it private; a file has what the process's mask gives it.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _write_archive(stream: Any, description: str, storages: list[Any]) -> None:
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        archive.writestr(_entry(DESCRIPTION), description)
        for number, storage in enumerate(storages):
            archive.writestr(_entry(f"storages/{number}"), storage.tobytes())


def _entry(name: str) -> zipfile.ZipInfo:
    # A fixed date: the same content gives the same file.
    return zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))


# ---- loading


class _Reader:
    """Makes the object again from its description, and checks all of it."""

    def __init__(self, archive: zipfile.ZipFile, storages: list[Any], map_location: Any) -> None:
        self._archive = archive
        self._described = storages
        self._map_location = map_location
        self._loaded: dict[int, Any] = {}

    def restore(self, described: Any) -> Any:
        if described is None or isinstance(described, (bool, int, float, str)):
            return described
        if isinstance(described, list):
            return [self.restore(item) for item in described]
        if not isinstance(described, dict) or len(described) != 1:
            raise ValueError("an unknown kind of value")
        kind, value = next(iter(described.items()))
        if kind == "tensor":
            return self._tensor(value)
        if kind == "tuple":
            return tuple([self.restore(item) for item in value])
        if kind in ("dict", "ordered_dict"):
            made: Any = {} if kind == "dict" else collections.OrderedDict()
            for key, item in value:
                made[self.restore(key)] = self.restore(item)
            return made
        if kind == "float":
            return float(value)
        if kind == "complex":
            return complex(float(value[0]), float(value[1]))
        if kind == "bytes":
            return base64.b64decode(value, validate=True)
        if kind == "dtype":
            return _dtype(value)
        if kind == "device":
            return _C.device(value)
        if kind == "size":
            return _C.Size([_whole(n) for n in value])
        raise ValueError(f"an unknown kind of value: {kind!r}")

    def _storage(self, number: int) -> Any:
        if number in self._loaded:
            return self._loaded[number]
        if not 0 <= number < len(self._described):
            raise ValueError(f"storage {number} is missing")
        described = self._described[number]
        data = _entry_bytes(self._archive, f"storages/{number}")
        if len(data) != described["bytes"]:
            raise ValueError(f"storage {number} has {len(data)} bytes instead of {described['bytes']}")
        self._loaded[number] = _placed(data, described["device"], self._map_location)
        return self._loaded[number]

    def _tensor(self, described: dict[str, Any]) -> Tensor:
        dtype = _dtype(described["dtype"])
        size = [_whole(n) for n in described["size"]]
        stride = [_whole(n) for n in described["stride"]]
        offset = _whole(described["offset"])
        flat = self._storage(_whole(described["storage"]))
        if len(size) != len(stride):
            raise ValueError("a tensor with sizes and strides of different length")
        last = offset + sum((n - 1) * step for n, step in zip(size, stride)) if 0 not in size else offset - 1
        if (last + 1) * dtype.itemsize > flat.numel():
            raise ValueError("a tensor that reaches beyond its storage")
        made = tensor_on(flat, dtype, size, stride, offset if last >= offset else 0)
        return as_class(_C.Tensor, made, described["requires_grad"] is True)


def _placed(data: bytes, device: str, map_location: Any) -> Tensor:
    """The bytes of a storage that was on `device`, where `map_location` wants them."""
    if callable(map_location):
        flat = bytes_tensor(data, "cpu")
        placed = map_location(flat, device)
        if not isinstance(placed, _C.Tensor):
            return OPERATORS["to_copy"](flat, device=device if placed is None else placed)
        if placed.dtype is not _C.uint8 or placed.shape != flat.shape:
            raise ValueError("map_location returned a tensor with other bytes than it was given")
        return placed
    if isinstance(map_location, dict):
        return bytes_tensor(data, map_location.get(device, device))
    return bytes_tensor(data, device if map_location is None else map_location)


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"expected a whole number, got {value!r}")
    return value


def _dtype(name: Any) -> _C.dtype:
    found = getattr(_C, name, None) if isinstance(name, str) else None
    if not isinstance(found, _C.dtype):
        raise ValueError(f"unknown dtype {name!r}")
    return found


def load(f: Target, map_location: Any = None, *, weights_only: bool | None = None) -> Any:
    """Read what :func:`candelabra.save` wrote, or ``torch.save`` did. Never runs code from the file.

    Of PyTorch's archives (those of version 1.6 and later) tensors and plain data are read, as in state dicts; the bytes of a tensor are
    taken as they are, so nothing of PyTorch is needed.

    Parameters
    ----------
    f
        A path, or a binary file object that can seek.
    map_location
        Where the tensors go: a device for all; a dict from the devices they were on; or a function of their bytes, a uint8 tensor on
        the CPU, and of the name of the device, which returns those bytes on another device, or a device, or None. By default where
        they were.
    weights_only
        Taken for PyTorch's sake and without effect: an archive holds tensors and plain data only, whatever is asked for.

    Raises
    ------
    RuntimeError
        Where the file is damaged, no archive of Candelabra or PyTorch, of a newer version, or where it holds other things than tensors
        and plain data.

    Examples
    --------
    See :func:`candelabra.save`.
    """
    try:
        with zipfile.ZipFile(f) as archive:
            return _read_archive(archive, map_location)
    except (zipfile.BadZipFile, ValueError, KeyError, TypeError, EOFError, AttributeError, RecursionError, OverflowError) as error:
        name = f if isinstance(f, (str, os.PathLike)) else "the file"
        raise RuntimeError(
            f"candelabra.load(): {name} is no archive of candelabra.save or torch.save, or it is damaged: {error}"
        ) from error


def _entry_bytes(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except (RuntimeError, zlib.error) as error:
        # What zipfile says to entries that claim to be encrypted or compressed in ways unknown.
        raise ValueError(f"{name}: {error}") from error


def _read_archive(archive: zipfile.ZipFile, map_location: Any) -> Any:
    prefix = pytorch_archive.prefix_of(archive)
    if prefix is not None:
        return pytorch_archive.read(archive, prefix, lambda data, device: _placed(data, device, map_location))
    if archive.getinfo(DESCRIPTION).file_size > _LARGEST_DESCRIPTION:
        raise ValueError("its description is too large")
    description = json.loads(_entry_bytes(archive, DESCRIPTION))
    if description["format"] != FORMAT:
        raise ValueError(f"its format is {description['format']!r}")
    if description["version"] > VERSION:
        raise RuntimeError(
            f"candelabra.load(): the file has version {description['version']} of the format, this candelabra reads up to {VERSION}: "
            "pip install --upgrade candelabra-tensor-core"
        )
    return _Reader(archive, description["storages"], map_location).restore(description["content"])
