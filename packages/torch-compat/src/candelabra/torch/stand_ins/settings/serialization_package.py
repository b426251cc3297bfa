"""``torch.utils.serialization`` itself, whose submodules are imported on first access."""

from __future__ import annotations

__all__: list[str] = []
