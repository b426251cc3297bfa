"""Devices for which there is no backend: they are not available."""

from __future__ import annotations

from typing import Any

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is such a device: there is not."""
    return False


def device_count() -> int:
    """Number of such devices: none."""
    return 0


def _refuse(*arguments: Any) -> Any:
    raise RuntimeError("no such device is available: no backend of Candelabra drives one")


def _nothing(*arguments: Any) -> None:
    """Do nothing, as PyTorch does where there is no such device."""


current_device = synchronize = _refuse
empty_cache = manual_seed = manual_seed_all = _nothing
