"""Helpers of batch rules: results and nonnegative dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from candelabra import Tensor


class Batched(NamedTuple):
    """A result of a batch rule whose batch is not the first dimension."""

    value: Tensor
    bdim: int | None


def wrapped_dim(dim: int, ndim: int) -> int:
    """Return a dimension counted from the front.

    Raises
    ------
    IndexError
        If the dimension does not exist.
    """
    count = max(ndim, 1)
    if not -count <= dim < count:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})")
    return dim % count


def int_dims(dim: Any) -> list[int]:
    return [int(entry) for entry in (dim if isinstance(dim, (tuple, list)) else (dim,))]


def joined_dims(value: Tensor, dim: int) -> Tensor:
    """Merge dimensions `dim` and `dim` + 1."""
    return value.reshape((*value.shape[:dim], value.shape[dim] * value.shape[dim + 1], *value.shape[dim + 2 :]))
