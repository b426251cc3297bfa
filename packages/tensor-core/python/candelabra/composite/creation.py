"""Tensors from data, constants and ranges, with PyTorch's signatures."""

from __future__ import annotations

import operator as python_operator

from candelabra import _C
from candelabra.catalogue import OPERATORS
from candelabra.layout import strided

from .registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from candelabra._C import Tensor, dtype, memory_format
    from candelabra.types import Device, Number

_empty = OPERATORS["empty"]
_fill_ = OPERATORS["fill_"]
_index = python_operator.index
_arange = OPERATORS["arange"]


def sizes_of(size: tuple[Any, ...]) -> Any:
    """Return the sizes meant by the positional arguments ``(2, 3)`` or ``((2, 3),)``."""
    if len(size) == 1 and type(size[0]) is not int and not hasattr(size[0], "__index__"):
        return size[0]
    return size


def finish(made: Tensor, requires_grad: bool) -> Tensor:
    """Set `requires_grad` where it was asked for."""
    if requires_grad:
        made.requires_grad = True
    return made


def check_layout(layout: Any, pin_memory: bool, name: str) -> None:
    """Refuse layouts and memory that no backend offers yet."""
    if layout is not None and layout is not strided:
        raise NotImplementedError(f"{name}(): only layout=candelabra.strided is supported, but got {layout}")
    if pin_memory:
        raise NotImplementedError(f"{name}(): pin_memory=True is not supported; allocate without it")


