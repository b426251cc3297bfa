"""``torch.backends`` itself: its submodules are looked up when they are asked for."""

from __future__ import annotations

__all__: list[str] = []
