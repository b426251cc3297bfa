"""``torch.cuda.amp``: PyTorch's older names of automatic mixed precision, for CUDA devices."""

from __future__ import annotations

from typing import Any

import candelabra.amp as amp

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """`candelabra.amp.autocast` for CUDA devices."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """`candelabra.amp.GradScaler` for CUDA devices."""

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
