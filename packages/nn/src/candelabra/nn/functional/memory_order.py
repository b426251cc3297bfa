"""The order of elements in memory that results have."""

from __future__ import annotations

from candelabra import Tensor
from candelabra.composite.memory_formats import channels_last_of


def in_format_of(result: Tensor, input: Tensor) -> Tensor:
    """`result` with its channels last in memory where those of `input` are."""
    if input.ndim < 4 or input.is_contiguous():
        return result
    order = channels_last_of(input)
    return result if order is None else result.contiguous(memory_format=order)
