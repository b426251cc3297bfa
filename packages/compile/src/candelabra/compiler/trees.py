"""Trees of containers: the forms of arguments and results, as the core's guards take them."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor

#: Leaves that are compared by value. Other objects are compared by identity.
PLAIN = (
    int,
    float,
    bool,
    str,
    bytes,
    complex,
    type(None),
    candelabra.dtype,
    candelabra.device,
    candelabra.memory_format,
)

Description = tuple[Any, ...]


class UnsupportedError(Exception):
    """A call cannot be replayed; the message says why."""


def describe(value: Any, tensors: list[Tensor], depth: int = 0) -> Description:
    """Return the form of a value as the core has it, and append its tensors to `tensors`.

    Raises
    ------
    UnsupportedError
        If containers are nested too deeply.
    """
    if depth > 20:
        raise UnsupportedError("containers are nested more than 20 deep")
    if isinstance(value, Tensor):
        tensors.append(value)
        return ("tensor", len(tensors) - 1)
    kind = type(value)
    if kind is list:
        return ("list", None, tuple(describe(entry, tensors, depth + 1) for entry in value))
    if kind is dict:
        return ("dict", tuple(value), tuple(describe(entry, tensors, depth + 1) for entry in value.values()))
    if isinstance(value, tuple) and (kind is tuple or hasattr(kind, "_fields")):
        return ("tuple", kind, tuple(describe(entry, tensors, depth + 1) for entry in value))
    return ("value", value)


def key_of(description: Description, tensors: list[Tensor]) -> Any:
    """Return a hashable key of a form, with what is guarded of its tensors."""
    kind = description[0]
    if kind == "tensor":
        tensor = tensors[description[1]]
        return (
            type(tensor), tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.device, tensor.requires_grad,
            tensor.is_inference(), tensor.grad_fn is not None, tensor._base is not None,
        )  # fmt: skip
    if kind == "value":
        value = description[1]
        return (type(value), value) if isinstance(value, PLAIN) else (type(value), id(value))
    names = description[1] if kind == "dict" else None
    return (kind, description[1] if kind == "tuple" else names, tuple(key_of(one, tensors) for one in description[2]))


def same_form(a: Description, b: Description) -> bool:
    """Return whether two results have one form, and equal values besides their tensors."""
    if a[0] != b[0]:
        return False
    if a[0] == "tensor":
        return bool(a[1] == b[1])
    if a[0] == "value":
        if a[1] is b[1]:
            return True
        return type(a[1]) is type(b[1]) and isinstance(a[1], PLAIN) and bool(a[1] == b[1])
    return bool(a[1] == b[1]) and len(a[2]) == len(b[2]) and all(map(same_form, a[2], b[2]))


def strange_leaf(description: Description) -> Any:
    """Return the first value of a result that a replay could not make anew, or None."""
    if description[0] == "value":
        return None if isinstance(description[1], PLAIN) else description[1]
    if description[0] == "tensor":
        return None
    return next((found for one in description[2] if (found := strange_leaf(one)) is not None), None)


def values_of(description: Description) -> list[Any]:
    """Return the leaves of a form that are no tensors."""
    if description[0] == "value":
        return [description[1]]
    if description[0] == "tensor":
        return []
    return [value for one in description[2] for value in values_of(one)]


def geometry_of(tensors: list[Tensor]) -> list[Any]:
    """Return what a call must leave as it is of its arguments, besides values."""
    return [
        (tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.dtype, tensor.requires_grad,
         tensor.untyped_storage()._cdata)
        for tensor in tensors
    ]  # fmt: skip
