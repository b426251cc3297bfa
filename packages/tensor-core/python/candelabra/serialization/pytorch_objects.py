"""Objects that the pickles in PyTorch's files refer to: tensors, storages, parameters, and a few
Python classes.
"""

from __future__ import annotations

import collections

from candelabra import _C
from candelabra.absent import REASONS
from candelabra.catalogue import OPERATORS
from candelabra.layout import strided
from candelabra.storage import TypedStorage

from . import allowing, plain_objects
from .errors import FileError, NotReadError, UnsafeFileError
from .limits import Budget
from .places import leaf, meta_tensor, named_device, parameter, typed_tensor, whole
from .unpickler import EXTRA_LEAVES, FINISHED, Allowed, Machine, Named, set_attributes, set_state, verified

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from candelabra._C import Tensor

#: PyTorch's storage classes and their dtypes.
STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
    "BoolStorage": "bool", "ComplexDoubleStorage": "complex128", "ComplexFloatStorage": "complex64", "UntypedStorage": "uint8",
}  # fmt: skip
#: The size of their numbers, for complex ones of a part: the unit of byte swapping.
NUMBERS = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "complex128": 8,
    "complex64": 4,
    "complex32": 2,
}

#: Known names that are not supported, and what to do instead.
_NOT_READ = {
    "_rebuild_sparse_tensor": "a sparse tensor, and there are no sparse tensors here: save tensor.to_dense()",
    "_rebuild_sparse_csr_tensor": "a sparse tensor, and there are no sparse tensors here: save tensor.to_dense()",
    "_rebuild_nested_tensor": "a nested tensor, and there are none here: save tensor.unbind()",
    "_rebuild_qtensor": "a quantized tensor, and there are none here: save tensor.dequantize()",
    "_rebuild_device_tensor_from_numpy": "a tensor of a device whose memory is not in the file: save tensor.cpu()",
    "_rebuild_device_tensor_from_cpu_tensor": "a tensor of a device whose memory is not in the file: save tensor.cpu()",
}


class StorageClass(Named):
    """A storage class that a pickle names."""

    __slots__ = ("dtype",)

    def __init__(self, name: str, dtype: Any) -> None:
        super().__init__(f"torch.{name}")
        self.dtype = dtype


class Bytes(TypedStorage):
    """A storage in a pickle: its bytes as a tensor, and its dtype."""

    def __init__(self, flat: Tensor | None, dtype: Any) -> None:
        self.flat = flat
        self.dtype = dtype

    def finish(self) -> None:
        """Become the storage itself, which is in the file besides those of tensors."""
        if self.flat is not None:
            whole, begin, length = self.flat.untyped_storage(), self.flat.storage_offset(), self.flat.numel()
            self._untyped_storage = whole if length == whole.nbytes() else whole[begin : begin + length]
            del self.flat
            self.__class__ = TypedStorage  # type: ignore[assignment]


