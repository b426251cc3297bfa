"""Run one module on several devices."""

from __future__ import annotations

import importlib
from typing import Any

from .data_parallel import DataParallel, data_parallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter

__all__ = ["DataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]


def __getattr__(name: str) -> Any:
    """Import `DistributedDataParallel`, which candelabra-distributed has, when it is asked for."""
    if name != "DistributedDataParallel":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    try:
        return importlib.import_module("candelabra.distributed.data_parallel").DistributedDataParallel
    except ModuleNotFoundError as error:
        raise AttributeError(f"{__name__}.{name}: {error}", name=name) from error
