"""Datasets: map-style datasets, iterable datasets, and combinations of them."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import candelabra
from candelabra import _C, Tensor

from .described import described

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Base class of map-style datasets.

    Subclasses define ``__getitem__``, and ``__len__`` if a sampler needs the number of samples.
    They may also define ``__getitems__(indices)``, if loading many samples at once is faster. The
    loader then calls it with the indices of a batch.

    Examples
    --------
    >>> from candelabra.utils.data import Dataset
    >>> class Squares(Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, index):
    ...         return index * index
    >>> Squares()[3]
    9
    """

    _describes_itself = True

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__} is a dataset without __getitem__(self, index); define it")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Base class of stream datasets; subclasses define ``__iter__``.

    Each worker iterates over its own copy of the dataset. Call :func:`get_worker_info` in
    ``__iter__`` to select the worker's part.

    Examples
    --------
    >>> from candelabra.utils.data import IterableDataset
    >>> class Count(IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(Count())
    [0, 1, 2]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} is an iterable dataset without __iter__(self); define it")

    def __add__(self, other: Dataset[T_co]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Rows of tensors: sample `i` is ``(tensors[0][i], tensors[1][i], …)``.

    Parameters
    ----------
    *tensors : Tensor
        Tensors of equal size in the first dimension.

    Raises
    ------
    AssertionError
        If the sizes differ.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.utils.data import TensorDataset
    >>> TensorDataset(candelabra.eye(2), candelabra.tensor([5, 6]))[1]
    (tensor([0., 1.]), tensor(6))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError(
                f"Size mismatch between tensors: first dimensions are {[tensor.size(0) for tensor in tensors]}"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)

    def __repr__(self) -> str:
        shown = (f"{tuple(tensor.shape)} {str(tensor.dtype).rpartition('.')[2]}" for tensor in self.tensors)
        return f"{type(self).__name__}({', '.join(shown)})"


class StackDataset(Dataset[Any]):
    """Datasets in parallel: a sample is the tuple or dictionary of their samples.

    Parameters
    ----------
    *args, **kwargs : Dataset
        Datasets of equal length. Positional arguments give tuples, keyword arguments dictionaries.

    Raises
    ------
    ValueError
        If lengths differ, positional and keyword arguments are mixed, or there is no dataset.

    Examples
    --------
    >>> from candelabra.utils.data import StackDataset
    >>> StackDataset(image=[1, 2], label=["a", "b"])[1]
    {'image': 2, 'label': 'b'}
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like input/output, but both given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        parts = args or tuple(kwargs.values())
        self._length = len(parts[0])
        if any(len(part) != self._length for part in parts):
            raise ValueError(f"Size mismatch between datasets: their lengths are {[len(part) for part in parts]}")
        self.datasets = args or kwargs

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: part[index] for name, part in self.datasets.items()}
        return tuple(part[index] for part in self.datasets)

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        def rows(part: Any) -> list[Any]:
            many = getattr(part, "__getitems__", None)
            found = list(many(indices)) if callable(many) else [part[index] for index in indices]
            if len(found) != len(indices):
                raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(found)}")
            return found

        if isinstance(self.datasets, dict):
            columns = [rows(part) for part in self.datasets.values()]
            return [dict(zip(self.datasets, row, strict=True)) for row in zip(*columns, strict=True)]
        return list(zip(*(rows(part) for part in self.datasets), strict=True))

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        if isinstance(self.datasets, dict):
            shown = ", ".join(f"{name}={described(part)}" for name, part in self.datasets.items())
        else:
            shown = ", ".join(map(described, self.datasets))
        return f"{type(self).__name__}({shown})"


class ConcatDataset(Dataset[T_co]):
    """Concatenation of map-style datasets.

    Parameters
    ----------
    datasets : iterable of Dataset
        At least one dataset; iterable datasets are not allowed.

    Examples
    --------
    >>> from candelabra.utils.data import ConcatDataset
    >>> joined = ConcatDataset([[1, 2], [3]])
    >>> len(joined), joined[2], joined[-3]
    (3, 3, 1)
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Return the cumulative sizes of the datasets."""
        return list(itertools.accumulate(len(part) for part in sequence))

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(part, IterableDataset) for part in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset; use ChainDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: Any) -> T_co:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        part = bisect.bisect_right(self.cumulative_sizes, index)
        if part == len(self.datasets):
            raise IndexError(f"index {index} is out of range for a dataset of {len(self)} samples")
        return self.datasets[part][index - (self.cumulative_sizes[part - 1] if part else 0)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}([{', '.join(map(described, self.datasets))}])"

    @property
    def cummulative_sizes(self) -> list[int]:
        """Deprecated misspelled alias of `cumulative_sizes`."""
        _C.warn("cummulative_sizes attribute is renamed to cumulative_sizes", FutureWarning)
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """Concatenation of iterable datasets.

    Examples
    --------
    >>> from candelabra.utils.data import ChainDataset, IterableDataset
    >>> class Count(IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(2))
    >>> list(ChainDataset([Count(), Count()]))
    [0, 1, 0, 1]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for part in self.datasets:
            if not isinstance(part, IterableDataset):
                raise AssertionError(f"ChainDataset only supports IterableDataset, but got {type(part).__name__}")
            yield from part

    def __len__(self) -> int:
        total = 0
        for part in self.datasets:
            if not isinstance(part, IterableDataset):
                raise AssertionError(f"ChainDataset only supports IterableDataset, but got {type(part).__name__}")
            total += len(part)  # type: ignore[arg-type]
        return total

    def __repr__(self) -> str:
        # Iterating over what is no list may use it up.
        parts = ", ".join(map(described, self.datasets)) if isinstance(self.datasets, list | tuple) else "..."
        return f"{type(self).__name__}([{parts}])"


class Subset(Dataset[T_co]):
    """Subset of a dataset, given by indices.

    Examples
    --------
    >>> from candelabra.utils.data import Subset
    >>> Subset("abcdef", [4, 0])[0]
    'e'
    """

    dataset: Any
    indices: Sequence[int]

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[number] for number in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        many = getattr(self.dataset, "__getitems__", None)
        if callable(many):
            return many([self.indices[number] for number in indices])
        return [self.dataset[self.indices[number]] for number in indices]

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.indices)} of {described(self.dataset)})"


