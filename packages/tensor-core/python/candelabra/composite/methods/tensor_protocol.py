"""Python protocols of Tensor: copying, pickling, formatting, attributes; and queries about it."""

from __future__ import annotations

import copy
import sys
from importlib import import_module

from candelabra import _C
from candelabra.catalogue import OPERATORS
from candelabra.layout import strided

from ..memory_formats import contiguous_strides
from ..registration import PROPERTIES, function, tensor_property
from ..wrapper_subclasses import cloned, slots_of, wraps_others

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from candelabra._C import Storage, Tensor, dtype
    from candelabra.types import Device

_Tensor = _C.Tensor
_as_strided = OPERATORS["as_strided"]
_view_dtype = OPERATORS["view_dtype"]


# ---- the storage as one flat tensor of bytes


def storage_bytes(tensor: Tensor) -> Tensor:
    """Return a one-dimensional uint8 tensor on the whole storage of a tensor."""
    count = tensor.untyped_storage().nbytes() // tensor.dtype.itemsize
    whole = _as_strided(tensor.detach(), (count,), (1,), 0)
    return whole if whole.dtype is _C.uint8 else _view_dtype(whole, _C.uint8)


def tensor_on(flat: Tensor, dtype: dtype, size: Any, stride: Sequence[int], offset: int) -> Tensor:
    """Return a tensor of this geometry on a flat uint8 tensor; to autograd it is no view."""
    usable = flat.numel() // dtype.itemsize * dtype.itemsize
    if usable != flat.numel():
        flat = OPERATORS["narrow"](flat, 0, 0, usable)
    typed = flat if dtype is _C.uint8 else _view_dtype(flat, dtype)
    return _as_strided(typed, size, stride, offset).detach()


def bytes_tensor(data: Any, device: Device) -> Tensor:
    """Return a uint8 tensor with a copy of `data` (any buffer) on a device."""
    count = memoryview(data).nbytes
    try:
        flat = OPERATORS["empty"]((count,), dtype=_C.uint8, device=device)
        if count:
            memoryview(flat).cast("B")[:] = memoryview(data).cast("B")
        return flat
    except BufferError:
        # Through a host tensor, for memory that the host cannot write.
        return OPERATORS["_to_copy"](bytes_tensor(data, "cpu"), device=device)


# ---- copying


@function(name="__copy__", package=False)
def shallow_copy(self: Tensor) -> Any:
    """Return another tensor on the same memory."""
    made = as_class(type(self), self.detach(), self.requires_grad)
    if self.is_leaf and self.grad is not None:
        made.grad = self.grad
    made.__dict__.update(self.__dict__)
    return made


@function(name="__deepcopy__", package=False)
def deepcopy(self: Tensor, memo: dict[Any, Any]) -> Any:
    """Copy the memory; tensors that share a storage share its copy."""
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. "
            "Copy x.detach() instead, or x.clone() to stay on the tape."
        )
    if wraps_others(self):
        made = cloned(self)
    else:
        storage = self.untyped_storage()
        key = ("candelabra memory", storage._cdata)  # as the storage's own __deepcopy__ has it
        if key not in memo:
            # The memo also keeps the storage, so that its number is not used again meanwhile.
            memo[key] = (storage, OPERATORS["clone"](storage_bytes(self)).untyped_storage())
        whole = _C.tensor_on_storage(memo[key][1], _C.uint8)
        made = tensor_on(whole, self.dtype, self.shape, self.stride(), self.storage_offset())
        made = as_class(type(self), made, self.requires_grad)
    memo[id(self)] = made
    for name, value in slots_of(self).items():
        setattr(made, name, copy.deepcopy(value, memo))
    if self.grad is not None:
        made.grad = copy.deepcopy(self.grad, memo)
    for name, value in self.__dict__.items():
        made.__dict__[name] = copy.deepcopy(value, memo)
    return made


