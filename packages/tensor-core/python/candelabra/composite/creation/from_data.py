"""Tensors from data: numbers, sequences, arrays, buffers."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..creation.creation import finish
from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor, dtype
    from candelabra.types import Device


#: Data without a memory that could be taken over.
_PLAIN = frozenset({list, tuple, int, float, bool})


@function(method=False)
def tensor(
    data: Any,
    *,
    dtype: dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor with a copy of `data`.

    Parameters
    ----------
    data : number, nested sequence, array, storage or Tensor
        Nested sequences must be rectangular; a tensor in one is a number. Arrays are NumPy's or any
        with ``__dlpack__``. The memory of a storage is shared, as in PyTorch; the bytes of an
        untyped one are numbers of `dtype`, by default int64.
    dtype : dtype, optional
        By default inferred from the data: Python floats become the default dtype, ints int64.
    device : device, optional
        By default the device of `data` if it is a tensor, else the default device.
    requires_grad : bool
        Whether autograd records operations on the result.
    pin_memory : bool
        Not supported.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If nested sequences have different lengths.
    TypeError
        If an element is neither a number nor a sequence.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    if isinstance(data, _C.Tensor):
        _C.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than candelabra.tensor(sourceTensor)."
        )
        made = OPERATORS["_to_copy"](data.detach(), dtype=dtype, device=device)
    elif type(data) in _PLAIN:
        made = _C.tensor_from_data(data, dtype, device)
    elif hasattr(data, "untyped"):
        made = _on_storage(data, dtype)
        if device is not None:
            made = made.to(device)
    elif _exports(data):
        made = OPERATORS["_to_copy"](_C.from_dlpack(data), dtype=dtype, device=device)
    else:
        made = _C.tensor_from_data(data, dtype, device)
    return finish(made, requires_grad, pin_memory)


@function(method=False)
def as_tensor(data: Any, dtype: dtype | None = None, device: Device = None) -> Tensor:
    """Return a tensor of `data`, which shares its memory if possible.

    Parameters
    ----------
    data : Tensor, NumPy array, number or nested sequence
        A tensor of the requested dtype and device is returned unchanged. An array's memory is
        shared.
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
        device = _C.get_default_device() if device is None else device
        return shared.to(device=device, dtype=dtype) if dtype is not None or device is not None else shared
    if type(data) not in _PLAIN:
        if hasattr(data, "untyped"):
            return _on_storage(data, dtype).to(device)
        if _exports(data):
            return _C.from_dlpack(data).to(device=device, dtype=dtype)
    return _C.tensor_from_data(data, dtype, device)


def _exports(data: Any) -> bool:
    """Return whether an object, not of NumPy, is an array that gives out its memory."""
    return hasattr(data, "__dlpack__") and type(data).__module__ != "numpy"


def _shared_or_copied(array: Any) -> Tensor:
    # Memory that cannot be shared (read-only, negative strides) is copied.
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        return _C.tensor_from_data(array, None, None)
    return _C.from_numpy(array)


