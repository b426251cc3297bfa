"""``torch.utils._device``: a decorator for functions whose tensors are made on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra

from .contextlib_names import context_decorator

__all__ = ["set_device"]


def set_device(device: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator: the function makes its tensors on `device` unless it says another."""
    return lambda function: context_decorator(lambda: candelabra.device(device), function)
