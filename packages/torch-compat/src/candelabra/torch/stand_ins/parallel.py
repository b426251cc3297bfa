"""``torch.nn.parallel``: names that distributed programs import."""

from __future__ import annotations

from typing import Any

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel:
    """Not available; see ``torch.distributed.is_available()``."""

    def __init__(self, module: Any, *arguments: Any, **options: Any) -> None:
        raise RuntimeError(
            "DistributedDataParallel: torch.distributed is not available on Candelabra; use the module as it is"
        )