def _made(
    size: Any,
    name: str,
    out: Tensor | None,
    dtype: dtype | None,
    layout: Any,
    device: Device,
    pin_memory: bool,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Return memory of these sizes: that of `out` where it is given."""
    if layout is not None or pin_memory:
        check_layout(layout, pin_memory, name)
    if out is None:
        return _empty(size, dtype=dtype, device=device, memory_format=memory_format)
    if dtype is not None and out.dtype is not dtype:
        raise RuntimeError(f"{name}(): dtype {dtype} does not match dtype of out parameter ({out.dtype})")
    resized = tuple(_index(n) for n in size)
    if tuple(out.shape) != resized:
        raise RuntimeError(f"{name}(): out= has shape {list(out.shape)}, but {list(resized)} is asked for; give one of that shape")
    return out


# ---- from data


@function(method=False)
def tensor(
    data: Any, *, dtype: dtype | None = None, device: Device = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """Make a tensor with a copy of `data`.

    Parameters
    ----------
    data : number, nested sequence, NumPy array or Tensor
        Nested sequences must be rectangular.
    dtype : dtype, optional
        By default that of the data: Python's floats become the default dtype, ints int64.
    device : device, optional
        By default that of a tensor, else the default device.
    requires_grad : bool
        Whether operations on the result are recorded.
    pin_memory : bool
        Not supported.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        Where nested sequences have different lengths.
    TypeError
        Where an element is neither a number nor a sequence.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    if pin_memory:
        check_layout(None, pin_memory, "tensor")
    if isinstance(data, _C.Tensor):
        made = OPERATORS["to_copy"](data.detach(), dtype=dtype, device=device)
    else:
        made = _C.tensor_from_data(data, dtype, device)
    return finish(made, requires_grad)


@function(method=False)
def as_tensor(data: Any, dtype: dtype | None = None, device: Device = None) -> Tensor:
    """Make a tensor of `data`, sharing its memory where it can.

    Parameters
    ----------
    data : Tensor, NumPy array, number or nested sequence
        A tensor of the wanted dtype and device is returned as it is; an array's memory is shared.
    dtype, device : optional
        As in :func:`candelabra.tensor`.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.tensor([1.0])
    >>> candelabra.as_tensor(x) is x
    True
    """
    if isinstance(data, _C.Tensor):
        return data.to(device=device, dtype=dtype) if dtype is not None or device is not None else data
    if type(data).__module__ == "numpy" and type(data).__name__ == "ndarray":
        shared = _shared_or_copied(data)
        return shared.to(device=device, dtype=dtype) if dtype is not None or device is not None else shared
    return _C.tensor_from_data(data, dtype, device)


def _shared_or_copied(array: Any) -> Tensor:
    # Memory that cannot be shared (read-only, negative strides) is copied.
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        return _C.tensor_from_data(array, None, None)
    return _C.from_numpy(array)


@function(method=False)
def asarray(
    obj: Any, *, dtype: dtype | None = None, device: Device = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """Make a tensor of any object that offers its data: tensor, NumPy array, DLPack, buffer, scalar or sequence.

    Parameters
    ----------
    obj
        The data.
    dtype, device : optional
        By default those of `obj`.
    copy : bool, optional
        True always copies, False never does and raises where it would have to, None copies where needed.
    requires_grad : bool
        Whether operations on the result are recorded.

    Raises
    ------
    ValueError
        Where ``copy=False`` cannot be kept.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.asarray([1, 2], dtype=candelabra.float32)
    tensor([1., 2.])
    """
    shares = True
    if isinstance(obj, _C.Tensor):
        made = obj
    elif type(obj).__module__ == "numpy" and type(obj).__name__ == "ndarray":
        shares = obj.flags.writeable and all(stride >= 0 for stride in obj.strides)
        made = _shared_or_copied(obj)
    elif hasattr(obj, "__dlpack__"):
        made = _C.from_dlpack(obj)
    elif isinstance(obj, (bytearray, memoryview)):
        made = frombuffer(obj, dtype=dtype if dtype is not None else _C.uint8)
    else:
        shares = False
        made = _C.tensor_from_data(obj, dtype, device)
    converted = made.to(device=device, dtype=dtype) if dtype is not None or device is not None else made
    if copy is False and (not shares or converted is not made):
        raise ValueError("asarray(): can't alias this data with the given dtype and device; use copy=None")
    if copy and converted is made and shares:
        converted = OPERATORS["clone"](made)
    if isinstance(obj, _C.Tensor) and not requires_grad and converted.requires_grad:
        converted = converted.detach()
    return finish(converted, requires_grad)


@function(method=False)
def from_numpy(ndarray: Any) -> Tensor:
    """Make a tensor that shares the memory of a NumPy array.

    Parameters
    ----------
    ndarray : numpy.ndarray
        Writable, of a dtype that tensors have, without negative strides.

    Returns
    -------
    Tensor
        On a device of host memory; changes of either are seen in the other.

    Examples
    --------
    >>> import candelabra, numpy
    >>> candelabra.from_numpy(numpy.arange(3))
    tensor([0, 1, 2])
    """
    return _C.from_numpy(ndarray)


@function(method=False)
def from_dlpack(ext_tensor: Any) -> Tensor:
    """Make a tensor that shares the memory of any object with ``__dlpack__``, or of a DLPack capsule.

    Examples
    --------
    >>> import candelabra, numpy
    >>> candelabra.from_dlpack(numpy.arange(3))
    tensor([0, 1, 2])
    """
    return _C.from_dlpack(ext_tensor)


@function(method=False)
def frombuffer(buffer: Any, *, dtype: dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """Make a one-dimensional tensor that shares the memory of an object with the buffer protocol.

    Parameters
    ----------
    buffer
        A writable buffer, such as a bytearray.
    dtype : dtype
        How the bytes are read.
    count : int
        Number of elements; -1 for all.
    offset : int
        Bytes to skip.
    requires_grad : bool
        Whether operations on the result are recorded.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.frombuffer(bytearray([1, 0, 2, 0]), dtype=candelabra.int16)
    tensor([1, 2], dtype=candelabra.int16)
    """
    import numpy

    view = memoryview(buffer).cast("B")
    if offset < 0 or offset > len(view):
        raise ValueError(
            f"frombuffer(): offset ({offset} bytes) must be non-negative and no greater than buffer length ({len(view)} bytes)"
        )
    available = (len(view) - offset) // dtype.itemsize
    if count < 0:
        if (len(view) - offset) % dtype.itemsize:
            raise ValueError(
                f"frombuffer(): buffer length ({len(view) - offset} bytes) after offset ({offset} bytes) must be a multiple of "
                f"element size ({dtype.itemsize})"
            )
        count = available
    if count > available:
        raise ValueError(
            f"frombuffer(): requested buffer length ({count} elements) is larger than the {available} elements there are"
        )
    raw = numpy.frombuffer(view, dtype=numpy.uint8, count=count * dtype.itemsize, offset=offset)
    made = _shared_or_copied(raw)
    return finish(made if dtype is _C.uint8 else OPERATORS["view_dtype"](made, dtype), requires_grad)


# ---- constants


@function(method=False)
def empty(
    *size: Any,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: memory_format | None = None,
    **names: Any,
) -> Tensor:
    """Make a tensor without setting its elements.

    Parameters
    ----------
    *size : int or sequence of int
        The sizes.
    out : Tensor, optional
        Where the result is written.
    dtype, device : optional
        By default the default dtype and device.
    requires_grad : bool
        Whether operations on the result are recorded.
    memory_format : memory_format, optional
        Contiguous by default.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.empty(2, 3).shape
    candelabra.Size([2, 3])
    """
    size = _size_argument(size, names, "empty")
    if out is None and not requires_grad and layout is None and not pin_memory:
        return _empty(size, dtype=dtype, device=device, memory_format=memory_format)
    return finish(_made(size, "empty", out, dtype, layout, device, pin_memory, memory_format), requires_grad)


def _size_argument(size: Any, names: dict[str, Any], function_name: str) -> Any:
    """Return the sizes from positional arguments or from the keyword ``size``."""
    if names:
        if "size" in names and not size:
            size = (names.pop("size"),)
        if names:
            raise TypeError(f"{function_name}() got an unexpected keyword argument '{next(iter(names))}'")
    return sizes_of(size)


@function(method=False)
def empty_strided(
    size: Any,
    stride: Sequence[int],
    *,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make a tensor of given sizes and strides without setting its elements.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    check_layout(layout, pin_memory, "empty_strided")
    return finish(OPERATORS["empty_strided"](size, stride, dtype=dtype, device=device), requires_grad)


@function(method=False)
def zeros(
    *size: Any,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    **names: Any,
) -> Tensor:
    """Make a tensor of zeros.

    Parameters
    ----------
    *size : int or sequence of int
        The sizes.
    out : Tensor, optional
        Where the result is written.
    dtype, device : optional
        By default the default dtype and device.
    requires_grad : bool
        Whether operations on the result are recorded.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    size = _size_argument(size, names, "zeros") if names else sizes_of(size)
    if out is None and layout is None and not pin_memory and not requires_grad:
        return _fill_(_empty(size, dtype=dtype, device=device), 0)
    return finish(_fill_(_made(size, "zeros", out, dtype, layout, device, pin_memory), 0), requires_grad)


@function(method=False)
def ones(
    *size: Any,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    **names: Any,
) -> Tensor:
    """Make a tensor of ones; the arguments are those of :func:`candelabra.zeros`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ones(2)
    tensor([1., 1.])
    """
    size = _size_argument(size, names, "ones") if names else sizes_of(size)
    if out is None and layout is None and not pin_memory and not requires_grad:
        return _fill_(_empty(size, dtype=dtype, device=device), 1)
    return finish(_fill_(_made(size, "ones", out, dtype, layout, device, pin_memory), 1), requires_grad)


@function(method=False)
def full(
    size: Any,
    fill_value: Any,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make a tensor with one value everywhere.

    Parameters
    ----------
    size : sequence of int
        The sizes.
    fill_value : number or zero-dimensional Tensor
        The value, from whose kind the dtype follows where none is given.
    out, dtype, device, requires_grad
        As in :func:`candelabra.zeros`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.full((2,), 7)
    tensor([7, 7])
    """
    if isinstance(fill_value, _C.Tensor):
        dtype = fill_value.dtype if dtype is None and out is None else dtype
        device = fill_value.device if device is None else device
        fill_value = fill_value.item()
    if dtype is None and out is None:
        dtype = dtype_of_number(fill_value)
    if hasattr(size, "__index__"):
        size = (size,)
    return finish(_fill_(_made(size, "full", out, dtype, layout, device, pin_memory), fill_value), requires_grad)


def dtype_of_number(number: Any) -> Any:
    """Return the dtype of a tensor made of this Python or NumPy number; None for the default dtype."""
    if isinstance(number, bool):
        return _C.bool
    if isinstance(number, int):
        return _C.int64
    if isinstance(number, complex):
        return _C.get_default_dtype().to_complex()
    if isinstance(number, float):
        return None
    return _C.tensor_from_data(number, None, None).dtype


@function(method=False)
def scalar_tensor(
    s: Number,
    *,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make a zero-dimensional tensor of the default dtype from a number.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.scalar_tensor(2)
    tensor(2.)
    """
    check_layout(layout, pin_memory, "scalar_tensor")
    return finish(_fill_(_empty((), dtype=dtype, device=device), s), requires_grad)


@function(method=False)
def eye(
    n: int,
    m: int | None = None,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make a matrix with ones on the diagonal and zeros elsewhere.

    Parameters
    ----------
    n : int
        Number of rows.
    m : int, optional
        Number of columns; `n` by default.
    out, dtype, device, requires_grad
        As in :func:`candelabra.zeros`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    m = n if m is None else m
    if n < 0 or m < 0:
        raise RuntimeError(f"n must be greater or equal to 0, got {min(n, m)}")
    made = _fill_(_made((n, m), "eye", out, dtype, layout, device, pin_memory), 0)
    if n and m:
        _fill_(OPERATORS["diagonal"](made), 1)
    return finish(made, requires_grad)


# ---- like another tensor


def _like(
    input: Tensor,
    dtype: dtype | None,
    layout: Any,
    device: Device,
    pin_memory: bool,
    memory_format: memory_format | None,
    name: str,
) -> Tensor:
    if layout is not None or pin_memory:
        check_layout(layout, pin_memory, name)
    dtype = input.dtype if dtype is None else dtype
    device = input.device if device is None else device
    if memory_format is None or memory_format is _C.preserve_format:
        if input.is_contiguous():
            return _empty(input.shape, dtype=dtype, device=device)
        return OPERATORS["empty_strided"](input.shape, _dense_strides(input), dtype=dtype, device=device)
    return _empty(input.shape, dtype=dtype, device=device, memory_format=memory_format)


def _dense_strides(input: Tensor) -> list[int]:
    """Return strides without gaps in the order of those of `input`, row-major where it is expanded."""
    sizes, strides = tuple(input.shape), input.stride()
    if 0 in sizes or any(stride == 0 and size > 1 for size, stride in zip(sizes, strides)):
        order = list(range(len(sizes)))
    else:
        order = sorted(range(len(sizes)), key=lambda d: (-strides[d], d))
    dense, step = [0] * len(sizes), 1
    for d in reversed(order):
        dense[d] = step
        step *= max(sizes[d], 1)
    return dense


@function(method=False)
def empty_like(
    input: Tensor,
    *,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Make a tensor of the shape, dtype and device of another, without setting its elements.

    Parameters
    ----------
    input : Tensor
    dtype, device : optional
        In place of those of `input`.
    requires_grad : bool
        Whether operations on the result are recorded.
    memory_format : memory_format, optional
        By default the strides follow those of `input`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.empty_like(candelabra.ones(2, 3)).shape
    candelabra.Size([2, 3])
    """
    return finish(_like(input, dtype, layout, device, pin_memory, memory_format, "empty_like"), requires_grad)


@function(method=False)
def zeros_like(
    input: Tensor,
    *,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Make zeros of the shape, dtype and device of another tensor; arguments as in :func:`candelabra.empty_like`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.zeros_like(candelabra.tensor([1, 2]))
    tensor([0, 0])
    """
    return finish(_fill_(_like(input, dtype, layout, device, pin_memory, memory_format, "zeros_like"), 0), requires_grad)


@function(method=False)
def ones_like(
    input: Tensor,
    *,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Make ones of the shape, dtype and device of another tensor; arguments as in :func:`candelabra.empty_like`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ones_like(candelabra.tensor([1, 2]))
    tensor([1, 1])
    """
    return finish(_fill_(_like(input, dtype, layout, device, pin_memory, memory_format, "ones_like"), 1), requires_grad)


@function(method=False)
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Make a tensor of one value of the shape, dtype and device of another; arguments as in :func:`candelabra.empty_like`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.full_like(candelabra.tensor([1, 2]), 5)
    tensor([5, 5])
    """
    if isinstance(fill_value, _C.Tensor):
        fill_value = fill_value.item()
    return finish(_fill_(_like(input, dtype, layout, device, pin_memory, memory_format, "full_like"), fill_value), requires_grad)


def _new(self: Tensor, size: Any, dtype: dtype | None, device: Device) -> Tensor:
    return _empty(size, dtype=self.dtype if dtype is None else dtype, device=self.device if device is None else device)


@function(package=False)
def new_empty(
    self: Tensor,
    *size: Any,
    dtype: dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
    **names: Any,
) -> Tensor:
    """Make a tensor of the dtype and device of this one, without setting its elements."""
    check_layout(layout, pin_memory, "new_empty")
    return finish(_new(self, _size_argument(size, names, "new_empty"), dtype, device), requires_grad)


@function(package=False)
def new_zeros(
    self: Tensor,
    *size: Any,
    dtype: dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
    **names: Any,
) -> Tensor:
    """Make zeros of the dtype and device of this tensor."""
    check_layout(layout, pin_memory, "new_zeros")
    return finish(_fill_(_new(self, _size_argument(size, names, "new_zeros"), dtype, device), 0), requires_grad)


@function(package=False)
def new_ones(
    self: Tensor,
    *size: Any,
    dtype: dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
    **names: Any,
) -> Tensor:
    """Make ones of the dtype and device of this tensor."""
    check_layout(layout, pin_memory, "new_ones")
    return finish(_fill_(_new(self, _size_argument(size, names, "new_ones"), dtype, device), 1), requires_grad)


@function(package=False)
def new_full(
    self: Tensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Make a tensor of one value, of the dtype and device of this one."""
    check_layout(layout, pin_memory, "new_full")
    if isinstance(fill_value, _C.Tensor):
        fill_value = fill_value.item()
    return finish(_fill_(_new(self, size, dtype, device), fill_value), requires_grad)


@function(package=False)
def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Make a tensor with a copy of `data`, by default of the dtype and device of this one."""
    check_layout(layout, pin_memory, "new_tensor")
    return tensor(
        data,
        dtype=self.dtype if dtype is None else dtype,
        device=self.device if device is None else device,
        requires_grad=requires_grad,
    )


@function(package=False, name="new_empty_strided")
def new_empty_strided(
    self: Tensor,
    size: Any,
    stride: Sequence[int],
    *,
    dtype: dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Make a tensor of given strides and of the dtype and device of this one, without setting its elements."""
    check_layout(layout, pin_memory, "new_empty_strided")
    dtype = self.dtype if dtype is None else dtype
    device = self.device if device is None else device
    return finish(OPERATORS["empty_strided"](size, stride, dtype=dtype, device=device), requires_grad)


# ---- ranges


def _plain(number: Any) -> Any:
    return number.item() if isinstance(number, _C.Tensor) else number


@function(method=False)
def arange(
    *bounds: Any,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    **names: Any,
) -> Tensor:
    """Make the numbers from `start` up to, not including, `end`.

    Called as ``arange(end)``, ``arange(start, end)`` or ``arange(start, end, step)``.

    Parameters
    ----------
    start, end, step : number
        From 0 in steps of 1 by default.
    out : Tensor, optional
        Where the result is written.
    dtype : dtype, optional
        By default int64 where all numbers are whole numbers, else the default dtype.
    device, requires_grad
        As in :func:`candelabra.zeros`.

    Returns
    -------
    Tensor
        One-dimensional, of ``ceil((end - start) / step)`` elements.

    Raises
    ------
    RuntimeError
        Where the step is zero or of the wrong sign.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.arange(1, 4)
    tensor([1, 2, 3])
    """
    if layout is not None or pin_memory:
        check_layout(layout, pin_memory, "arange")
    if len(bounds) == 1 and type(bounds[0]) is int and not names and out is None and not requires_grad:
        return _arange(0, bounds[0], 1, dtype=_C.int64 if dtype is None else dtype, device=device)
    start, end, step = _range_bounds(bounds, names)
    if dtype is None and out is None:
        whole = all(isinstance(x, int) or hasattr(x, "__index__") for x in (start, end, step))
        dtype = _C.int64 if whole else _C.get_default_dtype()
    if out is not None:
        return _arange(start, end, step, dtype=out.dtype, device=out.device, out=out)
    return finish(_arange(start, end, step, dtype=dtype, device=device), requires_grad)


def _range_bounds(bounds: Any, names: dict[str, Any]) -> Any:
    if len(bounds) > 3:
        raise TypeError(f"arange() takes from 1 to 3 positional arguments but {len(bounds)} were given")
    given = dict(zip(("end",) if len(bounds) == 1 and "end" not in names else ("start", "end", "step"), bounds))
    for name, value in names.items():
        if name not in ("start", "end", "step"):
            raise TypeError(f"arange() got an unexpected keyword argument '{name}'")
        if name in given:
            raise TypeError(f"arange() got multiple values for argument '{name}'")
        given[name] = value
    if "end" not in given:
        raise TypeError("arange() missing 1 required argument: 'end'")
    return _plain(given.get("start", 0)), _plain(given["end"]), _plain(given.get("step", 1))


@function(method=False, name="range")
def range_(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make the numbers from `start` to `end`, both included; :func:`candelabra.arange` is what to prefer.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.range(1, 3)
    tensor([1., 2., 3.])
    """
    if end is None:
        start, end = 0, start
    if step == 0:
        raise RuntimeError("step must be nonzero")
    count = int((end - start) / step) + 1
    if count < 1:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    dtype = _C.get_default_dtype() if dtype is None else dtype
    return arange(
        start, start + (count - 0.5) * step, step, out=out, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


@function(method=False)
def linspace(
    start: Number,
    end: Number,
    steps: int,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make evenly spaced numbers from `start` to `end`, both included.

    Parameters
    ----------
    start, end : number
        The ends.
    steps : int
        How many numbers.
    out, dtype, device, requires_grad
        As in :func:`candelabra.zeros`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    check_layout(layout, pin_memory, "linspace")
    start, end = _plain(start), _plain(end)
    if dtype is None and out is None:
        dtype = _C.get_default_dtype()
        if isinstance(start, complex) or isinstance(end, complex):
            dtype = dtype.to_complex()
    if out is not None:
        return OPERATORS["linspace"](start, end, steps, dtype=out.dtype, device=out.device, out=out)
    return finish(OPERATORS["linspace"](start, end, steps, dtype=dtype, device=device), requires_grad)


@function(method=False)
def logspace(
    start: Number,
    end: Number,
    steps: int,
    base: float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make numbers whose logarithms are evenly spaced: ``base ** linspace(start, end, steps)``.

    Parameters
    ----------
    start, end : number
        The exponents at the ends.
    steps : int
        How many numbers.
    base : number
        Of the powers.
    out, dtype, device, requires_grad
        As in :func:`candelabra.zeros`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    check_layout(layout, pin_memory, "logspace")
    wanted = (out.dtype if out is not None else _C.get_default_dtype()) if dtype is None else dtype
    # In double precision, so that whole powers come out whole.
    exponents = OPERATORS["linspace"](_plain(start), _plain(end), steps, dtype=_C.float64, device=device)
    result = OPERATORS["to_copy"](OPERATORS["pow"](base, exponents), dtype=wanted)
    return finish(result if out is None else out.copy_(result), requires_grad)


@function(method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Make the matrix whose columns are powers of a vector, the highest first unless `increasing`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.vander(candelabra.tensor([1, 2, 3]), increasing=True)
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    if x.ndim != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor, but got {x.ndim} dimensions")
    count = x.numel() if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative")
    powers = _arange(0, count, 1, dtype=_C.int64, device=x.device)
    if not increasing:
        powers = OPERATORS["flip"](powers, (0,))
    return OPERATORS["pow"](OPERATORS["unsqueeze"](x, 1), powers)
