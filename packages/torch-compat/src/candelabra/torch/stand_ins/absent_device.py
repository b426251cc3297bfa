"""Devices without a backend, which are reported as unavailable."""

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
    """Return False, because there is no backend for the device."""
    return False


def device_count() -> int:
    """Return 0, because there is no backend for the device."""
    return 0


def _refuse(*arguments: Any) -> Any:
    raise RuntimeError("no such device is available: no backend of Candelabra drives one")


def _nothing(*arguments: Any) -> None:
    """Do nothing, as PyTorch does without such a device."""


current_device = synchronize = _refuse
empty_cache = manual_seed = manual_seed_all = _nothing
