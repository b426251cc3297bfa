"""What PyTorch keeps in ``torch.distributed.tensor.experimental``."""

from __future__ import annotations

from .dispatch import implicit_replication

__all__ = ["implicit_replication"]
