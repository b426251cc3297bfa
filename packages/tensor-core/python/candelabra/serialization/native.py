"""Candelabra's own archives: a description of the object in JSON, and the bytes of each storage.

The archive has a description, ``description.json``, and one entry of plain bytes for each storage,
``storages/0`` and so on. Tensors that share a storage share it again when they are loaded. Only
dict, OrderedDict, defaultdict, Counter, list, tuple, set, frozenset, str, bool, int, float,
complex, bytes, None, dates and times, arrays of NumPy, dtype, Size, device, Storage and Tensor can
be saved.
"""

from __future__ import annotations

import base64
import collections
import json
import math

from candelabra import _C

from .errors import FileError
from .limits import Budget, parsed_json
from .options import write_checksums
from .places import Piece, add_storage, is_parameter, leaf, meta_tensor, named_device, parameter, typed_tensor, whole
from .plain_objects import (
    TIMES,
    described_array,
    described_time,
    is_array,
    is_scalar,
    restored_array,
    restored_time,
)
from .zip_files import STORED, ArchiveWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

    from .places import Places
    from .zip_files import Archive

FORMAT = "candelabra archive"
VERSION = 1
DESCRIPTION = "description.json"
# A description is small. A larger one was made to exhaust memory.
_LARGEST_DESCRIPTION = 1 << 28
# Python limits the length of integers in decimal.
_LONG_NUMBER = 1 << 12
#: What makes the missing values of a defaultdict that can be stored.
_FACTORIES = (dict, list, set, int, float, str, bool, tuple)


# ---- saving


