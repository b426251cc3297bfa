"""``torch.utils.data._utils.pin_memory``."""

from __future__ import annotations

from typing import Any

from candelabra.utils import data as _data  # noqa: F401  (a package is imported before its modules)
from candelabra.utils.data.iterators import pinned

__all__ = ["pin_memory"]


def pin_memory(data: Any, device: Any = None) -> Any:
    """Return a batch with its tensors in page-locked memory.

    Raises
    ------
    RuntimeError
        If there is no accelerator for which memory would be pinned.
    """
    return pinned(data)
