"""``torch.nn.parallel``: the name that programs import for several machines, which refuses to be
made.
"""

from __future__ import annotations

from typing import Any

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel:
    """Not available, as ``torch.distributed.is_available()`` says."""

    def __init__(self, module: Any, *arguments: Any, **options: Any) -> None:
        raise RuntimeError(
            "DistributedDataParallel: torch.distributed is not available on Candelabra; use the module as it is"
        )
