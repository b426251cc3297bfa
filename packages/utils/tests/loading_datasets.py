"""Datasets and functions that worker processes import."""

import os
import random
import signal
import time

import numpy as np

import candelabra
from candelabra.utils.data import Dataset, IterableDataset, default_collate, get_worker_info


class Squares(Dataset):
    def __init__(self, count=20):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        return index, candelabra.full((3,), float(index * index))


class Chance(Squares):
    def __getitem__(self, index):
        return index, random.random(), float(np.random.rand()), candelabra.rand(2)


class Stream(IterableDataset):
    def __init__(self, count=10):
        self.count = count

    def __iter__(self):
        info = get_worker_info()
        return iter(range(0 if info is None else info.id, self.count, 1 if info is None else info.num_workers))


class Raises(Squares):
    def __init__(self, error, count=20):
        super().__init__(count)
        self.error = error

    def __getitem__(self, index):
        if index == 5:
            raise self.error
        return index


class TwoArguments(Exception):
    def __init__(self, first, second):
        super().__init__(first, second)


class Killed(Squares):
    def __getitem__(self, index):
        if index == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return index


class Exits(Squares):
    def __getitem__(self, index):
        os._exit(3)


class Slow(Squares):
    seconds = 30

    def __getitem__(self, index):
        time.sleep(self.seconds)


class Pid(Squares):
    def __getitem__(self, index):
        return os.getpid()


class Unpicklable(Squares):
    def __getitem__(self, index):
        return index

    @staticmethod
    def collate(samples):
        return lambda: samples


class SlowFirst(Squares):
    def __getitem__(self, index):
        time.sleep(0.5 if index == 0 else 0)
        return index


KEPT = []


def collate_and_keep(samples):
    """Keep every batch, and return the sum of the first one to show that later ones do not change
    it.
    """
    batch = default_collate([sample[1] for sample in samples])
    KEPT.append(batch)
    return batch, float(KEPT[0].sum())


def reseed(number):
    random.seed(100 + number)


def raise_at_start(number):
    raise ValueError(f"no start of worker {number}")
