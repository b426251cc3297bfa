"""``candelabra.cuda.amp``: `candelabra.amp` for CUDA devices, under PyTorch's older names. Whoever
has no GPU uses it too, with ``enabled=False``.
"""

from __future__ import annotations

from candelabra import amp, backends
from candelabra.amp import custom_bwd, custom_fwd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """`candelabra.amp.autocast` for CUDA devices.

    Parameters
    ----------
    enabled : bool
        Whether anything is changed.
    dtype : dtype, optional
        float16 by default.
    cache_enabled : bool
        Whether parameters are cast once for all their uses.
    """

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """`candelabra.amp.GradScaler` for CUDA devices; see there for its parameters."""

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def amp_definitely_not_available() -> bool:
    """Tell whether mixed precision has no GPU to run on.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.amp.amp_definitely_not_available() != candelabra.cuda.is_available()
    True
    """
    return not backends.is_available("cuda")
