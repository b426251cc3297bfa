"""Sampler for distributed training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized
from typing import Any

import candelabra

from .described import described
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Sampler that restricts each process to its share of the samples.

    All processes shuffle with the same seed and epoch, and each takes every ``num_replicas``-th
    index. Call :meth:`set_epoch` before each epoch; otherwise every epoch has the same order.
    :meth:`set_start` leaves out what was taken before, on any number of processes.

    Parameters
    ----------
    dataset : Dataset
        A dataset with a length.
    num_replicas, rank : int, optional
        Number of processes and index of this process; by default from ``candelabra.distributed``.
    shuffle : bool
        Whether to shuffle.
    seed : int
        Seed of the shuffle; must be the same in all processes.
    drop_last : bool
        Whether to drop samples at the end so that all processes get the same number. Otherwise
        samples from the beginning are repeated.

    Raises
    ------
    ValueError
        If `rank` is not less than `num_replicas`, or is negative.
    RuntimeError
        If either is missing and no process group is initialized.

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
        #: Number of samples at the start of the epoch's order that are left out.
        self.start = 0
        self._divide()

    def _divide(self) -> None:
        count = len(self.dataset) - self.start
        self.num_samples = count // self.num_replicas if self.drop_last else math.ceil(count / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        if self.shuffle:
            order = candelabra.randperm(
                count, generator=candelabra.Generator().manual_seed(self.seed + self.epoch)
            ).tolist()
        else:
            order = list(range(count))
        rest = order[self.start :]
        if not self.drop_last and count:
            missing = self.total_size - len(rest)
            rest += (order * math.ceil(missing / count))[:missing]
        return iter(rest[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which determines the shuffle. It starts with its first sample."""
        self.epoch = epoch
        if self.start:
            self.set_start(0)

    def set_start(self, start: int) -> None:
        """Leave out the first samples of the epoch's order, until the next `set_epoch`.

        After k batches of b samples on each of n processes, the first k * b * n samples of the
        order are taken, and any number of processes can divide the rest.

        Parameters
        ----------
        start : int
            The number of samples that are left out.

        Raises
        ------
        ValueError
            If there are fewer samples.

        Examples
        --------
        >>> from candelabra.utils.data import DistributedSampler
        >>> sampler = DistributedSampler(range(7), 1, 0, shuffle=False)
        >>> sampler.set_start(4)
        >>> list(sampler)
        [4, 5, 6]
        """
        if not 0 <= start <= len(self.dataset):
            raise ValueError(f"set_start: start must be from 0 to {len(self.dataset)}, but is {start}")
        self.start = start
        self._divide()

    def __repr__(self) -> str:
        ranks = f"rank={self.rank}, num_replicas={self.num_replicas}, shuffle={self.shuffle}"
        return f"{type(self).__name__}({described(self.dataset)}, {ranks})"
