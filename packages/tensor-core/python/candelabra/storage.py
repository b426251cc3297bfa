"""Storages with a dtype, as ``torch.storage`` still has them: deprecated there, and here for the
programs that use them.

Memory itself has no dtype: `candelabra.UntypedStorage` is what tensors lie in, and `TypedStorage`
counts it in elements of one.
"""

from __future__ import annotations

import copy
import sys
from operator import index

from candelabra import _C
from candelabra.catalogue import OPERATORS
from candelabra.composite.methods.storage_methods import CONVERSIONS, refuse_meta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from candelabra._C import Tensor
    from candelabra._C import dtype as _Dtype
    from candelabra.types import Device

UntypedStorage = _C.Storage
#: Names of the old classes by dtype.
CLASS_NAMES = {
    "float64": "DoubleStorage", "float32": "FloatStorage", "float16": "HalfStorage", "bfloat16": "BFloat16Storage", "uint8": "ByteStorage",
    "int8": "CharStorage", "int16": "ShortStorage", "int32": "IntStorage", "int64": "LongStorage", "bool": "BoolStorage",
    "complex64": "ComplexFloatStorage", "complex128": "ComplexDoubleStorage",
}  # fmt: skip
_DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. This should only matter "
    "to you if you are using storages directly.  To access UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()"
)
__all__ = ["TypedStorage", "UntypedStorage", *CLASS_NAMES.values()]


class _RemovalWarning:
    """Warns that typed storages are deprecated: once, or `always`."""

    always = False
    given = False

    def __call__(self) -> None:
        if self.always or not self.given:
            _C.warn(_DEPRECATED)
            self.given = True


removal_warning = _RemovalWarning()


