"""Samplers: the order of samples and their grouping into batches."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import candelabra

from .described import described

T_co = TypeVar("T_co", covariant=True)

#: Number of indices per random draw with replacement.
DRAWN_AT_ONCE = 32


def _own_generator() -> Any:
    """Return a new generator seeded by the default one, independent of its later use."""
    generator = candelabra.Generator()
    generator.manual_seed(int(candelabra.empty((), dtype=candelabra.int64).random_().item()))
    return generator


class Sampler(Generic[T_co]):
    """Base class of samplers.

    Subclasses define ``__iter__``, which yields indices or lists of them, and ``__len__`` if the
    length is known.

    Examples
    --------
    >>> from candelabra.utils.data import Sampler
    >>> class Backwards(Sampler):
    ...     def __iter__(self):
    ...         return iter([2, 1, 0])
    >>> list(Backwards())
    [2, 1, 0]
    """

    _describes_itself = True

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} is a sampler without __iter__(self); define it")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


class SequentialSampler(Sampler[int]):
    """Samples in their original order.

    Examples
    --------
    >>> from candelabra.utils.data import SequentialSampler
    >>> list(SequentialSampler("abc"))
    [0, 1, 2]
    """

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.data_source)})"


class RandomSampler(Sampler[int]):
    """Samples in random order.

    Parameters
    ----------
    data_source : Dataset
        A dataset with a length.
    replacement : bool
        Whether to sample with replacement.
    num_samples : int, optional
        Number of samples to draw; the length of the dataset by default.
    generator : Generator, optional
        Source of randomness; by default a generator seeded from the default generator in each
        epoch.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.utils.data import RandomSampler
    >>> sorted(RandomSampler("abcd", generator=candelabra.Generator().manual_seed(0)))
    [0, 1, 2, 3]
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        count = self.num_samples
        if (
            not isinstance(count, int)
            or isinstance(count, bool)
            or count < 0
            or (num_samples is not None and count == 0)
        ):
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={count}")

    @property
    def num_samples(self) -> int:
        """Number of samples to draw; the current length of the dataset if none was given."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, count = len(self.data_source), self.num_samples
        generator = self.generator if self.generator is not None else _own_generator()
        if self.replacement:
            while count > 0:
                drawn = min(count, DRAWN_AT_ONCE)
                yield from candelabra.randint(n, (drawn,), dtype=candelabra.int64, generator=generator).tolist()
                count -= drawn
            return
        if n == 0:
            return
        # As in PyTorch, one permutation more than the epoch may need is drawn: the state in which
        # a given generator is left is that of PyTorch's.
        for _ in range(count // n):
            yield from candelabra.randperm(n, generator=generator).tolist()
        yield from candelabra.randperm(n, generator=generator).tolist()[: count % n]

    def __len__(self) -> int:
        return self.num_samples

    def __repr__(self) -> str:
        replacement = ", replacement=True" if self.replacement else ""
        samples = f", num_samples={self._num_samples}" if self._num_samples is not None else ""
        return f"{type(self).__name__}({len(self.data_source)}{replacement}{samples})"


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order, without replacement.

    Examples
    --------
    >>> from candelabra.utils.data import SubsetRandomSampler
    >>> sorted(SubsetRandomSampler([7, 3]))
    [3, 7]
    """

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for number in candelabra.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[number]

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.indices)} indices)"


class WeightedRandomSampler(Sampler[int]):
    """Random indices from 0 to ``len(weights) - 1`` with probabilities proportional to weights.

    Parameters
    ----------
    weights : sequence of float
        One weight per sample; they need not sum to 1.
    num_samples : int
        Number of samples to draw.
    replacement : bool
        Whether to sample with replacement.
    generator : Generator, optional
        Source of randomness.

    Examples
    --------
    >>> from candelabra.utils.data import WeightedRandomSampler
    >>> list(WeightedRandomSampler([0.0, 1.0, 0.0], 4))
    [1, 1, 1, 1]
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = candelabra.as_tensor(weights, dtype=candelabra.double)
        if self.weights.dim() != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        yield from candelabra.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        ).tolist()

    def __len__(self) -> int:
        return self.num_samples

    def __repr__(self) -> str:
        sizes = f"{self.weights.numel()} weights, num_samples={self.num_samples}"
        return f"{type(self).__name__}({sizes}, replacement={self.replacement})"


class BatchSampler(Sampler[list[int]]):
    """Batches of the indices of another sampler.

    Parameters
    ----------
    sampler : Sampler or iterable
        The sampler of single indices.
    batch_size : int
        Number of indices per batch.
    drop_last : bool
        Whether to drop the last batch if it is incomplete.

    Examples
    --------
    >>> from candelabra.utils.data import BatchSampler
    >>> list(BatchSampler(range(5), 2, False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __repr__(self) -> str:
        sampler = described(self.sampler)
        return f"{type(self).__name__}({sampler}, batch_size={self.batch_size}, drop_last={self.drop_last})"