@function(method=False)
def asarray(
    obj: Any,
    *,
    dtype: dtype | None = None,
    device: Device = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of an object that offers its data: a tensor, NumPy array, DLPack object,
    buffer, storage, scalar or sequence.

    Parameters
    ----------
    obj
        The data.
    dtype, device : optional
        By default those of `obj`. The bytes of an untyped storage are numbers of this dtype, by
        default int64.
    copy : bool, optional
        True always copies, False never copies and raises if a copy is needed, None copies if
        needed.
    requires_grad : bool
        Whether autograd records operations on the result.

    Raises
    ------
    ValueError
        If ``copy=False`` cannot be kept.

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
    elif hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        made = _C.from_dlpack(obj)
    elif isinstance(obj, (bytearray, memoryview)):
        made = frombuffer(obj, dtype=dtype if dtype is not None else _C.uint8)
    elif hasattr(obj, "untyped"):
        made = _on_storage(obj, dtype)
    else:
        shares = False
        made = _C.tensor_from_data(obj, dtype, device)
    converted = made.to(device=device, dtype=dtype) if dtype is not None or device is not None else made
    if copy is False and not shares:
        if type(obj).__module__ == "numpy":
            raise RuntimeError(
                "asarray(): can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray."
            )
        raise ValueError("asarray(): can't alias arbitrary sequence into a tensor; use copy=None")
    if copy is False and converted is not made:
        if made.device != converted.device:
            raise ValueError(
                f"asarray(): can't alias tensor from device '{made.device}' to '{converted.device}'; use copy=None"
            )
        raise ValueError(
            f"asarray(): can't alias tensor with dtype '{made.dtype}' into dtype '{converted.dtype}'; use copy=None"
        )
    if copy and converted is made and shares:
        converted = OPERATORS["clone"](made)
    if isinstance(obj, _C.Tensor) and not requires_grad and converted.requires_grad:
        converted = converted.detach()
    return finish(converted, requires_grad)


def _on_storage(storage: Any, dtype: dtype | None) -> Tensor:
    own = getattr(storage, "dtype", None)
    if own is not None and dtype is not None and dtype is not own:
        raise RuntimeError(f"Expected a Storage of type {dtype} or an UntypedStorage, but got {own}")
    return _C.tensor_on_storage(storage.untyped(), dtype or own or _C.int64)


@function(method=False)
def from_numpy(ndarray: Any) -> Tensor:
    """Return a tensor that shares the memory of a NumPy array.

    Parameters
    ----------
    ndarray : numpy.ndarray
        A writable array of a supported dtype, without negative strides.

    Returns
    -------
    Tensor
        A CPU tensor. Changes of either are visible in the other.

    Examples
    --------
    >>> import candelabra, numpy
    >>> candelabra.from_numpy(numpy.arange(3))
    tensor([0, 1, 2])
    """
    return _C.from_numpy(ndarray)


@function(method=False)
def from_dlpack(ext_tensor: Any, *, device: Device = None, copy: bool | None = None) -> Tensor:
    """Return a tensor that shares the memory of an object with ``__dlpack__``, or of a DLPack
    capsule.

    Parameters
    ----------
    ext_tensor
        The object, or the capsule.
    device : device, optional
        The device of the result; by default the object's.
    copy : bool, optional
        True copies, False never copies and raises if a copy is needed, None only copies to another
        device.

    Raises
    ------
    TypeError
        If the object does not support DLPack.
    BufferError
        If ``copy=False`` cannot be kept.

    Examples
    --------
    >>> import candelabra, numpy
    >>> candelabra.from_dlpack(numpy.arange(3))
    tensor([0, 1, 2])
    """
    return _C.from_dlpack(ext_tensor, device=device, copy=copy)


@function(method=False)
def frombuffer(buffer: Any, *, dtype: dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """Return a one-dimensional tensor that shares the memory of an object with the buffer protocol.

    Parameters
    ----------
    buffer
        A writable buffer, such as a bytearray. One that is not writable is copied.
    dtype : dtype
        The dtype of the elements.
    count : int
        Number of elements; -1 for all.
    offset : int
        Bytes to skip.
    requires_grad : bool
        Whether autograd records operations on the result.

    Warns
    -----
    UserWarning
        If the buffer is not writable.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.frombuffer(bytearray([1, 0, 2, 0]), dtype=candelabra.int16)
    tensor([1, 2], dtype=candelabra.int16)
    """
    import numpy

    try:
        view = memoryview(buffer).cast("B")
    except TypeError as error:
        raise ValueError("object does not implement Python buffer protocol.") from error
    length, itemsize = len(view), dtype.itemsize
    if length == 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count > 0 and offset + count * itemsize > length:
        raise ValueError(
            f"requested buffer length ({count} * {itemsize} bytes) after offset ({offset} bytes) must not be greater than actual "
            f"buffer length ({length} bytes)"
        )
    if count < 0:
        if (length - offset) % itemsize:
            raise ValueError(
                f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element size ({itemsize})"
            )
        count = (length - offset) // itemsize
    if view.readonly:
        _C.warn(
            "The given buffer is not writable, and tensors always are: its elements are copied. Pass a bytearray to share them."
        )
    raw = numpy.frombuffer(view, dtype=numpy.uint8, count=count * dtype.itemsize, offset=offset)
    made = _shared_or_copied(raw)
    return finish(made if dtype is _C.uint8 else OPERATORS["view_dtype"](made, dtype), requires_grad)