class _Writer:
    """Describes an object as JSON, and collects the storages of its tensors."""

    def __init__(self) -> None:
        self.storages: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._open: set[int] = set()

    def describe(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            return value if value.bit_length() < _LONG_NUMBER else {"int": hex(value)}
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is complex:
            return {"complex": [repr(value.real), repr(value.imag)]}
        if kind is bytes:
            return {"bytes": base64.b64encode(value).decode("ascii")}
        if isinstance(value, _C.Tensor):
            return {"meta": _described_meta(value)} if value.is_meta else {"tensor": self._tensor(value)}
        if kind.__module__ == "numpy" and is_array(value):
            described = described_array(value)
            if described is not None:
                return {"array": self._tensor(described) if isinstance(described, _C.Tensor) else described}
        elif is_scalar(value):
            plain = value.item()
            # NumPy scalars, such as np.mean(losses), are saved as Python numbers. (The item of a
            # long double is a long double.)
            if type(plain) is not kind:
                return self.describe(plain)
        if kind is _C.dtype:
            return {"dtype": value.name}
        if kind is _C.device:
            return {"device": str(value)}
        if kind is _C.Size:
            return {"size": list(value)}
        if kind is _C.Storage:
            return {"storage": self._storage(value)}
        if kind in (list, tuple, dict, collections.OrderedDict, collections.Counter, set, frozenset):
            return self._container(value, kind)
        if kind is collections.defaultdict and (value.default_factory is None or value.default_factory in _FACTORIES):
            return self._container(value, kind)
        if kind in TIMES:
            time = described_time(value)
            if time is not None:
                return {"time": time}
        raise TypeError(
            f"candelabra.save(): cannot store {_described_type(value)}: only tensors and plain data (dict, list, tuple, set, "
            "str, numbers, bytes, dates, NumPy's arrays, None) are stored; save the state_dict() of a module or an optimizer"
        )

    def _container(self, value: Any, kind: type) -> Any:
        if id(value) in self._open:
            raise ValueError("candelabra.save(): a container that contains itself cannot be stored")
        self._open.add(id(value))
        if kind is list:
            described: Any = [self.describe(item) for item in value]
        elif kind in (tuple, set, frozenset):
            described = {kind.__name__: [self.describe(item) for item in value]}
        else:
            pairs = [[self.describe(key), self.describe(item)] for key, item in value.items()]
            if kind is dict:
                described = {"dict": pairs}
            elif kind is collections.Counter:
                described = {"counter": pairs}
            elif kind is collections.defaultdict:
                factory = value.default_factory
                described = {"defaultdict": [None if factory is None else factory.__name__, pairs]}
            elif hasattr(value, "_metadata"):
                # A state dict has the versions of its modules as an attribute.
                described = {"state_dict": [pairs, self.describe(value._metadata)]}
            else:
                described = {"ordered_dict": pairs}
        self._open.discard(id(value))
        return described

    def _storage(self, storage: Any) -> int:
        number = self._numbers.get(id(storage))
        if number is None:
            number = self._numbers[id(storage)] = len(self.storages)
            self.storages.append(storage)
        return number

    def _tensor(self, t: Tensor) -> dict[str, Any]:
        described = {
            "storage": self._storage(t.untyped_storage()),
            "dtype": t.dtype.name,
            "size": list(t.shape),
            "stride": list(t.stride()),
            "offset": t.storage_offset(),
            "requires_grad": t.requires_grad,
        }
        if is_parameter(t):
            described["parameter"] = True
        return described


def _described_meta(t: Tensor) -> dict[str, Any]:
    described = {
        "dtype": t.dtype.name,
        "size": list(t.shape),
        "stride": list(t.stride()),
        "requires_grad": t.requires_grad,
    }
    if is_parameter(t):
        described["parameter"] = True
    return described


def _described_type(value: Any) -> str:
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if is_array(value):
        return f"{name} of dtype {value.dtype}"
    if kind is collections.defaultdict:
        return f"{name} of {value.default_factory!r}"
    return name


def prepare(obj: Any) -> Any:
    """Return a function that writes an object to a stream. Raises before anything is written if the
    object cannot be saved.
    """
    writer = _Writer()
    try:
        content = writer.describe(obj)
        storages = [{"bytes": storage.nbytes(), "device": str(storage.device)} for storage in writer.storages]
        description = {"format": FORMAT, "version": VERSION, "storages": storages, "content": content}
        text = json.dumps(description, allow_nan=False, separators=(",", ":")).encode()
    except RecursionError:
        raise ValueError("candelabra.save(): containers are nested too deeply to be stored") from None

    def write(stream: Any) -> None:
        archive = ArchiveWriter(stream, write_checksums())
        archive.add(DESCRIPTION, text)
        for number, storage in enumerate(writer.storages):
            add_storage(archive, f"storages/{number}", storage)
        archive.close()

    return write


# ---- loading


class _Reader:
    """Creates the object from its description, which is checked completely."""

    def __init__(self, archive: Archive, storages: Any, places: Places, length: int) -> None:
        if not isinstance(storages, list):
            raise FileError("its storages are not described")
        self._archive = archive
        self._described = storages
        self._places = places
        self._loaded: dict[int, Any] = {}
        self._budget = Budget(length)

    def restore(self, described: Any) -> Any:
        if described is None or isinstance(described, (bool, int, float, str)):
            return described
        if isinstance(described, list):
            for at, item in enumerate(described):
                if item.__class__ in (list, dict):
                    described[at] = self.restore(item)
            return described
        if not isinstance(described, dict) or len(described) != 1:
            raise FileError("an unknown kind of value")
        kind, value = next(iter(described.items()))
        if kind == "tensor":
            return self._tensor(value)
        if kind == "meta":
            return _as_saved(meta_tensor(_dtype(value["dtype"]), value["size"], value["stride"]), value)
        if kind == "tuple":
            return tuple([self.restore(item) for item in value])
        if kind in ("dict", "ordered_dict", "counter"):
            made: Any = {"dict": dict, "ordered_dict": collections.OrderedDict, "counter": collections.Counter}[kind]()
            for key, item in value:
                made[self._budget.key(self.restore(key))] = self.restore(item)
            return made
        if kind in ("set", "frozenset"):
            members = [self._budget.key(self.restore(item)) for item in value]
            return set(members) if kind == "set" else frozenset(members)
        if kind == "defaultdict":
            made = collections.defaultdict(None if value[0] is None else _factory(value[0]))
            for key, item in value[1]:
                made[self._budget.key(self.restore(key))] = self.restore(item)
            return made
        if kind == "array":
            return self._tensor(value).numpy() if isinstance(value, dict) else restored_array(value)
        if kind == "time":
            return restored_time(value)
        if kind == "state_dict":
            made = self.restore({"ordered_dict": value[0]})
            made._metadata = self.restore(value[1])
            return made
        if kind == "int":
            return int(value, 16)
        if kind == "float":
            return float(value)
        if kind == "complex":
            return complex(float(value[0]), float(value[1]))
        if kind == "bytes":
            return base64.b64decode(value, validate=True)
        if kind == "dtype":
            return _dtype(value)
        if kind == "device":
            return named_device(value)
        if kind == "size":
            return _C.Size([whole(n) for n in value])
        if kind == "storage":
            return self._storage(whole(value)).untyped_storage()
        raise FileError(f"an unknown kind of value: {kind[:40]!r}")

    def _storage(self, number: int) -> Any:
        if number in self._loaded:
            return self._loaded[number]
        if not 0 <= number < len(self._described):
            raise FileError(f"storage {number} is missing")
        described = self._described[number]
        entry = self._archive.entry(f"storages/{number}")
        if entry.size != described["bytes"]:
            raise FileError(f"storage {number} has {entry.size} bytes instead of {str(described['bytes'])[:40]}")
        piece = Piece(
            entry.size,
            lambda memory: self._archive.fill(entry, memory),
            self._archive.source if entry.method == STORED else None,
            entry.offset,
        )
        device = described["device"]
        if not isinstance(device, str):
            raise FileError("a storage without a device")
        self._loaded[number] = self._places.place(piece, device)
        return self._loaded[number]

    def _tensor(self, described: dict[str, Any]) -> Tensor:
        dtype = _dtype(described["dtype"])
        flat = self._storage(whole(described["storage"]))
        made = typed_tensor(flat, dtype, described["size"], described["stride"], described["offset"])
        return _as_saved(made, described)


def _as_saved(made: Tensor, described: dict[str, Any]) -> Any:
    if described.get("parameter") is True:
        return parameter(made, described["requires_grad"])
    return leaf(made, described["requires_grad"])


def _factory(name: Any) -> type:
    for factory in _FACTORIES:
        if factory.__name__ == name:
            return factory
    raise FileError("a defaultdict that would call what is no class of plain data")


def _dtype(name: Any) -> _C.dtype:
    found = getattr(_C, name, None) if isinstance(name, str) else None
    if not isinstance(found, _C.dtype):
        raise FileError(f"unknown dtype {str(name)[:40]!r}")
    return found


def is_native(archive: Archive) -> bool:
    """Return whether an archive is in Candelabra's own format."""
    return DESCRIPTION in archive.entries


def read(archive: Archive, places: Places) -> Any:
    """Return the object in an archive."""
    text = archive.read(DESCRIPTION, _LARGEST_DESCRIPTION)
    description = parsed_json(text, archive.source.size)
    if not isinstance(description, dict) or description["format"] != FORMAT:
        raise FileError("its format is another")
    if type(description["version"]) is not int or description["version"] > VERSION:
        raise FileError(
            f"candelabra.load(): the file has version {str(description['version'])[:40]} of the format, this candelabra reads up to "
            f"{VERSION}: pip install --upgrade candelabra-tensor-core"
        )
    return _Reader(archive, description["storages"], places, len(text)).restore(description["content"])
