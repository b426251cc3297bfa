"""Autocasting as in torchvision: float32 within the operators, and the dtype of the input outside."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.amp import is_autocast_available
from candelabra.library.definitions import DEFINITIONS

#: The operators that are cast, and the device types. torchvision leaves the others alone on the CPU.
_DEVICES = {
    "nms": ("cpu", "cuda", "xpu"), "roi_align": ("cpu", "cuda", "xpu"), "roi_pool": ("cuda",), "ps_roi_align": ("cuda",),
    "ps_roi_pool": ("cuda",), "deform_conv2d": ("cuda",),
}  # fmt: skip


def _cast(value: Any) -> Any:
    if isinstance(value, Tensor) and value.is_floating_point() and value.dtype != candelabra.float64:
        return value.float()
    return value


def _in_float32(name: str) -> Any:
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
    for name, devices in _DEVICES.items():
        for device in devices:
            if is_autocast_available(device):
                DEFINITIONS[f"torchvision::{name}"].register_autocast_kernel(device, _in_float32(name))
