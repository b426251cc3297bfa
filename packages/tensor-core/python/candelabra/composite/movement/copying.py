"""Conversions between dtypes and devices, by all of PyTorch's spellings."""

from __future__ import annotations

import sys

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..memory_formats import suggested
from ..registration import fallback, fast_path, function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor, dtype, memory_format
    from candelabra.types import Device

_to = OPERATORS["to"]
_to_copy = OPERATORS["_to_copy"]
_Tensor = _C.Tensor
_dtype = _C.dtype
_device = _C.device


@function(package=False, operator=True)
def to(
    self: Tensor,
    *arguments: Any,
    dtype: dtype | None = None,
    device: Device = None,
    other: Tensor | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Convert to a dtype, a device, or those of another tensor.

    Called as ``to(dtype)``, ``to(device)``, ``to(device, dtype)`` or ``to(other)``, each followed
    by `non_blocking` and `copy`.

    Parameters
    ----------
    dtype : dtype, optional
        Of the result.
    device : device, optional
        Of the result.
    other : Tensor, optional
        The tensor whose dtype and device the result has.
    non_blocking : bool
        Whether a copy between devices may be asynchronous.
    copy : bool
        Whether to copy even if nothing changes.
    memory_format : memory_format, optional
        The memory format of the result; by default this tensor's.

    Returns
    -------
    Tensor
        This tensor itself if nothing changes.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.tensor([1, 2]).to(candelabra.float64)
    tensor([1., 2.], dtype=candelabra.float64)
    """
    if len(arguments) == 1 and type(arguments[0]) is _dtype:
        dtype = arguments[0]
    elif arguments:
        first, *rest = arguments
        if type(first) is _dtype or any(first is kind for kind in (float, int, bool, complex)):
            dtype = first
        elif isinstance(first, _Tensor):
            other = first
        elif first is None or isinstance(first, (_device, str, int)):
            device = first
            if rest and (rest[0] is None or type(rest[0]) is _dtype or rest[0] in (float, int, complex)):
                dtype = rest.pop(0)
        else:
            raise TypeError(
                f"to(): expected a dtype, a device or a Tensor as first argument, but got {type(first).__name__}"
            )
        if rest and type(rest[0]) is _dtype:
            raise TypeError(
                "to() received an invalid combination of arguments - got a second dtype; it is called as to(dtype), to(device, dtype) or "
                "to(other)"
            )
        if rest:
            if not isinstance(rest[0], (bool, int)):
                raise TypeError(
                    f"to() received an invalid combination of arguments - got ({', '.join(type(a).__name__ for a in arguments)}); it is called "
                    "as to(dtype), to(device, dtype) or to(other), each followed by non_blocking and copy"
                )
            non_blocking = rest.pop(0)
        if rest:
            copy = rest.pop(0)
        if rest:
            raise TypeError(f"to() takes from 0 to 4 positional arguments but {len(arguments)} were given")
    if other is not None:
        dtype = other.dtype if dtype is None else dtype
        device = other.device if device is None else device
    if not copy:
        if device is not None:
            if type(device) is not _device:
                device = _by_text(device)
            same = device == self.device
        else:
            same = True
        if same and (dtype is None or dtype is self.dtype) and _has_format(self, memory_format):
            return self
    return _to_copy(self, dtype=dtype, device=device, non_blocking=non_blocking, memory_format=memory_format)


def _recorded(self: Tensor, target: Any, second: Any, **options: Any) -> Tensor:
    return to(self, *(given for given in (target, second) if given is not None), **options)


OPERATORS["to"].composite = _recorded


# Devices by text: a loaded device type stays loaded.
_devices: dict[Any, Any] = {}


def _by_text(text: Any) -> Any:
    found = _devices.get(text) if type(text) is str else None
    if found is None:
        found = _device(text)
        if type(text) is str:
            _devices[text] = found
    return found


def _has_format(self: Tensor, memory_format: memory_format | None) -> bool:
    if memory_format is None or memory_format is _C.preserve_format:
        return True
    return suggested(self) is memory_format


def _conversion(name: str, dtype: dtype) -> None:
    def convert(self: Tensor, memory_format: memory_format | None = None) -> Tensor:
        if self.dtype is dtype and memory_format is None:
            return self
        return _to(self, dtype) if memory_format is None else to(self, dtype, memory_format=memory_format)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"""Convert to {dtype.name}; the tensor itself where it is of that dtype.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.tensor([1, 0]).{name}().dtype
    candelabra.{dtype.name}
    """
    function(package=False)(fast_path(OPERATORS["to"], appended=(dtype,))(convert))


for _name, _kind in {
    "bool": _C.bool, "byte": _C.uint8, "char": _C.int8, "short": _C.int16, "int": _C.int32, "long": _C.int64, "half": _C.float16,
    "bfloat16": _C.bfloat16, "float": _C.float32, "double": _C.float64, "chalf": _C.complex32, "cfloat": _C.complex64, "cdouble": _C.complex128,
}.items():  # fmt: skip
    _conversion(_name, _kind)


@function(name="type", package=False)
def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Return the name of the tensor's type, or convert to a dtype.

    Parameters
    ----------
    dtype : dtype, str or tensor type, optional
        The new dtype: ``candelabra.int64``, ``"candelabra.LongTensor"`` or
        ``candelabra.LongTensor``.
    non_blocking : bool
        Ignored; for compatibility with PyTorch.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.tensor([1.0]).type()
    'candelabra.FloatTensor'
    """
    if dtype is None:
        where = "" if self.device.type == "cpu" else f"{self.device.type}."
        # Programs compare the name with a literal: for those that import torch, it is PyTorch's.
        package = "torch" if getattr(sys.modules.get("torch"), "Tensor", None) is _C.Tensor else "candelabra"
        return f"{package}.{where}{TYPE_NAMES[self.dtype]}Tensor"
    if hasattr(dtype, "device_type"):  # candelabra.LongTensor and its relatives
        return to(self, dtype=dtype.dtype, device=dtype.device_type)
    if dtype is _Tensor:
        return to(self, _C.get_default_dtype(), device="cpu")
    if isinstance(dtype, str):
        where, _, wanted = dtype.rpartition(".")
        for known, name in TYPE_NAMES.items():
            if wanted == known.name:
                return to(self, known)
            if wanted == f"{name}Tensor":
                # "candelabra.cuda.FloatTensor" is on a GPU, "candelabra.FloatTensor" on the CPU.
                return to(self, dtype=known, device=where.partition(".")[2] or "cpu")
        raise ValueError(f"invalid type: '{dtype}'")
    return to(self, dtype)


TYPE_NAMES = {
    _C.bool: "Bool", _C.uint8: "Byte", _C.int8: "Char", _C.int16: "Short", _C.int32: "Int", _C.int64: "Long", _C.float16: "Half",
    _C.bfloat16: "BFloat16", _C.float32: "Float", _C.float64: "Double", _C.complex64: "ComplexFloat", _C.complex128: "ComplexDouble",
    _C.uint16: "UInt16", _C.uint32: "UInt32", _C.uint64: "UInt64", _C.complex32: "ComplexHalf", _C.float8_e4m3fn: "Float8_e4m3fn",
    _C.float8_e5m2: "Float8_e5m2", _C.float8_e4m3fnuz: "Float8_e4m3fnuz", _C.float8_e5m2fnuz: "Float8_e5m2fnuz",
    _C.float8_e8m0fnu: "Float8_e8m0fnu",
}  # fmt: skip


@function(package=False)
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Convert to the dtype and device of another tensor."""
    return to(self, other)


@function(package=False)
def cpu(self: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Copy to the CPU; the tensor itself if it is there."""
    return to(self, device="cpu", memory_format=memory_format)


@function(package=False)
def cuda(
    self: Tensor, device: Device = None, non_blocking: bool = False, memory_format: memory_format | None = None
) -> Tensor:
    """Copy to a CUDA device, by default the first one; the tensor itself if it is there."""
    if device is None:
        device = "cuda"
    elif isinstance(device, int):
        device = f"cuda:{device}"
    return to(self, device=device, non_blocking=non_blocking, memory_format=memory_format)


@function()
def detach_(self: Tensor) -> Tensor:
    """Detach this tensor from the autograd graph, in place.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.detach_(candelabra.ones(1, requires_grad=True)).requires_grad
    False
    """
    if self._is_view():
        raise RuntimeError("Can't detach views in-place; use detach() instead.")
    self._clear_history()
    self.requires_grad = False
    return self


@fallback("fill_")
def _fill_of_tensor(self: Tensor, value: Any) -> Any:
    if isinstance(value, _C.Tensor) and value.ndim > 0:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions; copy_() takes others"
        )
    return NotImplemented