def as_class(cls: type, tensor: Tensor, requires_grad: bool) -> Tensor:
    """Return the tensor as an instance of a class, with requires_grad set."""
    if cls is not _Tensor:
        return _Tensor._make_subclass(cls, tensor, requires_grad)
    if requires_grad:
        tensor.requires_grad = True
    return tensor


# ---- pickling


def _reduce_storage(storage: Any, protocol: Any) -> Any:
    kind = type(storage)
    return _restored_storage, (storage.tobytes(), str(storage.device), *(() if kind is _C.Storage else (kind,)))


def _restored_storage(data: Any, device: Device, kind: Any = _C.Storage) -> Any:
    made = bytes_tensor(data, device).untyped_storage()
    return made if kind is _C.Storage else kind(made.nbytes(), device=made.device).copy_(made)


_C.Storage.__reduce_ex__ = _reduce_storage  # type: ignore[method-assign, assignment]


@function(name="__reduce_ex__", package=False)
def reduce_tensor(self: Tensor, protocol: Any) -> Any:
    """Pickle through the storage, so that tensors that share memory still do when loaded. The
    autograd history is not saved: a loaded tensor is a leaf.
    """
    geometry = (self.dtype, tuple(self.shape), self.stride(), self.storage_offset())
    state: Any = dict(self.__dict__) or None
    if slots := slots_of(self):
        state = (state, slots)
    grad = self.grad if self.is_leaf or self.retains_grad else None
    storage = None if self.is_meta or wraps_others(self) else self.untyped_storage()
    return restored_tensor, (type(self), storage, *geometry, self.requires_grad, grad, state)


def restored_tensor(
    cls: type,
    flat: Tensor | Storage | None,
    dtype: dtype,
    size: Any,
    stride: Sequence[int],
    offset: int,
    requires_grad: bool,
    grad: Tensor,
    state: Any,
) -> Any:
    """Return a tensor from its pickled state; one of the device meta has no storage."""
    if isinstance(flat, _C.Storage):
        flat = _C.tensor_on_storage(flat, _C.uint8)
    if flat is None:
        tensor = OPERATORS["empty_strided"](size, stride, dtype=dtype, device="meta")
    else:
        tensor = tensor_on(flat, dtype, size, stride, offset)
    made = as_class(cls, tensor, requires_grad)
    state, slots = state if isinstance(state, tuple) else (state, {})
    if state:
        made.__dict__.update(state)
    for name, value in slots.items():
        setattr(made, name, value)
    if grad is not None:
        made.grad = grad
    return made


# ---- Python


@function(name="__format__", package=False)
def format_tensor(self: Tensor, specification: str) -> str:
    """Format a zero-dimensional tensor as a Python number."""
    if self.ndim == 0 and not self.is_meta and type(self) is _Tensor:
        return format(self.item(), specification)
    return object.__format__(self, specification)