class TypedStorage:
    """Memory counted in elements of one dtype.

    Parameters
    ----------
    *args
        Nothing, a number of elements, or a sequence of numbers.
    wrap_storage
        The memory, instead.
    dtype, device
        By default the default dtype, and the CPU.

    Warns
    -----
    UserWarning
        It is deprecated: ``tensor.untyped_storage()`` is the memory, the tensor itself knows its
        dtype.

    Examples
    --------
    >>> import candelabra, warnings
    >>> warnings.simplefilter("ignore")
    >>> storage = candelabra.tensor([1.0, 2.0]).storage()
    >>> storage.size(), storage.nbytes(), storage[1]
    (2, 8, 2.0)
    """

    is_sparse = False
    dtype: _Dtype
    _untyped_storage: _C.Storage

    def __init__(
        self,
        *args: Any,
        wrap_storage: Any = None,
        dtype: _Dtype | None = None,
        device: Device = None,
        _internal: bool = False,
    ) -> None:
        if not _internal:
            removal_warning()
        if wrap_storage is not None:
            _check_wrapped("TypedStorage.__init__", args, wrap_storage)
            if not isinstance(dtype, _C.dtype):
                error = RuntimeError if dtype is None else TypeError
                raise error(_combination("TypedStorage.__init__", "Argument 'dtype' must be a dtype, and specified"))
            if device is not None:
                raise RuntimeError(
                    _combination(
                        "TypedStorage.__init__",
                        "Argument 'device' should not be specified when 'wrap_storage' is given",
                    )
                )
            self.dtype = dtype
            self._untyped_storage = wrap_storage
            return
        if len(args) > 1:
            raise RuntimeError(_combination("TypedStorage.__init__", "Too many positional arguments"))
        self.dtype = _C.get_default_dtype() if dtype is None else dtype
        self._untyped_storage = _memory_of(args[0] if args else 0, self.dtype, device).untyped_storage()

    def _elements(self) -> Tensor:
        return _C.tensor_on_storage(self._untyped_storage, self.dtype)

    def _wrapped(self, storage: _C.Storage) -> TypedStorage:
        if type(self) is TypedStorage:
            return TypedStorage(wrap_storage=storage, dtype=self.dtype, _internal=True)
        return type(self)(wrap_storage=storage, dtype=self.dtype)

    def _converted(self, goal: _Dtype) -> TypedStorage:
        made = self._elements().to(goal)
        if goal is self.dtype:
            made = OPERATORS["clone"](made)
        return TypedStorage(wrap_storage=made.untyped_storage(), dtype=goal, _internal=True)

    @property
    def _dtype(self) -> _Dtype:
        return self.dtype

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    # ---- the memory

    def untyped(self) -> _C.Storage:
        """Return the memory."""
        return self._untyped_storage

    def size(self) -> int:
        """Return the number of elements."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    __len__ = size

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Return the number of bytes of one element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """Return the address."""
        return self._untyped_storage.data_ptr()

    @property
    def device(self) -> _C.device:
        """Where the memory is."""
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is on the device type ``cuda``."""
        return self.device.type == "cuda"

    def get_device(self) -> int:
        """Return the number of the device within its type; -1 for the host."""
        return -1 if self.device.index is None else self.device.index

    def is_shared(self) -> bool:
        """Return whether the memory is shared between processes."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Move the memory to where other processes see it."""
        self._untyped_storage.share_memory_()
        return self

    def is_pinned(self, device: Device = None) -> bool:
        """Return whether the memory is pinned."""
        return self._untyped_storage.is_pinned(device)

    def pin_memory(self, device: Device = None) -> TypedStorage:
        """Return a copy in pinned memory; the memory itself if it is pinned."""
        return self._wrapped(self._untyped_storage.pin_memory(device))

    @property
    def filename(self) -> str | None:
        """The file of memory from ``from_file(shared=True)``, or None."""
        return self._untyped_storage.filename

    def resizable(self) -> bool:
        """Return whether the size can be changed."""
        return self._untyped_storage.resizable()

    def resize_(self, size: int) -> None:
        """Give the storage another number of elements; see `UntypedStorage.resize_`."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    @classmethod
    def from_buffer(cls, *args: Any, dtype: Any = None, device: Device = None, **kwargs: Any) -> TypedStorage:
        """Return a storage with a copy of the numbers of a buffer; the parameters are those of
        `UntypedStorage.from_buffer`.
        """
        removal_warning()
        fixed = getattr(cls, "dtype", None)
        if fixed is not None and (dtype is not None or device is not None or len(args) == 5):
            raise RuntimeError(
                "from_buffer: 'dtype' can only be specified in UntypedStorage.from_buffer and TypedStorage.from_buffer"
            )
        if device is not None and _C.device(device).type != "cpu":
            raise RuntimeError(f"TypedStorage.from_buffer: Not available for device {device}")
        chosen = fixed or dtype or _C.get_default_dtype()
        storage = UntypedStorage.from_buffer(*args, **{**kwargs, "dtype": chosen})
        return TypedStorage(wrap_storage=storage, dtype=chosen, _internal=True)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """Return a storage of a number of elements on a memory-mapped file; only the classes of one
        dtype have it. See `UntypedStorage.from_file`.
        """
        removal_warning()
        fixed = getattr(cls, "dtype", None)
        if fixed is None:
            raise RuntimeError("from_file can only be called on derived classes")
        storage = UntypedStorage.from_file(filename, shared, size * fixed.itemsize)
        return TypedStorage(wrap_storage=storage, dtype=fixed, _internal=True)

    def _new_shared(self, size: int, *, device: Device = None) -> TypedStorage:
        storage = UntypedStorage._new_shared(size * self.dtype.itemsize, device="cpu" if device is None else device)
        return TypedStorage(wrap_storage=storage, dtype=self.dtype, _internal=True)

    def _share_fd_cpu_(self) -> tuple[int, int]:
        descriptor, nbytes = self._untyped_storage._share_fd_cpu_()
        return descriptor, nbytes // self.dtype.itemsize

    def _share_filename_cpu_(self) -> tuple[bytes, bytes, int]:
        manager, name, nbytes = self._untyped_storage._share_filename_cpu_()
        return manager, name, nbytes // self.dtype.itemsize

    def _write_file(self, f: Any, is_real_file: bool, save_size: bool, element_size: int) -> None:
        self._untyped_storage._write_file(f, is_real_file, save_size, element_size)

    # ---- the elements

    def _place(self, at: Any) -> int:
        if isinstance(at, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        try:
            place = index(at)
        except TypeError:
            raise RuntimeError(f"can't index a {type(self)} with {type(at)}") from None
        size = self.size()
        if not -size <= place < size:
            raise IndexError(f"index {place} out of range for storage of size {size}")
        return place % size

    def __getitem__(self, at: Any) -> Any:
        refuse_meta(self)
        return self._elements()[self._place(at)].item()

    def __setitem__(self, at: Any, value: Any) -> None:
        if isinstance(value, TypedStorage):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        refuse_meta(self)
        self._elements()[at if isinstance(at, slice) else self._place(at)] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """Return the elements as Python numbers."""
        refuse_meta(self)
        return self._elements().tolist()

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        self._elements().fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Copy the bytes of a storage of as many."""
        self._untyped_storage.copy_(source)
        return self

    def clone(self) -> TypedStorage:
        """Return a copy."""
        return self._wrapped(self._untyped_storage.clone())

    def cpu(self) -> TypedStorage:
        """Return a copy on the CPU; the memory itself where it is there."""
        return self.to(device="cpu")

    def cuda(self, device: Device = None, non_blocking: bool = False) -> TypedStorage:
        """Return a copy on a CUDA device; the memory itself where it is there."""
        return self._wrapped(self._untyped_storage.cuda(device, non_blocking))

    def to(self, *, device: Device, non_blocking: bool = False) -> TypedStorage:
        """Return a copy on a device; the storage itself where it is there."""
        moved = self._untyped_storage.to(device=device)
        return self if moved is self._untyped_storage else self._wrapped(moved)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of the class of the dtype, or a copy of another dtype, which is given as
        itself, or by such a class or its name.
        """
        if dtype is None:
            # Programs compare it with a literal: for those that import torch, with PyTorch's.
            package = "torch" if getattr(sys.modules.get("torch"), "Tensor", None) is _C.Tensor else "candelabra"
            return f"{package}.{CLASS_NAMES.get(self.dtype.name, 'TypedStorage')}"
        if isinstance(dtype, str):
            dtype = globals().get(dtype.rpartition(".")[2])
        goal = getattr(dtype, "dtype", dtype)
        if not isinstance(goal, _C.dtype):
            raise TypeError(f"TypedStorage.type(): {dtype!r} is no dtype, and no class of storages of one")
        return self if goal is self.dtype else self._converted(goal)

    def pickle_storage_type(self) -> str:
        """Return the name of the old class."""
        if self.dtype.name not in CLASS_NAMES:
            raise KeyError(f"dtype {self.dtype} is not recognized")
        return CLASS_NAMES[self.dtype.name]

    def __reduce__(self) -> Any:
        return _rebuilt, (self._untyped_storage, self.dtype)

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: Any) -> TypedStorage:
        return self._wrapped(copy.deepcopy(self._untyped_storage, memo))

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __repr__(self) -> str:
        lines = "".join(f" {element}\n" for element in self.tolist())
        return (
            f"{lines}[candelabra.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"
        )


def _rebuilt(untyped: _C.Storage, dtype: _Dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


def _combination(name: str, problem: str) -> str:
    return (
        f"{name} received an invalid combination of arguments. Expected nothing, a size, a sequence of numbers, or wrap_storage=: an "
        f"UntypedStorage\n{problem}"
    )


def _check_wrapped(name: str, args: tuple[Any, ...], storage: Any) -> None:
    if args:
        raise RuntimeError(_combination(name, "No positional arguments should be given when using 'wrap_storage'"))
    if not isinstance(storage, UntypedStorage):
        raise TypeError(_combination(name, f"Argument 'wrap_storage' must be UntypedStorage, but got {type(storage)}"))


def _memory_of(given: Any, dtype: _Dtype, device: Device) -> Tensor:
    is_size = hasattr(given, "__index__") and not isinstance(given, _C.Tensor)
    is_sequence = hasattr(given, "__len__") and hasattr(given, "__getitem__") and hasattr(given, "index")
    if isinstance(given, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(given).__name__}'")
    if not is_size and not is_sequence:
        raise TypeError(_combination("TypedStorage.__init__", f"Argument type not recognized: {type(given)}"))
    if not is_size:
        return _C.tensor_from_data(list(given), dtype, device)
    size = index(given)
    if size < 0:
        raise RuntimeError(f"TypedStorage(): a storage of {size} elements cannot be made")
    return OPERATORS["empty"]((size,), dtype=dtype, device=device)


def typed_storage_of(tensor: Tensor) -> TypedStorage:
    """Give the memory of a tensor counted in its elements; what ``Tensor.storage()`` returns."""
    removal_warning()
    return TypedStorage(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype, _internal=True)


def _converting(name: str) -> Callable[[TypedStorage], TypedStorage]:
    goal = getattr(_C, name)

    def convert(self: TypedStorage) -> TypedStorage:
        return self._converted(goal)

    convert.__doc__ = f"Return a copy of dtype {name}."
    return convert


for _method, _name in CONVERSIONS.items():
    setattr(TypedStorage, _method, _converting(_name))


# What PyTorch's own modules call, of which some programs have copies.
for _method in (
    "size", "nbytes", "element_size", "data_ptr", "resize_", "is_shared", "share_memory_", "pickle_storage_type",
):  # fmt: skip
    setattr(TypedStorage, f"_{_method}", getattr(TypedStorage, _method))
for _method in ("getitem", "setitem", "deepcopy"):
    setattr(TypedStorage, f"_{_method}", getattr(TypedStorage, f"__{_method}__"))


class _LegacyStorageMeta(type(TypedStorage)):  # type: ignore[misc]
    """The type of FloatStorage and its relatives; an instance of one is any typed storage of its
    dtype.
    """

    dtype: _Dtype
    device_type: str

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            type(instance) is TypedStorage
            and instance.dtype is cls.__dict__.get("dtype")
            and instance.device.type == cls.device_type
        )

    def __call__(cls, *arguments: Any, wrap_storage: Any = None, _internal: bool = False, **keywords: Any) -> Any:
        if cls is _LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        name = f"{cls.__name__}.__new__"
        if keywords:
            raise RuntimeError(_combination(name, f"Keyword argument '{next(iter(keywords))}' cannot be specified"))
        if wrap_storage is not None:
            _check_wrapped(name, arguments, wrap_storage)
        elif len(arguments) > 1:
            raise RuntimeError(_combination(name, "Too many positional arguments"))
        elif cls.device_type != "cpu":
            return TypedStorage(*arguments, dtype=cls.dtype, device=cls.device_type, _internal=_internal)
        return TypedStorage(*arguments, wrap_storage=wrap_storage, dtype=cls.dtype, _internal=_internal)

    def __repr__(cls) -> str:
        return f"<class 'candelabra.{cls.__name__}'>"


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """The base of the classes of storages of one dtype; deprecated."""

    device_type = "cpu"

    @classmethod
    def _new_shared(cls, size: int, *, device: Device = None) -> TypedStorage:  # type: ignore[override]
        storage = UntypedStorage._new_shared(size * cls.dtype.itemsize, device="cpu" if device is None else device)
        return TypedStorage(wrap_storage=storage, dtype=cls.dtype, _internal=True)


for _name, _class in CLASS_NAMES.items():
    globals()[_class] = _LegacyStorageMeta(
        _class,
        (_LegacyStorage,),
        {
            "dtype": getattr(_C, _name),
            "_dtype": getattr(_C, _name),
            "__module__": "candelabra",
            "__doc__": f"Typed storages of dtype {_name}; deprecated.",
        },
    )
