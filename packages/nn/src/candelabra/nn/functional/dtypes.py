"""Dtypes that a function has no meaning for, said in PyTorch's way before anything is computed."""

from __future__ import annotations

import candelabra
from candelabra import Tensor


def floating_only(name: str, input: Tensor, other: Tensor | None = None) -> None:
    """Refuse tensors of which the wider one is not real floating point.

    Raises
    ------
    NotImplementedError
        With the operator's name and the dtype.
    """
    dtype = input.dtype if other is None else candelabra.promote_types(input.dtype, other.dtype)
    if not dtype.is_floating_point:
        raise NotImplementedError(f'"{name}" not implemented for {dtype}; convert with .to(candelabra.float32)')


def number_of(dtype: candelabra.dtype, value: float) -> float:
    """Return the number as the dtype holds it.

    Raises
    ------
    RuntimeError
        Where it does not hold it.
    """
    if dtype.is_floating_point or dtype.is_complex:
        return value
    least, most = (0, 1) if dtype is candelabra.bool else (candelabra.iinfo(dtype).min, candelabra.iinfo(dtype).max)
    if not least <= value <= most:
        raise RuntimeError(f"value cannot be converted to type {dtype} without overflow: {value}")
    return int(value)
