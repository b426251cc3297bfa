"""``torch.utils.deterministic``."""

from __future__ import annotations

__all__ = ["fill_uninitialized_memory"]

#: Whether deterministic algorithms fill new memory with a known value. Backends do not; the name is
#: there for programs that set it to False to save time.
fill_uninitialized_memory = True
