"""``torch.utils.data.dataloader``: the classes of iterators by PyTorch's names."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

import candelabra.multiprocessing as multiprocessing
from candelabra.utils import data as _data  # noqa: F401  (a package is imported before its modules)
from candelabra.utils.data.dataloader import _Endless as _InfiniteConstantSampler
from candelabra.utils.data.dataset_kind import DatasetKind as _DatasetKind
from candelabra.utils.data.iterators import BatchIterator as _BaseDataLoaderIter
from candelabra.utils.data.iterators import ByWorkers as _MultiProcessingDataLoaderIter
from candelabra.utils.data.iterators import InProcess as _SingleProcessDataLoaderIter
from candelabra.utils.data.worker_info import WorkerInfo

__all__ = [
    "WorkerInfo", "_BaseDataLoaderIter", "_DatasetKind", "_InfiniteConstantSampler", "_MultiProcessingDataLoaderIter",
    "_SingleProcessDataLoaderIter", "_collate_fn_t", "_utils", "_worker_init_fn_t", "multiprocessing",
]  # fmt: skip


T = TypeVar("T")
_collate_fn_t = Callable[[list[T]], Any]
_worker_init_fn_t = Callable[[int], None]


class _Utils:
    """``torch.utils.data._utils``, whose modules are imported when they are asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("torch.utils.data._utils"), name)


_utils = _Utils()
