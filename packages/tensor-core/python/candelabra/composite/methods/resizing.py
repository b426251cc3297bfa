"""Methods that change a tensor's sizes, or each of its elements, in place."""

from __future__ import annotations

import operator as python_operator
from math import prod

from candelabra import _C
from candelabra.catalogue import OPERATORS
from candelabra.settings import unset_memory

from ..creation.creation import sizes_of
from ..memory_formats import channels_last_of, strides_in
from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from candelabra._C import Tensor, memory_format

_as_strided = OPERATORS["as_strided"]


@function(package=False)
def apply_(self: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Apply a Python function to each element, in place. Slow, and only for CPU tensors."""
    return _apply("apply_", self, lambda value: callable(value))


@function(package=False)
def map_(self: Tensor, tensor: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Apply a Python function to each pair of elements of two tensors, in place. Slow."""
    return _apply("map_", self, callable, tensor)


@function(package=False)
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Apply a Python function to the elements of three tensors, in place. Slow."""
    return _apply("map2_", self, callable, x, y)


def _apply(name: str, self: Tensor, call: Callable[..., Any], *others: Tensor) -> Any:
    if any(tensor.requires_grad for tensor in (self, *others)):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")

    def walk(*values: Any) -> Any:
        if isinstance(values[0], list):
            return [walk(*parts) for parts in zip(*values)]
        made = call(*values)
        if isinstance(made, (str, bytes)):
            raise TypeError(f"must be real number, not {type(made).__name__}")
        return made

    made = walk(self.tolist(), *(OPERATORS["expand"](other, self.shape).tolist() for other in others))
    return self.copy_(_C.tensor_from_data(made, self.dtype, self.device).view(self.shape))


@function(package=False)
def resize_(self: Tensor, *sizes: Any, memory_format: memory_format | None = None) -> Tensor:
    """Change the sizes in place. Existing elements keep their place in memory; new ones are
    uninitialized.

    Parameters
    ----------
    *sizes : int or sequence of int
        The new sizes.
    memory_format : memory_format, optional
        The memory format afterwards; contiguous by default.

    Raises
    ------
    RuntimeError
        If the tensor requires grad, or a size is negative, or the memory has to grow and is not
        Candelabra's own: an array's, or in use by one.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.tensor([1, 2, 3, 4, 5]).resize_(2, 2)
    tensor([[1, 2],
            [3, 4]])
    """
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    size = tuple(python_operator.index(n) for n in sizes_of(sizes))
    if any(n < 0 for n in size):
        raise RuntimeError(f"resize_(): sizes must not be negative, but got {list(size)}")
    needed = prod(size)
    if needed * self.dtype.itemsize >= 2**63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)}")
    if not needed and prod(max(n, 1) for n in size[1:]) >= 2**63:
        raise RuntimeError(f"Stride calculation overflowed with sizes={list(size)}")
    strides = strides_in(size, memory_format, "resize_")
    storage, offset = self.untyped_storage(), self.storage_offset()
    held = storage.nbytes() // self.dtype.itemsize - offset
    if needed > held and not (self.is_meta or _C.is_recording()):
        # All tensors on the memory see the larger one, as in PyTorch.
        storage.resize_((offset + needed) * self.dtype.itemsize)
        whole = _C.tensor_on_storage(storage, self.dtype)
        unset_memory(whole[offset + max(held, 0) :])
        self.data = _as_strided(whole, size, strides, offset)
    elif needed > held:
        grown = OPERATORS["empty"]((needed,), dtype=self.dtype, device=self.device)
        if held > 0:
            grown[:held].copy_(_as_strided(self.detach(), (held,), (1,), offset))
        unset_memory(grown[max(held, 0) :])
        self.data = _as_strided(grown, size, strides, 0)
    else:
        self.data = _as_strided(self.detach(), size, strides, offset)
    return self


@function(package=False)
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """Change the sizes to those of another tensor; with ``candelabra.preserve_format`` also the
    memory format.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.arange(6).resize_as_(candelabra.ones(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    if memory_format is _C.preserve_format:
        memory_format = channels_last_of(the_template)
    return resize_(self, the_template.shape, memory_format=memory_format)
