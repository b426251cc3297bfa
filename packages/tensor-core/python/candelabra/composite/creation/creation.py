"""Constant tensors and ranges, with PyTorch's signatures."""

from __future__ import annotations

import operator as python_operator
from importlib import import_module

from candelabra import _C
from candelabra.catalogue import OPERATORS
from candelabra.layout import strided
from candelabra.settings import unset_memory

from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from candelabra._C import Tensor, dtype, memory_format
    from candelabra.types import Device, Number

_empty = OPERATORS["allocate"]
_fill_ = OPERATORS["fill_"]
_fill_new = _fill_.uncounted
_index = python_operator.index
_arange = OPERATORS["arange"]


def sizes_of(size: tuple[Any, ...]) -> Any:
    """Return the sizes given as positional arguments ``(2, 3)`` or ``((2, 3),)``."""
    if len(size) == 1 and type(size[0]) is not int and not hasattr(size[0], "__index__"):
        return size[0]
    return size


def finish(made: Tensor, requires_grad: bool, pin_memory: bool = False) -> Tensor:
    """Move a new tensor to pinned memory and set `requires_grad`, if requested."""
    if pin_memory:
        made = import_module("candelabra.accelerator").pinned_copy(made)
    if requires_grad:
        made.requires_grad_()
    return made


def check_layout(layout: Any, name: str) -> None:
    """Raise for layouts that no backend supports."""
    if layout is not None and layout is not strided:
        raise NotImplementedError(f"{name}(): only layout=candelabra.strided is supported, but got {layout}")


def memory_for(
    size: Any,
    name: str,
    out: Tensor | None,
    dtype: dtype | None,
    layout: Any,
    device: Device,
    memory_format: memory_format | None = None,
    *,
    requires_grad: bool = False,
) -> Tensor:
    """Return memory of these sizes: that of `out` if it is given.

    With `requires_grad`, a dtype of `out` without gradients is refused before its memory changes.
    """
    if layout is not None:
        check_layout(layout, name)
    if out is None:
        try:
            return _empty(size, dtype=dtype, device=device, memory_format=memory_format)
        except TypeError as error:
            raise TypeError(str(error).replace("allocate()", f"{name}()", 1)) from None
    if dtype is not None and out.dtype is not dtype:
        raise RuntimeError(f"{name}(): dtype {dtype} does not match dtype of out parameter ({out.dtype})")
    if requires_grad and not (out.dtype.is_floating_point or out.dtype.is_complex):
        raise RuntimeError(f"Only Tensors of floating point and complex dtype can require gradients, not {out.dtype}")
    resized = tuple(_index(n) for n in size)
    if tuple(out.shape) != resized:
        _C.give_to_out(name, out, _empty(resized, dtype=out.dtype, device=out.device))
    return out


# ---- constants


@function(method=False, operator=True)
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
    """Return an uninitialized tensor.

    Parameters
    ----------
    *size : int or sequence of int
        The sizes.
    out : Tensor, optional
        The output tensor.
    dtype, device : optional
        By default the default dtype and device.
    requires_grad : bool
        Whether autograd records operations on the result.
    memory_format : memory_format, optional
        Contiguous by default.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.empty(2, 3).shape
    candelabra.Size([2, 3])
    """
    if names or (len(size) == 1 and type(size[0]) is not int):
        size = size_argument(size, names, "empty")
    return finish(
        unset_memory(memory_for(size, "empty", out, dtype, layout, device, memory_format, requires_grad=requires_grad)),
        requires_grad,
        pin_memory and out is None,
    )


def size_argument(size: Any, names: dict[str, Any], function_name: str) -> Any:
    """Return the sizes from positional arguments or from the keyword ``size``."""
    if names:
        if "size" in names and not size:
            size = (names.pop("size"),)
        if names:
            raise TypeError(f"{function_name}() got an unexpected keyword argument '{next(iter(names))}'")
    return sizes_of(size)


