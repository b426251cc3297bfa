"""``torch.ao``, which has modules only."""

from __future__ import annotations

__all__: list[str] = []
