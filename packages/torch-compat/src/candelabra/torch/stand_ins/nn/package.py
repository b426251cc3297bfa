"""``torch.nn``: PyTorch's modules have `__getattr__`, which programs call and replace."""

from __future__ import annotations

import candelabra.nn as _nn  # noqa: F401
from candelabra.nn.modules.module import define_getattr

__all__: list[str] = []

define_getattr()
