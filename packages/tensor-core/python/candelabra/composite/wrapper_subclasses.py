"""Tensors without memory of their own, whose class computes operators on others, by
``__torch_dispatch__``.
"""

from __future__ import annotations

import copyreg

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor, dtype
    from candelabra.types import Device


def wraps_others(tensor: Tensor) -> bool:
    """Return whether a tensor has no memory of its own, and its class computes operators on the
    tensors that it wraps.
    """
    return "_device_stood_for" in tensor.__dict__


def slots_of(tensor: Tensor) -> dict[str, Any]:
    """Return the values of the ``__slots__`` of a tensor's class."""
    names = copyreg._slotnames(type(tensor)) if type(tensor) is not _C.Tensor else ()  # type: ignore[attr-defined]
    return {name: getattr(tensor, name) for name in names if hasattr(tensor, name)}


def cloned(tensor: Tensor) -> Any:
    """Return the copy of a wrapper that its class makes.

    Raises
    ------
    RuntimeError
        If it is of another class.
    """
    made = tensor.detach().clone()
    if type(made) is not type(tensor):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that "
            "implement clone() and for which cloning returns another instance of the same subclass. You should either "
            "properly implement clone() for your subclass or override __deepcopy__() if it is intended behavior for "
            "clone() to return an instance of a different type."
        )
    return made.requires_grad_(tensor.requires_grad)


def new_of(tensor: Tensor, name: str, size: Any, values: tuple[Any, ...], dtype: dtype | None, device: Device) -> Any:
    """Return what the class of a wrapper makes of an operator of new tensors like it, such as
    ``new_zeros``.

    Raises
    ------
    TypeError
        If the class does not know the operator.
    """
    from candelabra import ops
    from candelabra.overrides import DisableTorchFunctionSubclass

    kind: Any = type(tensor)
    options = {key: value for key, value in (("dtype", dtype), ("device", device)) if value is not None}
    with DisableTorchFunctionSubclass():
        made = kind.__torch_dispatch__(getattr(ops.aten, name).default, (kind,), (tensor, list(size), *values), options)
    if made is NotImplemented:
        raise TypeError(
            f"Multiple dispatch failed for 'candelabra.ops.aten.{name}'; all __torch_dispatch__ handlers returned NotImplemented"
        )
    return made
