"""``torch.cpu.amp``: mixed precision on the CPU, deprecated in PyTorch."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import _C, amp

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """Autocasting on the CPU; ``torch.amp.autocast("cpu", ...)`` is the same.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.torch.stand_ins.settings.cpu_amp import autocast
    >>> with autocast():
    ...     (candelabra.ones(2, 2) @ candelabra.ones(2, 2)).dtype
    candelabra.bfloat16
    """

    def __init__(self, enabled: bool = True, dtype: Any = candelabra.bfloat16, cache_enabled: bool = True) -> None:
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """Scaling of gradients on the CPU, deprecated for ``torch.amp.GradScaler("cpu", ...)``."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _C.warn(
            '`torch.cpu.amp.GradScaler(args...)` is deprecated. Please use `torch.amp.GradScaler("cpu", args...)` instead.',
            FutureWarning,
        )
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
