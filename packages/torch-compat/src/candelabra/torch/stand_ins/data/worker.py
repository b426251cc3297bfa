"""``torch.utils.data._utils.worker``: names of PyTorch's module."""

from __future__ import annotations

import os
from dataclasses import dataclass

from candelabra.utils import data as _data  # noqa: F401  (a package is imported before its modules)
from candelabra.utils.data.worker_info import WorkerInfo, get_worker_info

__all__ = [
    "ManagerWatchdog",
    "WorkerInfo",
    "_IterableDatasetStopIteration",
    "_ResumeIteration",
    "_generate_state",
    "get_worker_info",
]


class ManagerWatchdog:
    """Tells a worker process whether the process that started it is alive."""

    def __init__(self) -> None:
        self.manager_pid = os.getppid()
        self.manager_dead = False

    def is_alive(self) -> bool:
        """Return whether it is: otherwise this process has another parent."""
        self.manager_dead = self.manager_dead or os.getppid() != self.manager_pid
        return not self.manager_dead


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """Says that the stream of a worker has ended."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """Says that a worker begins the next epoch."""

    seed: int | None = None


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Return the seed of NumPy's generator in a worker, as four integers of 32 bits."""
    from numpy.random import SeedSequence

    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(number) for number in SeedSequence(entropy).generate_state(4)]
