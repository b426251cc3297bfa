"""``torch.accelerator``: the device, beside the CPU, that an installed backend drives."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import backends

__all__ = ["current_accelerator", "current_device_index", "device_count", "is_available", "synchronize"]

#: Which is taken, where several are there.
_KNOWN = ("cuda", "xpu", "mps")


def _found() -> str | None:
    installed = backends.installed()
    return next((name for name in _KNOWN if name in installed and backends.is_available(name)), None)


def is_available() -> bool:
    """Whether there is an accelerator."""
    return _found() is not None


def current_accelerator(check_available: bool = False) -> candelabra.device | None:
    """The accelerator; None if there is none."""
    name = _found()
    return None if name is None else candelabra.device(name)


def device_count() -> int:
    """Number of accelerators."""
    name = _found()
    return 0 if name is None else backends.device_count(name)


def current_device_index() -> int:
    """Index of the accelerator that is used where none is named."""
    if _found() is None:
        raise RuntimeError("torch.accelerator.current_device_index(): there is no accelerator")
    return 0


def synchronize(device: Any = None) -> None:
    """Wait until the work on the accelerator is done."""
    name = _found()
    if name is None:
        raise RuntimeError("torch.accelerator.synchronize(): there is no accelerator")
    backends.synchronize(name if device is None else device)