@function(method=False)
def empty_permuted(
    size: Any,
    physical_layout: Sequence[int],
    *,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return an uninitialized contiguous tensor with the given order of dimensions in memory.

    Parameters
    ----------
    size : sequence of int
        Of the tensor.
    physical_layout : sequence of int
        The dimensions, from the one with the largest stride to the one with the smallest.
    dtype, device, requires_grad
        As in :func:`candelabra.zeros`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    sizes, order = list(size), list(physical_layout)
    if len(sizes) != len(order):
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {len(sizes)} is not equal to "
            f"len(physical_layout) = {len(order)}"
        )
    strides, step = [0] * len(sizes), 1
    for place, d in enumerate(reversed(order)):
        if not 0 <= d < len(sizes):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(sizes) - 1}, but got {d} at index {len(sizes) - 1 - place})."
            )
        if d in order[: len(sizes) - 1 - place]:
            raise RuntimeError(f"Duplicate dim not allowed: {d} is twice in physical_layout={order}")
        strides[d] = step
        step *= max(sizes[d], 1)
    return empty_strided(
        sizes, strides, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad, pin_memory=pin_memory
    )


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
    """Return an uninitialized tensor of given sizes and strides.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    check_layout(layout, "empty_strided")
    return finish(
        unset_memory(OPERATORS["empty_strided"](size, stride, dtype=dtype, device=device)), requires_grad, pin_memory
    )


@function(method=False, operator=True)
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
    """Return a tensor of zeros.

    Parameters
    ----------
    *size : int or sequence of int
        The sizes.
    out : Tensor, optional
        The output tensor.
    dtype, device : optional
        By default the default dtype and device.
    requires_grad : bool
        Whether autograd records operations on the result.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    if names or (len(size) == 1 and type(size[0]) is not int):
        size = size_argument(size, names, "zeros")
    return finish(
        (_fill_new if out is None else _fill_)(
            memory_for(size, "zeros", out, dtype, layout, device, requires_grad=requires_grad), 0
        ),
        requires_grad,
        pin_memory and out is None,
    )


@function(method=False, operator=True)
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
    """Return a tensor of ones; the arguments are those of :func:`candelabra.zeros`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ones(2)
    tensor([1., 1.])
    """
    if names or (len(size) == 1 and type(size[0]) is not int):
        size = size_argument(size, names, "ones")
    return finish(
        (_fill_new if out is None else _fill_)(
            memory_for(size, "ones", out, dtype, layout, device, requires_grad=requires_grad), 1
        ),
        requires_grad,
        pin_memory and out is None,
    )


@function(method=False, operator=True)
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
    """Return a tensor filled with a value.

    Parameters
    ----------
    size : sequence of int
        The sizes.
    fill_value : number or zero-dimensional Tensor
        The value. Its type determines the dtype if none is given.
    out, dtype, device, requires_grad
        As in :func:`candelabra.zeros`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.full((2,), 7)
    tensor([7, 7])
    """
    # Before memory is made or `out` resized.
    if not any(hasattr(fill_value, name) for name in ("__float__", "__index__", "__complex__")):
        raise TypeError(f"full(): argument 'fill_value' (position 2) must be Number, not {type(fill_value).__name__}")
    if isinstance(fill_value, _C.Tensor):
        dtype = fill_value.dtype if dtype is None and out is None else dtype
        device = fill_value.device if device is None else device
        fill_value = fill_value.item()
    if dtype is None and out is None:
        dtype = dtype_of_number(fill_value)
    if hasattr(size, "__index__"):
        size = (size,)
    return finish(
        (_fill_new if out is None else _fill_)(
            memory_for(size, "full", out, dtype, layout, device, requires_grad=requires_grad), fill_value
        ),
        requires_grad,
        pin_memory and out is None,
    )


def dtype_of_number(number: Any) -> Any:
    """Return the dtype of a tensor of this Python or NumPy number; None for the default dtype."""
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
    """Return a zero-dimensional tensor of the default dtype with a number's value.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.scalar_tensor(2)
    tensor(2.)
    """
    check_layout(layout, "scalar_tensor")
    return finish(_fill_new(_empty((), dtype=dtype, device=device), s), requires_grad, pin_memory)


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
    """Return a matrix with ones on the diagonal and zeros elsewhere.

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
    fill = _fill_new if out is None else _fill_
    made = fill(memory_for((n, m), "eye", out, dtype, layout, device, requires_grad=requires_grad), 0)
    if n and m:
        fill(OPERATORS["diagonal"](made), 1)
    return finish(made, requires_grad, pin_memory and out is None)
