"""Deprecated methods of Tensor, and queries about its memory."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..creation.creation import sizes_of
from ..movement.views import reshape
from ..registration import function, tensor_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from candelabra._C import Tensor

_as_strided = OPERATORS["as_strided"]


# ---- sizes and elements


@function(package=False)
def resize(self: Tensor, *sizes: Any) -> Tensor:
    """Return the elements in other sizes. Deprecated: use ``reshape``.

    Raises
    ------
    RuntimeError
        If the sizes have another number of elements.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ones(2, 3).resize(3, 2).shape
    candelabra.Size([3, 2])
    """
    _C.warn("non-inplace resize is deprecated; use reshape()")
    return _resized(self, sizes_of(sizes), "resize")


@function(package=False)
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """Return the elements in the sizes of another tensor. Deprecated: use ``reshape_as``.

    Raises
    ------
    RuntimeError
        If the other tensor has another number of elements.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ones(2, 3).resize_as(candelabra.ones(6)).shape
    candelabra.Size([6])
    """
    _C.warn("non-inplace resize_as is deprecated; use reshape_as()")
    return _resized(self, tensor.shape, "resize_as")


def _resized(self: Tensor, size: Any, name: str) -> Tensor:
    count = 1
    for n in size:
        count *= n
    if count != self.numel():
        shape = "x".join(map(str, self.shape))
        raise RuntimeError(
            f"requested {name} to {'x'.join(map(str, size))} ({count} elements in total), but the given tensor has a size of {shape} "
            f"({self.numel()} elements). {name} can only change the shape of a given tensor, while preserving the number of elements; "
            f"{name}_() changes the number."
        )
    return reshape(OPERATORS["contiguous"](self), tuple(size))


@function(package=False)
def slice_inverse(
    self: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return a view of this tensor's memory with the geometry of `src`, the tensor that it is a
    slice of.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.arange(6)
    >>> x[2:4].slice_inverse(x, 0, 2, 4)
    tensor([0, 1, 2, 3, 4, 5])
    """
    return _as_strided(self, src.shape, src.stride(), src.storage_offset())


# ---- memory


@function(package=False)
def const_data_ptr(self: Tensor) -> int:
    """Return the address of the first element, for reading.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.ones(1)
    >>> x.const_data_ptr() == x.data_ptr()
    True
    """
    return self.data_ptr()


@function(package=False)
def storage_type(self: Tensor) -> Any:
    """Return the type of ``storage()``, which counts elements of this dtype. Deprecated.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ones(1).storage_type() is candelabra.FloatStorage
    True
    """
    from candelabra import storage

    return getattr(storage, storage.CLASS_NAMES.get(self.dtype.name, "TypedStorage"))


@function()
def is_distributed(input: Tensor) -> bool:
    """Return False: tensors are never distributed over processes.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ones(1).is_distributed()
    False
    """
    return False


@function(package=False)
def record_stream(self: Tensor, stream: Any) -> None:
    """Keep the memory until the work now queued on a stream is done.

    Raises
    ------
    NotImplementedError
        If the tensor is in host memory.
    RuntimeError
        If `stream` is not a stream of the tensor's device.
    """
    recorded = getattr(stream, "record_memory", None)
    if recorded is None:
        kind = type(stream).__name__
        if stream is None or self.device.type != "cpu":
            raise RuntimeError(f"record_stream(): expected a stream of device {self.device}, but got {kind}")
        raise NotImplementedError(
            "record_stream(): memory of the host is used by no stream; there is nothing to record"
        )
    recorded(self)


