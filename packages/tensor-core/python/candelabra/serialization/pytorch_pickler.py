"""Writes the pickles of PyTorch's files. They name PyTorch's functions, which need not be
installed.
"""

from __future__ import annotations

import codecs
import collections
import pickle

from candelabra import _C

from . import allowing
from .places import is_parameter
from .plain_objects import TIMES, is_array, is_scalar
from .pytorch_objects import STORAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CLASS_OF = {dtype: name for name, dtype in STORAGES.items() if name != "UntypedStorage"}
_PLAIN = (
    bool, int, float, complex, str, bytes, bytearray, type(None), list, tuple, dict, set, frozenset, collections.OrderedDict,
    collections.defaultdict, collections.Counter,
)  # fmt: skip

# The C implementation does not allow to override how objects are written.
_PythonPickler: Any = pickle._Pickler  # type: ignore[attr-defined]

#: Constructors that pickle itself writes for some of these.
_MAKERS = (
    collections.OrderedDict, collections.defaultdict, collections.Counter, set, frozenset, complex, codecs.encode, bytes, bytearray,
    dict, list, int, float, str, bool, tuple, _PythonPickler, *TIMES,
)  # fmt: skip


def _of_an_array(obj: Any) -> bool:
    """Return whether a value is an array without Python objects, or one of what its pickle
    names.
    """
    if is_array(obj):
        return obj.dtype.kind in "biufcSUmM"
    if type(obj).__module__ == "numpy.dtypes":
        return True
    module, name = getattr(obj, "__module__", None), getattr(obj, "__name__", None)
    return str(module).partition(".")[0] == "numpy" and name in ("_reconstruct", "ndarray", "dtype")


class TensorPickler(_PythonPickler):
    """Writes tensors as PyTorch does.

    Parameters
    ----------
    stream
        The output stream.
    legacy
        Whether to write the format from before PyTorch 1.6.
    """

    def __init__(self, stream: Any, legacy: bool = False) -> None:
        super().__init__(stream, protocol=2)
        self.storages: list[Any] = []
        self.dtypes: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._legacy = legacy

    def dump_tensors(self, obj: Any) -> None:
        """Write one object."""
        try:
            self.dump(obj)
        except RecursionError:
            raise ValueError("candelabra.save(): containers are nested too deeply to be stored") from None

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if isinstance(obj, _C.Tensor):
            known = self.memo.get(id(obj))
            if known is not None:
                self.write(self.get(known[0]))
            else:
                self._save_tensor(obj)
                self.memoize(obj)
        elif type(obj) is bytes and not obj:
            # pickle would name a function for bytes that PyTorch's reader does not know.
            self._save_call("_codecs", "encode", ("", "latin1"))
        elif isinstance(obj, _C.dtype):
            self._save_name("torch", obj.name)
        elif isinstance(obj, _C.Size):
            self._save_call("torch", "Size", (tuple(obj),))
        elif isinstance(obj, _C.device):
            self._save_call(
                "torch",
                "device",
                tuple(part if number == 0 else int(part) for number, part in enumerate(str(obj).split(":"))),
            )
        elif (
            type(obj) in _PLAIN
            or type(obj) in TIMES
            or _of_an_array(obj)
            or any(obj is maker for maker in _MAKERS)
            or allowing.is_allowed(type(obj))
            or allowing.is_allowed(obj)
        ):
            super().save(obj, save_persistent_id)
        elif is_scalar(obj) and type(obj.item()) is not type(obj):
            self.save(obj.item())
        else:
            kind = type(obj)
            raise TypeError(
                f"candelabra.save(): cannot store {kind.__module__}.{kind.__qualname__} for PyTorch: only tensors and plain data are "
                "stored; save the state_dict() of a module or an optimizer"
            )

    def _save_name(self, module: str, name: str) -> None:
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())

    def _save_call(self, module: str, name: str, arguments: tuple[Any, ...]) -> None:
        self._save_name(module, name)
        self.write(pickle.MARK)
        for argument in arguments:
            self.save(argument)
        self.write(pickle.TUPLE + pickle.REDUCE)

    def _save_tensor(self, tensor: Any) -> None:
        if is_parameter(tensor):
            self._save_name("torch._utils", "_rebuild_parameter")
            self.write(pickle.MARK)
            self._save_plain(tensor, False)
            self.save(tensor.requires_grad)
            self.save(collections.OrderedDict())
            self.write(pickle.TUPLE + pickle.REDUCE)
        else:
            self._save_plain(tensor, tensor.requires_grad)

    def _save_plain(self, tensor: Any, requires_grad: bool) -> None:
        if tensor.is_meta:
            geometry = (tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), requires_grad)
            return self._save_call("torch._utils", "_rebuild_meta_tensor_no_storage", geometry)
        storage = tensor.untyped_storage()
        number = self._numbers.get(id(storage))
        # Newer dtypes have no storage class of their own in PyTorch.
        typed = tensor.dtype.name in _CLASS_OF
        if number is None:
            number = self._numbers[id(storage)] = len(self.storages)
            self.storages.append(storage)
            self.dtypes.append(tensor.dtype if typed else _C.uint8)
        elif self._legacy and (tensor.dtype if typed else _C.uint8) is not self.dtypes[number]:
            raise ValueError(
                "candelabra.save(): tensors of several dtypes on one storage cannot be stored in PyTorch's old format; leave out "
                "_use_new_zipfile_serialization=False"
            )
        # PyTorch takes a storage's dtype from the first tensor on it; other tensors must state
        # theirs.
        typed = typed and self.dtypes[number] is tensor.dtype
        self._save_name("torch._utils", "_rebuild_tensor_v2" if typed else "_rebuild_tensor_v3")
        self.write(pickle.MARK)
        self.write(pickle.MARK)
        self.save("storage")
        if typed:
            self._save_name("torch", _CLASS_OF[tensor.dtype.name])
        elif self._legacy:
            # PyTorch writes the other class here too, but cannot read it.
            self._save_name("torch", "ByteStorage")
        else:
            self._save_name("torch.storage", "UntypedStorage")
        self.save(str(number))
        self.save(str(storage.device))
        self.save(storage.nbytes() // (tensor.dtype.itemsize if typed else 1))
        if self._legacy:
            self.save(None)
        self.write(pickle.TUPLE + pickle.BINPERSID)
        self.save(tensor.storage_offset())
        self.save(tuple(tensor.shape))
        self.save(tuple(tensor.stride()))
        self.save(requires_grad)
        self.save(collections.OrderedDict())
        if not typed:
            self.save(tensor.dtype)
        self.write(pickle.TUPLE + pickle.REDUCE)
