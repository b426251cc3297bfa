"""PyTorch's legacy tensor types (FloatTensor and its relatives): constructors that support
isinstance.
"""

from __future__ import annotations

import sys
from operator import index

from candelabra import _C
from candelabra.catalogue import OPERATORS
from candelabra.layout import strided
from candelabra.settings import unset_memory

from ..movement.copying import TYPE_NAMES
from ..registration import FUNCTIONS, function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor, device, dtype
    from candelabra.types import Device

_Tensor = _C.Tensor
_empty = OPERATORS["empty"]
_SPELLINGS = "new() takes sizes, a sequence of numbers, a tensor or a storage, and device="


class TensorType(type):
    """The type of FloatTensor and its relatives. Tensors of its dtype and device type are its
    instances.
    """

    dtype: dtype
    device_type: str
    layout = strided
    is_sparse = False

    @property
    def is_cuda(cls) -> bool:
        """Whether its tensors are on the device type ``cuda``."""
        return cls.device_type == "cuda"

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> TensorType:
        if bases:
            raise TypeError(f"type 'torch.{bases[0].__name__}' is not an acceptable base type")
        return super().__new__(mcs, name, bases, namespace)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Tensor) and instance.dtype is cls.dtype and instance.device.type == cls.device_type

    def __call__(cls, *data: Any, **keywords: Any) -> Any:
        return legacy_tensor(cls.dtype, cls.device_type, data, keywords)

    def __repr__(cls) -> str:
        return f"<class 'candelabra.{cls.__qualname__}'>"


_EXAMPLE = """A tensor of dtype {dtype}, on the CPU: PyTorch's old constructor.

    Called with sizes it makes a tensor without setting its elements; with a sequence of numbers it copies them; with a tensor
    of this dtype, or with a storage, it shares their memory. ``isinstance`` asks for dtype and device. New code says
    ``candelabra.tensor(data, dtype={dtype})`` or ``candelabra.empty(sizes, dtype={dtype})``.

    Raises
    ------
    TypeError
        Where the argument is none of these, or a tensor of another dtype.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.{name}([1, 0]).dtype
    {dtype}
    >>> isinstance(candelabra.ones(2, dtype={dtype}), candelabra.{name})
    True
    """


def _tensor_type(name: str, of: dtype) -> TensorType:
    namespace = {
        "__module__": "candelabra", "__doc__": _EXAMPLE.format(dtype=of, name=name), "dtype": of, "device_type": "cpu",
    }  # fmt: skip
    return TensorType(name, (), namespace)


#: The types by name, published as attributes of the package.
TENSOR_TYPES: dict[str, TensorType] = {
    f"{short}Tensor": _tensor_type(f"{short}Tensor", of)
    for of, short in TYPE_NAMES.items()
    if not of.is_complex and of not in (_C.uint16, _C.uint32, _C.uint64)
}
FUNCTIONS.update(TENSOR_TYPES)


def dtype_and_device(kind: Any) -> tuple[dtype | None, str]:
    """Return dtype and device type of a tensor type or of its name; the dtype is None if there is
    no such type.
    """
    if isinstance(kind, TensorType):
        return kind.dtype, kind.device_type
    if isinstance(kind, str):
        package, _, rest = kind.partition(".")
        place, _, name = rest.rpartition(".")
        if package in ("candelabra", "torch") and "." not in place:
            for of, short in TYPE_NAMES.items():
                if name == f"{short}Tensor":
                    return of, place or "cpu"
    return None, "cpu"


@function(method=False)
def set_default_tensor_type(t: Any) -> None:
    """Set default dtype and default device by a tensor type; deprecated.

    Use :func:`candelabra.set_default_dtype` and :func:`candelabra.set_default_device`.

    Parameters
    ----------
    t : type or str
        ``candelabra.DoubleTensor`` or ``"candelabra.DoubleTensor"``,
        ``"candelabra.cuda.FloatTensor"``.

    Raises
    ------
    TypeError
        Where it is none, or not of a floating-point dtype.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.set_default_tensor_type(candelabra.DoubleTensor)
    >>> candelabra.get_default_dtype()
    candelabra.float64
    >>> candelabra.set_default_tensor_type("candelabra.FloatTensor")
    """
    dtype, device = dtype_and_device(t)
    if dtype is None:
        raise TypeError(
            f"invalid type object: only floating-point tensor types are supported as the default type, but got {t!r}; "
            "use set_default_dtype() for a dtype"
        )
    if not dtype.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, but got {t!r}")
    _C.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and torch.set_default_device() as alternatives."
    )
    _C.set_default_dtype(dtype)
    _C.set_default_device(device)