@function(name="__array_wrap__", package=False)
def array_wrap(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
    """Return the result of a NumPy function on this tensor as a tensor; of bool, as uint8, as in
    PyTorch.
    """
    if array.dtype.kind == "b":
        array = array.astype("uint8")
    return _C.tensor_from_data(array, None, None) if array.ndim == 0 else _C.from_numpy(array)


@function(package=False)
def _fix_weakref(self: Tensor) -> None:
    """Do nothing: a tensor from a weak reference is as good as any other here."""


@function(package=False)
def _lazy_clone(self: Tensor) -> Tensor:
    """Return a copy that shares the tensor's memory until one of the two is written to.

    The memory is copied at once where autograd records, or where it is not Candelabra's own or its
    address is known elsewhere.
    """
    clone = OPERATORS["clone"]
    if type(self) is not _Tensor or self.requires_grad:
        return clone(self)
    storage = _C.lazy_clone(self.untyped_storage())
    if storage is None:
        return clone(self)
    return tensor_on(
        _C.tensor_on_storage(storage, _C.uint8), self.dtype, self.shape, self.stride(), self.storage_offset()
    )


@function(name="__reversed__", package=False)
def reversed_tensor(self: Tensor) -> Any:
    """Return the tensor with its first dimension in reverse order."""
    return OPERATORS["flip"](self, (0,)) if self.ndim else self


@function(package=False)
def share_memory_(self: Tensor) -> Tensor:
    """Move the memory of all tensors on this storage to shared memory; candelabra-multiprocessing
    implements this.

    Raises
    ------
    ModuleNotFoundError
        If candelabra-multiprocessing is not installed.
    candelabra.OutOfMemoryError
        If there is not enough shared memory.
    """
    if self.is_meta:
        raise RuntimeError("_share_fd_: only available on CPU: a tensor on the device meta has no memory")
    self.untyped_storage().share_memory_()
    return self


@function(package=False)
def is_shared(self: Tensor) -> bool:
    """Return whether the memory is shared between processes."""
    return self.untyped_storage().is_shared()


@function(package=False)
def is_pinned(self: Tensor, device: Device = None) -> bool:
    """Return whether the memory is pinned, so that an accelerator can copy it asynchronously.

    Parameters
    ----------
    device : device or str, optional
        Of which accelerator; by default the one of `candelabra.accelerator`.
    """
    return self.untyped_storage().is_pinned(device)


@function(package=False)
def pin_memory(self: Tensor, device: Device = None) -> Tensor:
    """Return the tensor in pinned host memory, which an accelerator can copy asynchronously; the
    tensor itself if it is pinned.

    Parameters
    ----------
    device : device or str, optional
        Of which accelerator; by default the one of `candelabra.accelerator`.

    Raises
    ------
    RuntimeError
        If there is no accelerator, or the tensor is not in host memory.
    NotImplementedError
        If the accelerator's backend has no pinned memory.
    """
    return import_module("candelabra.accelerator").pinned_copy(self, device)


# ---- questions


@function(package=False)
def nelement(self: Tensor) -> int:
    """Return the number of elements."""
    return self.numel()


@function(package=False)
def ndimension(self: Tensor) -> int:
    """Return the number of dimensions."""
    return self.ndim


@function()
def get_device(input: Tensor) -> int:
    """Return the index of the device; -1 for the CPU.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.get_device(candelabra.ones(1))
    -1
    """
    index = input.device.index
    return -1 if index is None else index


@function()
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether another tensor has the same sizes.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.is_same_size(candelabra.ones(2), candelabra.zeros(2))
    True
    """
    return input.shape == other.shape


def _grad_dtype(self: Tensor) -> dtype:
    """The dtype of this tensor's gradient: its own. It cannot be set to another."""
    return self.dtype


def _set_grad_dtype(self: Tensor, value: Any) -> None:
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if value is not self.dtype:
        raise NotImplementedError(
            f"grad_dtype: a gradient has the dtype of its tensor, {self.dtype}; it cannot be {value}. Convert the gradient where it is used"
        )


PROPERTIES["grad_dtype"] = property(_grad_dtype, _set_grad_dtype, doc=_grad_dtype.__doc__)


@function(package=False)
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Return whether another tensor is the same view of the same memory."""
    return (
        self.untyped_storage() is tensor.untyped_storage()
        and self.storage_offset() == tensor.storage_offset()
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
    )


@function(method=False)
def is_tensor(obj: Any) -> bool:
    """Return whether an object is a Tensor.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.is_tensor([1])
    False
    """
    return isinstance(obj, _Tensor)


@function(method=False)
def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError if a condition does not hold. Tracers of programs record it.

    Examples
    --------
    >>> import candelabra
    >>> candelabra._assert(candelabra.ones(2).ndim == 1, "a vector")
    """
    assert condition, message


@function(method=False)
def is_storage(obj: Any) -> bool:
    """Return whether an object is a Storage.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.is_storage(candelabra.ones(1).untyped_storage())
    True
    """
    if isinstance(obj, _C.Storage):
        return True
    typed = sys.modules.get("candelabra.storage")  # if nobody has imported it, there is none
    return typed is not None and isinstance(obj, typed.TypedStorage)


@function(method=False)
def is_floating_point(input: Tensor) -> bool:
    """Return whether the dtype is a real floating-point one.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.is_floating_point(candelabra.tensor([1]))
    False
    """
    return input.dtype.is_floating_point


@function(method=False)
def is_complex(input: Tensor) -> bool:
    """Return whether the dtype is complex.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.is_complex(candelabra.tensor([1j]))
    True
    """
    return input.dtype.is_complex


@function(method=False)
def is_inference(input: Tensor) -> bool:
    """Return whether a tensor was created in inference mode.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.is_inference(candelabra.ones(1))
    False
    """
    return input.is_inference()


@function(method=False)
def promote_types(type1: dtype, type2: dtype) -> Any:
    """Return the smallest dtype to which both dtypes can be converted.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.promote_types(candelabra.int64, candelabra.float32)
    candelabra.float32
    """
    return _C.promote_types(type1, type2)


@function(method=False)
def can_cast(from_: dtype, to: dtype) -> bool:
    """Return whether a result of one dtype may be stored as another.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.can_cast(candelabra.float32, candelabra.int64)
    False
    """
    return _C.can_cast(from_, to)


# ---- attributes


@tensor_property
def layout(self: Tensor) -> Any:
    """The memory layout: ``candelabra.strided``."""
    return strided


@tensor_property
def is_cpu(self: Tensor) -> bool:
    """Whether the tensor is on the device type ``cpu``."""
    return self.device.type == "cpu"


@tensor_property
def is_cuda(self: Tensor) -> bool:
    """Whether the tensor is on the device type ``cuda``."""
    return self.device.type == "cuda"


@tensor_property
def is_sparse(self: Tensor) -> bool:
    """False: tensors are strided."""
    return False


@tensor_property
def is_quantized(self: Tensor) -> bool:
    """False: tensors are not quantized."""
    return False


@function(package=False)
def as_subclass(self: Tensor, cls: type) -> Any:
    """Return this tensor as an instance of a subclass of Tensor, on the same memory."""
    if not (isinstance(cls, type) and issubclass(cls, _Tensor)):
        raise TypeError(f"as_subclass(): expected a subclass of Tensor, but got {cls!r}")
    return _C.as_subclass(self, cls)


@function(package=False)
def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Make this tensor a view of another tensor's memory, or of none."""
    if self.requires_grad:
        raise RuntimeError("set_() is not allowed on a tensor that requires grad")
    if source is None:
        self.data = OPERATORS["empty"]((0,), dtype=self.dtype, device=self.device)
    elif not isinstance(source, _Tensor) and is_storage(source):
        untyped = source if isinstance(source, _C.Storage) else source.untyped()
        kind = getattr(source, "dtype", self.dtype)
        if kind is not self.dtype:
            raise RuntimeError(
                f"Expected a Storage of type {self.dtype} or an UntypedStorage, but got type {kind} for argument 1 'storage'"
            )
        if untyped.device != self.device:
            raise RuntimeError(
                f'Attempted to set the storage of a tensor on device "{self.device}" to a storage on different device '
                f'"{untyped.device}".  This is no longer allowed; the devices must match.'
            )
        whole = _C.tensor_on_storage(untyped, self.dtype)
        sizes = (whole.numel() - storage_offset,) if size is None else size
        wanted = contiguous_strides(sizes) if stride is None else stride
        self.data = _as_strided(whole, sizes, wanted, storage_offset)
    elif not isinstance(source, _Tensor):
        raise TypeError(f"set_(): expected a Tensor, but got {type(source).__name__}")
    elif size is None:
        self.data = source.detach()
    else:
        wanted = contiguous_strides(size) if stride is None else stride
        self.data = _as_strided(source.detach(), size, wanted, storage_offset)
    return self
