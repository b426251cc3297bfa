"""The sampler of one process among several that train together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized
from typing import Any

import candelabra

from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """The samples of one of several processes, each of which takes its share of every epoch.

    All processes shuffle with the same seed and the same epoch, and take every ``num_replicas``-th
    number. Call :meth:`set_epoch` before each epoch: the order is the same in all of them
    otherwise.

    Parameters
    ----------
    dataset : Dataset
        What has a length.
    num_replicas, rank : int, optional
        How many processes there are, and which one this is; asked for at ``candelabra.distributed``
        by default.
    shuffle : bool
        Whether the order is one of chance.
    seed : int
        The same in all processes.
    drop_last : bool
        Whether samples at the end are left out so that all get as many; else some at the beginning
        come twice.

    Raises
    ------
    ValueError
        Where `rank` is not among `num_replicas`.
    RuntimeError
        Where either is not given and there is no group of processes to ask.

    Examples
    --------
    >>> from candelabra.utils.data import DistributedSampler
    >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            distributed: Any = getattr(candelabra, "distributed", None)
            if distributed is None or not distributed.is_available():
                raise RuntimeError("Requires distributed package to be available; give num_replicas and rank")
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        count = len(dataset)
        self.num_samples = count // num_replicas if drop_last else math.ceil(count / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        if self.shuffle:
            order = candelabra.randperm(
                count, generator=candelabra.Generator().manual_seed(self.seed + self.epoch)
            ).tolist()
        else:
            order = list(range(count))
        if not self.drop_last and count:
            missing = self.total_size - count
            order += (order * math.ceil(missing / count))[:missing]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next, so that it has an order of its own."""
        self.epoch = epoch