class Objects:
    """Creates the objects of one pickle.

    Parameters
    ----------
    persistent
        Returns the `Bytes` of a persistent id.
    """

    def __init__(self, persistent: Callable[[Any], Any]) -> None:
        self._persistent = persistent
        self._machine: Machine | None = None
        names: dict[tuple[str, str], Any] = {
            ("torch._utils", "_rebuild_tensor"): self._tensor,
            ("torch._utils", "_rebuild_tensor_v2"): self._tensor,
            ("torch._utils", "_rebuild_tensor_v3"): self._tensor_of_dtype,
            ("torch._utils", "_rebuild_meta_tensor_no_storage"): self._meta_tensor,
            ("torch._utils", "_rebuild_parameter"): self._parameter,
            ("torch._utils", "_rebuild_parameter_with_state"): self._parameter,
            ("torch._utils", "_rebuild_wrapper_subclass"): self._wrapper,
            ("torch._tensor", "_rebuild_from_type_v2"): self._of_class,
            ("torch", "Size"): _size,
            ("torch", "device"): _device,
            ("torch.serialization", "_get_layout"): _layout,
            ("_codecs", "encode"): _encoded,
            ("collections", "OrderedDict"): self._ordered,
            ("collections", "Counter"): self._counter,
            ("collections", "defaultdict"): self._defaultdict,
        }
        names.update(plain_objects.makers())
        for builtins in ("builtins", "__builtin__"):
            names[builtins, "set"] = self._set
            names[builtins, "frozenset"] = lambda *given: frozenset(self._set(*given))
            names[builtins, "complex"] = _complex
            names[builtins, "bytearray"] = _bytearray
            names[builtins, "bytes"] = _no_bytes
        self._names = {found: Named(".".join(found), make) for found, make in names.items()}
        self._names["collections", "OrderedDict"].stands_for = collections.OrderedDict
        for builtins in ("builtins", "__builtin__"):
            self._names[builtins, "set"].stands_for = set
            # Factories of defaultdicts.
            for kind in (dict, list, int, float, str, bool, tuple):
                self._names[builtins, kind.__name__] = Named(kind.__name__, None, kind)
        for found in (
            ("torch", "Tensor"),
            ("torch._tensor", "Tensor"),
            ("torch.nn.parameter", "Parameter"),
            ("torch.nn.parameter", "Buffer"),
        ):
            self._names[found] = Named(".".join(found))

    def run(self, text: bytes, encoding: str = "utf-8", length: int | None = None) -> tuple[Any, int]:
        """Run a pickle; return its object and its end. A compressed one has `length` bytes in
        the file.
        """
        budget = Budget(len(text) if length is None else min(length, len(text)))
        self._machine = Machine(text, self.find, self._persistent, budget, encoding)
        try:
            found = self._machine.run()
            return verified(found, self._machine), self._machine.at
        finally:
            self._machine = None

    @property
    def _budget(self) -> Any:
        assert self._machine is not None
        return self._machine.budget

    def find(self, module: str, name: str) -> Any:
        """Return the object that a pickle names."""
        given = allowing.allowed(module, name)
        if given is not None:
            return Allowed(f"{module}.{name}", given)
        found = self._names.get((module, name))
        if found is not None:
            return found
        if module in ("torch", "torch.storage") and name in STORAGES:
            return StorageClass(name, getattr(_C, STORAGES[name]))
        if module == "torch" and isinstance(getattr(_C, name, None), (_C.dtype, _C.memory_format)):
            return getattr(_C, name)
        if module == "torch" and name == "strided":
            return strided
        if module in ("torch._utils", "torch") and name in _NOT_READ:
            raise NotReadError(f"it holds {_NOT_READ[name]}")
        if module == "torch" and name in REASONS:
            raise NotReadError(f"it holds torch.{name}: {REASONS[name]}")
        raise UnsafeFileError(
            f"it holds {module[:200]}.{name[:200]}, and only tensors and plain data are read; save the state_dict() instead of the module. "
            "A class or a function that any file may call can be allowed: candelabra.serialization.add_safe_globals([...])",
            f"{module[:200]}.{name[:200]}",
        )

    # ---- tensors

    def _tensor(
        self,
        storage: Any,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: Any = False,
        hooks: Any = None,
        metadata: Any = None,
    ) -> Tensor:
        return self._typed(storage, offset, size, stride, None, requires_grad, metadata)

    def _tensor_of_dtype(
        self,
        storage: Any,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: Any,
        hooks: Any,
        dtype: Any,
        metadata: Any = None,
    ) -> Tensor:
        return self._typed(storage, offset, size, stride, dtype, requires_grad, metadata)

    def _typed(
        self, storage: Any, offset: Any, size: Any, stride: Any, dtype: Any, requires_grad: Any, metadata: Any
    ) -> Tensor:
        if not isinstance(storage, Bytes) or not isinstance(storage.dtype if dtype is None else dtype, _C.dtype):
            raise FileError("a tensor without a storage")
        if not isinstance(size, (tuple, list)) or not isinstance(stride, (tuple, list)):
            raise FileError("a tensor with impossible sizes or strides")
        dtype = storage.dtype if dtype is None else dtype
        if storage.flat is None:
            return leaf(OPERATORS["empty"]((0,), dtype=dtype, device="cpu"), requires_grad)
        if any(type(n) is not int or n < 0 for n in (offset, *size[:64], *stride[:64])) or len(size) != len(stride):
            raise FileError("a tensor with impossible sizes or strides")
        made = typed_tensor(storage.flat, dtype, size, stride, offset)
        # PyTorch may represent a tensor as the conjugate or the negative of its memory.
        if isinstance(metadata, dict):
            for flag, operator in (("conj", "conj_physical"), ("neg", "neg")):
                if metadata.get(flag):
                    if made.dtype is _C.bool:
                        raise FileError("a tensor of bools that is negative")
                    self._budget.spend(made.numel() * made.dtype.itemsize // 16)
                    if made.numel() * made.dtype.itemsize > 4 * storage.flat.numel():
                        raise FileError("a tensor that is far larger than its storage, and conjugate or negative")
                    made = OPERATORS[operator](made)
        return leaf(made, requires_grad)

    def _meta_tensor(self, dtype: Any, size: Any, stride: Any, requires_grad: Any = False) -> Tensor:
        if (
            not isinstance(dtype, _C.dtype)
            or not isinstance(size, (tuple, list))
            or not isinstance(stride, (tuple, list))
        ):
            raise FileError("a tensor with impossible sizes or strides")
        return leaf(meta_tensor(dtype, size, stride), requires_grad)

    def _parameter(self, data: Any, requires_grad: Any = True, hooks: Any = None, state: Any = None) -> Any:
        if not isinstance(data, _C.Tensor):
            raise FileError("a parameter without a tensor")
        made = parameter(data, requires_grad)
        if state:
            set_attributes(made, state, self._budget)
        return made

    def _wrapper(
        self, cls: Any, dtype: Any, size: Any, stride: Any, offset: Any, layout: Any, device: Any, requires_grad: Any
    ) -> Tensor:
        if not isinstance(cls, Allowed):
            name = str(getattr(cls, "name", "unknown"))[:200]
            raise UnsafeFileError(f"it holds a tensor of the class {name}, which wraps others", name)
        if not isinstance(dtype, _C.dtype) or not isinstance(device, _C.device) or whole(offset) >= 1 << 58:
            raise FileError("a tensor of impossible properties")
        meta_tensor(dtype, size, stride)  # raises where the sizes or strides are impossible
        return _C.Tensor._make_wrapper_subclass(
            cls.object,
            size,
            strides=stride,
            storage_offset=offset,
            dtype=dtype,
            device=device,
            requires_grad=bool(requires_grad),
        )

    def _of_class(self, function: Any, cls: Any, arguments: Any, state: Any) -> Any:
        if not isinstance(function, Named) or not isinstance(cls, Named) or not isinstance(arguments, tuple):
            raise FileError("a tensor of a class without a name")
        makers = (self._tensor, self._tensor_of_dtype, self._meta_tensor, self._parameter, self._wrapper)
        if function.call not in makers:
            raise UnsafeFileError(f"a tensor that {function.name} makes")
        if isinstance(cls, Allowed) and isinstance(cls.object, type) and issubclass(cls.object, _C.Tensor):
            found = function.call(*arguments)
            found = found if type(found) is cls.object else found.as_subclass(cls.object)
            set_state(found, state)
            return found
        if cls.name not in (
            "torch.Tensor",
            "torch._tensor.Tensor",
            "torch.nn.parameter.Parameter",
            "torch.nn.parameter.Buffer",
        ):
            raise UnsafeFileError(
                f"it holds a tensor of the class {cls.name[:200]}, and only tensors and plain data are read",
                cls.name[:200],
            )
        made = function.call(*arguments)
        if cls.name.endswith("Parameter"):
            made = self._parameter(made, made.requires_grad)
        if isinstance(state, tuple) and len(state) == 2:
            state = state[0]
        if state:
            set_attributes(made, state, self._budget)
        return made

    # ---- classes of Python

    def _pairs(self, given: Any) -> list[tuple[Any, Any]]:
        pairs = list(given.items()) if isinstance(given, dict) else given
        if not isinstance(pairs, (list, tuple)) or not all(
            isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in pairs
        ):
            raise FileError("a dict of what are no pairs")
        return [(self._budget.key(key), value) for key, value in pairs]

    def _ordered(self, pairs: Any = ()) -> Any:
        return collections.OrderedDict(self._pairs(pairs))

    def _counter(self, given: Any = ()) -> Any:
        return collections.Counter(dict(self._pairs(given)))

    def _defaultdict(self, factory: Any = None, pairs: Any = ()) -> Any:
        if factory is not None and (not isinstance(factory, Named) or factory.stands_for is None):
            raise UnsafeFileError("a defaultdict that would call what is no class of plain data")
        return collections.defaultdict(None if factory is None else factory.stands_for, self._pairs(pairs))

    def _set(self, members: Any = ()) -> set[Any]:
        if not isinstance(members, (list, tuple, set, frozenset)):
            raise FileError("a set of what is no list")
        return {self._budget.key(member) for member in members}


EXTRA_LEAVES.add(type(strided))
FINISHED[Bytes] = Bytes.finish


def _size(numbers: Any = ()) -> Any:
    if not isinstance(numbers, (list, tuple)) or not all(type(n) is int and 0 <= n < 1 << 63 for n in numbers):
        raise FileError("a size of what are no numbers")
    return _C.Size(numbers)


def _device(*arguments: Any) -> Any:
    if not 0 < len(arguments) < 3 or not all(type(argument) in (str, int) for argument in arguments):
        raise FileError("a device without a name")
    return named_device(":".join(str(argument)[:40] for argument in arguments))


def _layout(name: Any) -> Any:
    if name != "torch.strided":
        raise FileError(f"it holds the layout {str(name)[:40]}, and there are only strided tensors here")
    return strided


def _encoded(text: Any, encoding: Any = "utf-8") -> bytes:
    # Protocol 2 writes bytes like this.
    if encoding != "latin1" or not isinstance(text, str):
        raise FileError(f"bytes in the encoding {str(encoding)[:40]}")
    return text.encode("latin1")


def _no_bytes() -> bytes:
    # Protocol 2 writes empty bytes like this.
    return b""


def _complex(real: Any = 0.0, imaginary: Any = 0.0) -> complex:
    if not isinstance(real, (int, float)) or not isinstance(imaginary, (int, float)):
        raise FileError("a complex number of what are no numbers")
    return complex(real, imaginary)


def _bytearray(content: Any = b"", *encoding: Any) -> bytearray:
    # bytearray(number) would allocate as much as the file says.
    if isinstance(content, str) and encoding == ("latin-1",):
        return bytearray(content, "latin-1")
    if not isinstance(content, (bytes, bytearray)) or encoding:
        raise FileError("a bytearray without bytes")
    return bytearray(content)
