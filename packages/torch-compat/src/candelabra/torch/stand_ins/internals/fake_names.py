"""``torch._subclasses.fake_tensor``: names besides those of ``candelabra.fake_tensor``."""

from __future__ import annotations

from typing import Any

from candelabra.fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["maybe_get_fake_mode"]


def maybe_get_fake_mode(t: Any) -> FakeTensorMode | None:
    """Return the mode of a fake tensor; None for other values."""
    return t.fake_mode if isinstance(t, FakeTensor) else None
