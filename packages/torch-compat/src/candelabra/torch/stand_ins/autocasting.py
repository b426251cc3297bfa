"""``torch.amp.autocast_mode``, and the checks of ``torch.cuda.amp.common``."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import candelabra

__all__ = ["amp_definitely_not_available", "autocast_decorator"]


def autocast_decorator(autocast_instance: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose calls run in an autocast block."""
    return autocast_instance(func)  # type: ignore[no-any-return]


def amp_definitely_not_available() -> bool:
    """Return whether there is neither a CUDA device nor torch_xla."""
    return not (candelabra.cuda.is_available() or importlib.util.find_spec("torch_xla"))