def legacy_tensor(of: dtype, where: device | str, data: tuple[Any, ...], keywords: dict[str, Any]) -> Tensor:
    """Return the tensor that the legacy constructors create from their arguments."""
    device = keywords.pop("device", None)
    if device is not None and data and isinstance(data[0], _Tensor):
        raise RuntimeError(
            "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported. Use torch.tensor(...) or "
            "torch.as_tensor(...) instead."
        )
    place = _place(where, device)
    for name in ("size", "data", "other", "storage"):
        if name in keywords and not data:
            data = (keywords.pop(name),)
            if name == "size":
                data = tuple(data[0])
    if keywords:
        raise TypeError(f"new() got an unexpected keyword argument '{next(iter(keywords))}': {_SPELLINGS}")
    if len(data) == 1 and (isinstance(data[0], bool) or not isinstance(data[0], int)):
        return _of_one(data[0], of, place)
    sizes = [_size(size) for size in data] if data else [0]
    return unset_memory(_empty(sizes, dtype=of, device=place))


def _place(where: device | str, given: Device) -> device:
    own = _C.device(where) if isinstance(where, str) else where
    if given is None:
        return own
    place = _C.device(given)
    if place.type != own.type:
        raise RuntimeError(
            f"legacy constructor expects device type: {own.type} but device type: {place.type} was passed"
        )
    return place


def _size(size: Any) -> int:
    try:
        number = index(size)
    except TypeError:
        raise TypeError(
            f"new() received an invalid combination of arguments: sizes must be ints, but got {type(size).__name__}: {_SPELLINGS}"
        ) from None
    if number < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {number}")
    return number


def _of_one(given: Any, of: dtype, place: device) -> Tensor:
    if isinstance(given, _Tensor):
        if given.dtype is not of or given.device.type != place.type:
            raise TypeError(
                f"new(): expected a tensor of dtype {of} on {place.type}, but got one of dtype {given.dtype} on {given.device.type}; "
                "convert it with .to()"
            )
        return OPERATORS["detach"](given)
    if isinstance(given, _C.Storage):
        return _C.tensor_on_storage(given, of)
    typed = sys.modules.get("candelabra.storage")
    if typed is not None and isinstance(given, typed.TypedStorage):
        if given.dtype is not of:
            raise RuntimeError(
                f"Expected a Storage of type {TYPE_NAMES[of]} or an UntypedStorage, but got type {TYPE_NAMES[given.dtype]} for argument 1 "
                "'storage'"
            )
        return _C.tensor_on_storage(given.untyped(), of)
    if isinstance(given, _C.Size):
        return unset_memory(_empty(given, dtype=of, device=place))
    if isinstance(given, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(given).__name__}'")
    if hasattr(given, "__index__") and not hasattr(given, "__len__") and not isinstance(given, bool):
        return unset_memory(_empty([_size(given)], dtype=of, device=place))
    if isinstance(given, (dict, set)) or not hasattr(given, "__len__"):
        raise TypeError(f"new(): data must be a sequence (got {type(given).__name__}): {_SPELLINGS}")
    return _C.tensor_from_data(given, of, place)


@function(package=False)
def new(self: Tensor, *data: Any, **keywords: Any) -> Tensor:
    """Return a tensor of this dtype and device, as the legacy constructors do.

    Parameters
    ----------
    *data
        Sizes, for an uninitialized tensor; or a sequence of numbers, which is copied; or a tensor
        of the same dtype or a storage, whose memory is shared. Without arguments the result is
        empty.
    device : device, optional
        Of the same device type.

    Raises
    ------
    TypeError
        If the argument is none of these.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ones(1, dtype=candelabra.int64).new([1, 2])
    tensor([1, 2])
    """
    return legacy_tensor(self.dtype, self.device, data, keywords)


# The arguments of Tensor(...) other than sizes, sequences and tensors.
_C.set_legacy_constructor(
    lambda *data, **keywords: legacy_tensor(_C.get_default_dtype(), _C.get_default_device(), data, keywords)
)