@fallback("copy_")
def _copy_of_number(self: Tensor, src: Any = None, non_blocking: bool = False, *, other: Any = None) -> Any:
    given = src if other is None else other
    if isinstance(given, _C.Tensor) and other is not None and src is None:
        return OPERATORS["copy_"](self, given, non_blocking)
    if not isinstance(self, _C.Tensor) or not isinstance(given, (bool, int, float, complex)):
        return NotImplemented
    return OPERATORS["copy_"](self, _C.tensor_from_data(given, None, None), non_blocking)


@function(package=False)
def zero_(self: Tensor) -> Tensor:
    """Set every element to zero.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ones(2).zero_()
    tensor([0., 0.])
    """
    return OPERATORS["fill_"](self, 0)


@function(name="zero_", method=False)
def _zero_function(input: Tensor) -> Tensor:
    """Set every element to zero; see :meth:`Tensor.zero_`."""
    return OPERATORS["fill_"](input, 0)


@function(package=False)
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Fill the main diagonal of a matrix, or of a tensor with equal sizes, with a number.

    Parameters
    ----------
    fill_value : number
    wrap : bool
        Whether the diagonal of a tall matrix wraps around, after one skipped row.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.zeros(2, 2).fill_diagonal_(5)
    tensor([[5., 0.],
            [0., 5.]])
    """
    if self.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.ndim > 2 and len(set(self.shape)) != 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    strides = self.stride()
    count = min(self.shape)
    diagonal = OPERATORS["as_strided"](self, (count,), (sum(strides),), self.storage_offset())
    OPERATORS["fill_"](diagonal, fill_value)
    rows, columns = self.shape[:2]
    if wrap and self.ndim == 2 and rows > columns + 1:
        for first in range(columns + 1, rows, columns + 1):
            OPERATORS["fill_"](OPERATORS["diagonal"](self[first:]), fill_value)
    return self
