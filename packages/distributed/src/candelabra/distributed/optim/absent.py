"""Optimizers that need remote procedure calls, which are not here."""

from __future__ import annotations

from typing import Any, NoReturn

_WAY_OUT = (
    "DistributedOptimizer steps parameters of remote procedure calls, which Candelabra does not have: use "
    "DistributedDataParallel with any optimizer, or ZeroRedundancyOptimizer"
)


class DistributedOptimizer:
    """Not here: its making raises NotImplementedError, which says what to use."""

    def __init__(self, optimizer_class: Any, params_rref: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(_WAY_OUT)
