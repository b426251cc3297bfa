"""``torch.utils._cxx_pytree``: PyTorch's pytrees on the package optree, which it may lack too."""

from __future__ import annotations

__all__: list[str] = []

raise ImportError(
    "torch.utils._cxx_pytree depends on `optree`, which Candelabra does not use: torch.utils._pytree has the same functions"
)
