"""What a worker process knows about itself."""

from __future__ import annotations

from typing import Any


class WorkerInfo:
    """Who a worker is: `id`, `num_workers`, `seed`, and its copy of the `dataset`."""

    def __init__(self, id: int, num_workers: int, seed: int, dataset: Any) -> None:
        self.id = id
        self.num_workers = num_workers
        self.seed = seed
        self.dataset = dataset

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed}, dataset={self.dataset!r})"


_info: WorkerInfo | None = None


def set_worker_info(info: WorkerInfo | None) -> None:
    """Make this process the worker described."""
    global _info
    _info = info


def get_worker_info() -> WorkerInfo | None:
    """Return who this worker of a `DataLoader` is; None in the main process.

    Returns
    -------
    WorkerInfo or None
        With `id` (from 0), `num_workers`, `seed` (that this worker's generators were seeded with)
        and `dataset` (its copy).

    Examples
    --------
    >>> from candelabra.utils.data import get_worker_info
    >>> get_worker_info() is None
    True
    """
    return _info