@function(package=False)
def dim_order(self: Tensor, *, ambiguity_check: bool | list[Any] = False) -> tuple[int, ...]:
    """Return the dimensions in order of descending strides.

    Dimensions with ambiguous strides, such as those of size 1 and expanded ones, keep their order.

    Parameters
    ----------
    ambiguity_check : bool or list of memory_format
        True raises if the order is ambiguous; a list raises if the tensor is not in exactly one of
        these memory formats.

    Raises
    ------
    RuntimeError
        See `ambiguity_check`.
    TypeError
        If `ambiguity_check` is neither a bool nor a list of memory formats.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ones(2, 3).t().dim_order()
    (1, 0)
    """
    if not isinstance(ambiguity_check, bool):
        if not isinstance(ambiguity_check, list) or not all(isinstance(f, _C.memory_format) for f in ambiguity_check):
            raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
        formats = ambiguity_check
        ambiguous = sum(self.is_contiguous(memory_format=wanted) for wanted in formats) != 1
    else:
        ambiguous = ambiguity_check and _has_several_orders(self)
    if ambiguous:
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats: "
            f"its sizes are {list(self.shape)}, its strides {list(self.stride())}."
        )
    if self.is_contiguous():
        return tuple(range(self.ndim))
    return _order(tuple(self.shape), self.stride())


def _has_several_orders(self: Tensor) -> bool:
    strides = self.stride()
    return 1 in self.shape or len(set(strides)) < len(strides) or (0 in strides and self.ndim > 1)


def _order(sizes: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Sort by insertion from the last dimension on: a dimension moves before those with smaller
    strides, past ambiguous ones.
    """
    order = list(reversed(range(len(sizes))))
    for start in range(1, len(order)):
        place = start
        for i in reversed(range(start)):
            other, dim = order[i], order[place]
            if strides[other] == 0 or strides[dim] == 0:
                continue
            if (strides[other], sizes[other]) > (strides[dim], sizes[dim]):
                order[i], order[place] = dim, other
                place = i
            elif strides[other] < strides[dim]:
                break
    return tuple(reversed(order))


# ---- modules and removed things


@function(package=False)
def module_load(self: Tensor, other: Any, assign: bool = False) -> Tensor:
    """Return the tensor that a module stores when it loads `other` in place of this one.

    Parameters
    ----------
    other : Tensor
        The loaded tensor.
    assign : bool
        Whether to store `other` itself; otherwise its elements are copied into this tensor.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.zeros(2).module_load(candelabra.ones(2))
    tensor([1., 1.])
    """
    if assign:
        return other.detach()
    from candelabra.grad_mode import no_grad

    with no_grad():
        return self.copy_(other).detach()


@function(package=False)
def reinforce(self: Tensor, reward: Any) -> NoReturn:
    """Raise an error: PyTorch removed it. A policy gradient is ``-log_prob(action) * reward``, from
    candelabra.distributions.
    """
    raise RuntimeError(
        "reinforce() was removed. Use candelabra.distributions instead: with m = Categorical(probs) and action = m.sample(), "
        "(-m.log_prob(action) * reward).backward()"
    )


@tensor_property
def name(self: Tensor) -> None:
    """None: tensors have no names."""
    return None


@tensor_property
def volatile(self: Tensor) -> bool:
    """False, with a warning: removed in favour of ``candelabra.no_grad()``."""
    _C.warn("volatile was removed (Variable.volatile is always False); use candelabra.no_grad()")
    return False


# ---- functions of candelabra.nn that PyTorch has as methods


@function(package=False)
def hardshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
    """Apply ``candelabra.nn.functional.hardshrink``: 0 where the absolute value is at most
    `lambd`.
    """
    from candelabra.nn import functional

    return functional.hardshrink(self, lambd)


@function(package=False)
def prelu(self: Tensor, weight: Tensor) -> Tensor:
    """Apply ``candelabra.nn.functional.prelu``: negative elements are multiplied by `weight`."""
    from candelabra.nn import functional

    return functional.prelu(self, weight)


@function(package=False)
def storage(self: Tensor) -> Any:
    """Return the memory that this tensor views, as elements of its dtype. Deprecated: use
    ``untyped_storage()``.
    """
    from candelabra.storage import typed_storage_of

    return typed_storage_of(self)


@function(package=False)
def _typed_storage(self: Tensor) -> Any:
    """Return the memory as `storage` does, without its warning."""
    from candelabra.storage import TypedStorage

    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)
