"""Storages with a dtype, as ``torch.storage`` still has them: deprecated there, and here for the
programs that use them.

Memory itself has no dtype: `candelabra.UntypedStorage` is what tensors lie in, and `TypedStorage`
counts it in elements of one.
"""

from __future__ import annotations

from operator import index

from candelabra import _C
from candelabra.catalogue import OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from candelabra._C import Tensor, dtype
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
    #: Of the old classes: what they are of.
    _fixed: dtype | None = None

    def __init__(
        self,
        *args: Any,
        wrap_storage: Any = None,
        dtype: dtype | None = None,
        device: Device = None,
        _internal: bool = False,
    ) -> None:
        if not _internal:
            _C.warn(_DEPRECATED)
        if self._fixed is not None:
            if dtype is not None:
                raise RuntimeError(f"{type(self).__name__}(): Keyword argument 'dtype' cannot be specified")
            dtype = self._fixed
        if len(args) > 1:
            raise RuntimeError(f"{type(self).__name__}(): Too many positional arguments: it takes a size or a sequence")
        self.dtype = _C.get_default_dtype() if dtype is None else dtype
        if wrap_storage is not None:
            if args:
                raise RuntimeError(
                    f"{type(self).__name__}(): No positional arguments should be given when using 'wrap_storage'"
                )
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage).__name__}"
                )
            self._untyped_storage = wrap_storage
            return
        self._untyped_storage = _memory_of(
            args[0] if args else 0, self.dtype, device, type(self).__name__
        ).untyped_storage()

    def _elements(self) -> Tensor:
        return _C.tensor_on_storage(self._untyped_storage, self.dtype)

    def _like(self, elements: Tensor) -> TypedStorage:
        return TypedStorage(wrap_storage=elements.untyped_storage(), dtype=elements.dtype, _internal=True)

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

    def resizable(self) -> bool:
        """Return whether the size can be changed: it cannot."""
        return False

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
        return self._elements()[self._place(at)].item()

    def __setitem__(self, at: Any, value: Any) -> None:
        if isinstance(value, TypedStorage):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        self._elements()[at if isinstance(at, slice) else self._place(at)] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """Return the elements as Python numbers."""
        return self._elements().tolist()

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        self._elements().fill_(value)
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool | None = None) -> TypedStorage:
        """Copy the elements of a storage of as many, converted."""
        elements = source._elements() if isinstance(source, TypedStorage) else _C.tensor_on_storage(source, self.dtype)
        if elements.numel() != self.size():
            raise RuntimeError(f"size does not match, self was {self.size()} elements but src was {elements.numel()}")
        self._elements().copy_(elements)
        return self

    def clone(self) -> TypedStorage:
        """Return a copy."""
        return self._like(OPERATORS["clone"](self._elements()))

    def cpu(self) -> TypedStorage:
        """Return a copy on the CPU; the storage itself where it is there."""
        return self.to(device="cpu")

    def to(self, *, device: Device, non_blocking: bool = False) -> TypedStorage:
        """Return a copy on a device; the storage itself where it is there."""
        moved = self._untyped_storage.to(device=device)
        return (
            self
            if moved is self._untyped_storage
            else TypedStorage(wrap_storage=moved, dtype=self.dtype, _internal=True)
        )

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of the old class, or a copy of another dtype, which is given as itself or
        by such a class.
        """
        if dtype is None:
            return f"candelabra.{CLASS_NAMES.get(self.dtype.name, 'TypedStorage')}"
        goal = getattr(dtype, "_fixed", dtype)
        return self if goal is self.dtype else self._like(self._elements().to(goal))

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
        return memo.setdefault(id(self), self.clone())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self.data_ptr() == other.data_ptr() and self.dtype is other.dtype

    def __hash__(self) -> int:
        return hash((self.data_ptr(), self.dtype))

    def __repr__(self) -> str:
        lines = "".join(f" {element}\n" for element in self.tolist())
        return (
            f"{lines}[candelabra.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"
        )


def _rebuilt(untyped: _C.Storage, dtype: dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


def _memory_of(given: Any, dtype: dtype, device: Device, name: str) -> Tensor:
    if isinstance(given, (str, bytes)) or (not hasattr(given, "__index__") and not hasattr(given, "__len__")):
        raise TypeError(
            f"{name}(): invalid data type '{type(given).__name__}': it takes a size or a sequence of numbers"
        )
    if isinstance(given, TypedStorage):
        given = given.tolist()
    if hasattr(given, "__len__"):
        return _C.tensor_from_data(list(given), dtype, device)
    size = index(given)
    if size < 0:
        raise RuntimeError(f"{name}(): a storage of {size} elements cannot be made")
    return OPERATORS["empty"]((size,), dtype=dtype, device=device)


def typed_storage_of(tensor: Tensor) -> TypedStorage:
    """Give the memory of a tensor counted in its elements; what ``Tensor.storage()`` returns."""
    _C.warn(_DEPRECATED)
    return TypedStorage(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype, _internal=True)


def _converting(name: str) -> Callable[[TypedStorage], TypedStorage]:
    goal = getattr(_C, name)

    def convert(self: TypedStorage) -> TypedStorage:
        return self.type(goal)

    convert.__doc__ = f"Return a copy of dtype {name}; the storage itself where it has that."
    return convert


for _method, _name in (
    ("double", "float64"), ("float", "float32"), ("half", "float16"), ("bfloat16", "bfloat16"), ("long", "int64"), ("int", "int32"),
    ("short", "int16"), ("char", "int8"), ("byte", "uint8"), ("bool", "bool"), ("complex_float", "complex64"),
    ("complex_double", "complex128"),
):  # fmt: skip
    setattr(TypedStorage, _method, _converting(_name))


class _OldClass(type(TypedStorage)):  # type: ignore[misc]
    """The type of FloatStorage and its relatives; an instance of one is any typed storage of its
    dtype.
    """

    _fixed: dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls._fixed

    @property
    def dtype(cls) -> dtype:
        """The dtype of its storages."""
        return cls._fixed

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        if "dtype" in keywords:
            raise RuntimeError(f"{cls.__name__}(): Keyword argument 'dtype' cannot be specified")
        if len(arguments) > 1:
            raise RuntimeError(f"{cls.__name__}(): Too many positional arguments: it takes a size or a sequence")
        return TypedStorage(*arguments, dtype=cls._fixed, **keywords)

    def __repr__(cls) -> str:
        return f"<class 'candelabra.{cls.__name__}'>"


for _name, _class in CLASS_NAMES.items():
    globals()[_class] = _OldClass(
        _class,
        (),
        {
            "_fixed": getattr(_C, _name),
            "__module__": "candelabra",
            "__doc__": f"Typed storages of dtype {_name}; deprecated.",
        },
    )
