"""Information about the current worker process."""

from __future__ import annotations

from typing import Any


class WorkerInfo:
    """Information about a worker: `id`, `num_workers`, `seed`, and its copy of the `dataset`."""

    def __init__(self, id: int, num_workers: int, seed: int, dataset: Any) -> None:
        self.id = id
        self.num_workers = num_workers
        self.seed = seed
        self.dataset = dataset

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed}, dataset={self.dataset!r})"


_info: WorkerInfo | None = None


def set_worker_info(info: WorkerInfo | None) -> None:
    """Set the worker information of this process."""
    global _info
    _info = info


def get_worker_info() -> WorkerInfo | None:
    """Return information about the current `DataLoader` worker; None in the main process.

    Returns
    -------
    WorkerInfo or None
        Has `id` (from 0), `num_workers`, `seed` (the seed of this worker's generators) and
        `dataset` (the worker's copy).

    Examples
    --------
    >>> from candelabra.utils.data import get_worker_info
    >>> get_worker_info() is None
    True
    """
    return _info
