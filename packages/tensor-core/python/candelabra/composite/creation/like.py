"""Tensors with the shape, dtype or device of another one."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS
from candelabra.settings import settings, unset_memory

from ..creation.creation import check_layout, finish, size_argument
from ..creation.from_data import tensor
from ..registration import function, refuse_others
from ..wrapper_subclasses import new_of, wraps_others

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from candelabra._C import Tensor, dtype, memory_format
    from candelabra.types import Device

_empty = OPERATORS["empty"]
_fill_new = OPERATORS["fill_"].uncounted


def memory_like(
    input: Tensor,
    dtype: dtype | None,
    layout: Any,
    device: Device,
    memory_format: memory_format | None,
    name: str,
) -> Tensor:
    if layout is not None:
        check_layout(layout, name)
    try:
        dtype = input.dtype if dtype is None else dtype
        device = input.device if device is None else device
    except AttributeError:
        refuse_others(name, input=input)
        raise
    if memory_format is None or memory_format is _C.preserve_format:
        if input.is_contiguous():
            return _empty(input.shape, dtype=dtype, device=device)
        return OPERATORS["empty_strided"](input.shape, _dense_strides(input), dtype=dtype, device=device)
    return _empty(input.shape, dtype=dtype, device=device, memory_format=memory_format)


def _dense_strides(input: Tensor) -> list[int]:
    """Return dense strides in the order of those of `input`; its own if they are dense. Expanded
    dimensions are ordered row-major.
    """
    sizes, strides = tuple(input.shape), input.stride()
    expected = 1
    for stride, size in sorted((stride, size) for stride, size in zip(strides, sizes) if size != 1):
        if stride != expected:
            break
        expected *= size
    else:
        return list(strides)
    if 0 in sizes or any(stride == 0 and size > 1 for size, stride in zip(sizes, strides)):
        order = list(range(len(sizes)))
    else:
        order = sorted(range(len(sizes)), key=lambda d: (-strides[d], d))
    dense, step = [0] * len(sizes), 1
    for d in reversed(order):
        dense[d] = step
        step *= max(sizes[d], 1)
    return dense


@function(method=False, operator=True)
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
    """Return an uninitialized tensor with the shape, dtype and device of `input`.

    Parameters
    ----------
    input : Tensor
    dtype, device : optional
        By default those of `input`.
    requires_grad : bool
        Whether autograd records operations on the result.
    memory_format : memory_format, optional
        By default the strides follow those of `input`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.empty_like(candelabra.ones(2, 3)).shape
    candelabra.Size([2, 3])
    """
    made = memory_like(input, dtype, layout, device, memory_format, "empty_like")
    return finish(unset_memory(made) if settings.deterministic else made, requires_grad, pin_memory)


@function(method=False, operator=True)
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
    """Return a tensor of zeros with the shape, dtype and device of `input`; arguments as in
    :func:`candelabra.empty_like`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.zeros_like(candelabra.tensor([1, 2]))
    tensor([0, 0])
    """
    return finish(
        _fill_new(memory_like(input, dtype, layout, device, memory_format, "zeros_like"), 0), requires_grad, pin_memory
    )


@function(method=False, operator=True)
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
    """Return a tensor of ones with the shape, dtype and device of `input`; arguments as in
    :func:`candelabra.empty_like`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ones_like(candelabra.tensor([1, 2]))
    tensor([1, 1])
    """
    return finish(
        _fill_new(memory_like(input, dtype, layout, device, memory_format, "ones_like"), 1), requires_grad, pin_memory
    )


@function(method=False, operator=True)
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
    """Return a tensor filled with a value, with the shape, dtype and device of `input`; arguments
    as in :func:`candelabra.empty_like`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.full_like(candelabra.tensor([1, 2]), 5)
    tensor([5, 5])
    """
    if isinstance(fill_value, _C.Tensor):
        fill_value = fill_value.item()
    return finish(
        _fill_new(memory_like(input, dtype, layout, device, memory_format, "full_like"), fill_value),
        requires_grad,
        pin_memory,
    )


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
    """Return an uninitialized tensor with the dtype and device of this one."""
    check_layout(layout, "new_empty")
    if type(self) is not _C.Tensor and wraps_others(self):
        made = new_of(self, "new_empty", size_argument(size, names, "new_empty"), (), dtype, device)
        return finish(made, requires_grad, pin_memory)
    return finish(
        unset_memory(_new(self, size_argument(size, names, "new_empty"), dtype, device)), requires_grad, pin_memory
    )


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
    """Return a tensor of zeros with the dtype and device of this one."""
    check_layout(layout, "new_zeros")
    if type(self) is not _C.Tensor and wraps_others(self):
        made = new_of(self, "new_zeros", size_argument(size, names, "new_zeros"), (), dtype, device)
        return finish(made, requires_grad, pin_memory)
    return finish(
        _fill_new(_new(self, size_argument(size, names, "new_zeros"), dtype, device), 0), requires_grad, pin_memory
    )


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
    """Return a tensor of ones with the dtype and device of this one."""
    check_layout(layout, "new_ones")
    if type(self) is not _C.Tensor and wraps_others(self):
        made = new_of(self, "new_ones", size_argument(size, names, "new_ones"), (), dtype, device)
        return finish(made, requires_grad, pin_memory)
    return finish(
        _fill_new(_new(self, size_argument(size, names, "new_ones"), dtype, device), 1), requires_grad, pin_memory
    )


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
    """Return a tensor filled with a value, with the dtype and device of this one."""
    check_layout(layout, "new_full")
    if type(self) is not _C.Tensor and wraps_others(self):
        made = new_of(self, "new_full", size_argument((size,), {}, "new_full"), (fill_value,), dtype, device)
        return finish(made, requires_grad, pin_memory)
    if isinstance(fill_value, _C.Tensor):
        fill_value = fill_value.item()
    return finish(_fill_new(_new(self, size, dtype, device), fill_value), requires_grad, pin_memory)


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
    """Return a tensor with a copy of `data`, by default with the dtype and device of this one."""
    check_layout(layout, "new_tensor")
    return tensor(
        data,
        dtype=self.dtype if dtype is None else dtype,
        device=self.device if device is None else device,
        requires_grad=requires_grad,
        pin_memory=pin_memory,
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
    """Return an uninitialized tensor of given strides, with the dtype and device of this one."""
    check_layout(layout, "new_empty_strided")
    dtype = self.dtype if dtype is None else dtype
    device = self.device if device is None else device
    return finish(
        unset_memory(OPERATORS["empty_strided"](size, stride, dtype=dtype, device=device)), requires_grad, pin_memory
    )
