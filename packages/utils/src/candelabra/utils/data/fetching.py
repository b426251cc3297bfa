"""Fetchers: load the samples of one batch from a dataset."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import candelabra

from .collate import default_collate, destination
from .dataset import Subset, TensorDataset


class MapFetcher:
    """Fetches samples by index."""

    def __init__(self, dataset: Any, batched: bool, collate_fn: Callable[[Any], Any], drop_last: bool = False) -> None:
        self.dataset = dataset
        self.batched = batched
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self._many = getattr(dataset, "__getitems__", None)
        self._whole = batched and collate_fn is default_collate and _rows_of(dataset) is not None

    def fetch(self, index: Any) -> Any:
        """Return the batch for a list of indices, or a single sample."""
        if self._whole and index:
            return _gather(self.dataset, index)
        if not self.batched:
            return self.collate_fn(self.dataset[index])
        if self._many is not None:
            return self.collate_fn(self._many(index))
        dataset = self.dataset
        return self.collate_fn([dataset[number] for number in index])


class IterableFetcher:
    """Fetches the next samples of a stream; raises StopIteration at its end."""

    def __init__(self, dataset: Any, batched: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self._samples = iter(dataset)
        self.batched = batched
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, index: Any) -> Any:
        """Return a batch of ``len(index)`` samples, or a single sample."""
        if not self.batched:
            return self.collate_fn(next(self._samples))
        samples = list(itertools.islice(self._samples, len(index)))
        if not samples or (self.drop_last and len(samples) < len(index)):
            raise StopIteration
        return self.collate_fn(samples)


def make_fetcher(
    dataset: Any, batched: bool, collate_fn: Callable[[Any], Any], drop_last: bool, is_stream: bool
) -> Any:
    """Return the fetcher for a dataset."""
    if is_stream:
        return IterableFetcher(dataset, batched, collate_fn, drop_last)
    return MapFetcher(dataset, batched, collate_fn, drop_last)


def _rows_of(dataset: Any) -> TensorDataset | None:
    """Return the `TensorDataset` below any `Subset` wrappers, or None for other datasets."""
    while type(dataset) is Subset:
        dataset = dataset.dataset
    plain = type(dataset) is TensorDataset and all(type(tensor) is candelabra.Tensor for tensor in dataset.tensors)
    return dataset if plain else None


def _gather(dataset: Any, index: list[int]) -> list[Any]:
    """Return the stacked rows at `index`, with one operator call per tensor."""
    while type(dataset) is Subset:
        index = [dataset.indices[number] for number in index]
        dataset = dataset.dataset
    size = len(dataset)
    if index and not -size <= min(index) <= max(index) < size:
        raise IndexError(f"index {max(index)} is out of range for a dataset of {size} samples")
    rows = candelabra.tensor([number + size if number < 0 else number for number in index], dtype=candelabra.int64)
    gathered = []
    for tensor in dataset.tensors:
        where = rows.to(tensor.device)
        out = destination((len(index), *tensor.shape[1:]), tensor)
        gathered.append(candelabra.index_select(tensor, 0, where, **({} if out is None else {"out": out})))
    return gathered


def seed_generators(seed: int) -> None:
    """Seed the generators of Python, Candelabra, and NumPy if it is installed."""
    import random

    seed &= (1 << 63) - 1
    random.seed(seed)
    candelabra.manual_seed(seed)
    try:
        import numpy
    except ImportError:
        return
    numpy.random.seed(numpy.random.SeedSequence(seed).generate_state(4))


def generator_states() -> Any:
    """Return the generator states that `seed_generators` overwrites."""
    import random

    numpy = sys.modules.get("numpy")
    return random.getstate(), candelabra.get_rng_state(), None if numpy is None else numpy.random.get_state()


def restore_generators(states: Any) -> None:
    """Restore the states that `generator_states` returned."""
    import random

    random.setstate(states[0])
    candelabra.set_rng_state(states[1])
    if states[2] is not None:
        sys.modules["numpy"].random.set_state(states[2])
