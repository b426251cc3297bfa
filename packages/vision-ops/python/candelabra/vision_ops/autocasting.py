"""Autocasting as in torchvision: float32 within the operators, and the dtype of the input
outside.
"""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.library import Library

_EVERYWHERE = ("AutocastCPU", "AutocastCUDA", "AutocastXPU")
#: The operators that are cast, and where. torchvision leaves the others alone on the CPU.
_KEYS = {
    "nms": _EVERYWHERE, "roi_align": _EVERYWHERE, "roi_pool": ("AutocastCUDA",), "ps_roi_align": ("AutocastCUDA",),
    "ps_roi_pool": ("AutocastCUDA",), "deform_conv2d": ("AutocastCUDA",),
}  # fmt: skip


def _cast(value: Any) -> Any:
    if isinstance(value, Tensor) and value.is_floating_point() and value.dtype != candelabra.float64:
        return value.float()
    return value


def _in_float32(name: str) -> Any:
    """Return what is called in place of an operator. Within it, nothing is autocast."""
    operator = getattr(candelabra.ops.torchvision, name)

    def call(first: Tensor, *others: Any) -> Any:
        result = operator(_cast(first), *(_cast(value) for value in others))
        if name == "nms":
            return result
        if isinstance(result, tuple):
            return tuple(part.to(first.dtype) for part in result)
        return result.to(first.dtype)

    return call


def register() -> None:
    """Register what is called under autocast."""
    library = Library("torchvision", "IMPL")
    for name, keys in _KEYS.items():
        for key in keys:
            library.impl(name, _in_float32(name), key)