def random_split(dataset: Any, lengths: Sequence[int | float], generator: Any = None) -> list[Subset[Any]]:
    """Split a dataset randomly into disjoint subsets.

    Parameters
    ----------
    dataset : Dataset
        The dataset to split.
    lengths : sequence of int or float
        Sizes of the parts, or fractions that sum to 1. Samples left over by rounding are
        distributed round-robin, starting with the first part.
    generator : Generator, optional
        Source of randomness.

    Returns
    -------
    list of Subset

    Raises
    ------
    ValueError
        If the lengths do not sum to the length of the dataset, or a fraction is not between 0 and
        1.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.utils.data import random_split
    >>> parts = random_split(range(10), [0.7, 0.3], candelabra.Generator().manual_seed(1))
    >>> [len(part) for part in parts]
    [7, 3]
    """
    total = len(dataset)
    mismatch = f"Sum of input lengths does not equal the length of the input dataset! ({list(lengths)} of {total})"
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        counts = []
        for number, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {number} is not between 0 and 1")
            counts.append(math.floor(total * fraction))
        for number in range(total - sum(counts)):
            counts[number % len(counts)] += 1
        for number, count in enumerate(counts):
            if count == 0:
                _C.warn(f"Length of split at index {number} is 0. This might result in an empty dataset.")
    else:
        if sum(lengths) != total:  # also refuses infinities and NaN
            raise ValueError(mismatch)
        counts = [int(count) for count in lengths]
    if sum(counts) != total or (counts and min(counts) < 0):
        raise ValueError(mismatch)
    order = candelabra.randperm(total, generator=generator).tolist()
    ends = itertools.accumulate(counts)
    return [Subset(dataset, order[end - count : end]) for end, count in zip(ends, counts, strict=True)]
