"""``torch.export``: names that candelabra.export has not."""

from __future__ import annotations

from .unavailable import unavailable_names

_names = unavailable_names("export")
globals().update(_names)

__all__ = list(_names)
