"""Choose the memory format of results."""

from __future__ import annotations

from candelabra import Tensor
from candelabra.composite.memory_formats import channels_last_of


def in_format_of(result: Tensor, input: Tensor) -> Tensor:
    """Return `result` in channels-last memory format if `input` has that format."""
    if input.ndim < 4 or input.is_contiguous():
        return result
    order = channels_last_of(input)
    return result if order is None else result.contiguous(memory_format=order)
