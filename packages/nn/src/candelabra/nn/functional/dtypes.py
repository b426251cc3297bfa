"""Reject unsupported dtypes before any computation, with PyTorch's messages."""

from __future__ import annotations

import candelabra
from candelabra import Tensor


def floating_only(name: str, input: Tensor, other: Tensor | None = None) -> None:
    """Raise unless the promoted dtype is real floating point.

    Raises
    ------
    NotImplementedError
        If it is not. The message contains the operator's name and the dtype.
    """
    dtype = input.dtype if other is None else candelabra.promote_types(input.dtype, other.dtype)
    if not dtype.is_floating_point:
        raise NotImplementedError(f'"{name}" not implemented for {dtype}; convert with .to(candelabra.float32)')


def number_of(dtype: candelabra.dtype, value: float) -> float:
    """Return the value of a number after conversion to the dtype.

    Raises
    ------
    RuntimeError
        If the dtype cannot represent it.
    """
    if dtype.is_floating_point or dtype.is_complex:
        return value
    low, high = (0, 1) if dtype is candelabra.bool else (candelabra.iinfo(dtype).min, candelabra.iinfo(dtype).max)
    if not low <= value <= high:
        raise RuntimeError(f"value cannot be converted to type {dtype} without overflow: {value}")
    return int(value)
