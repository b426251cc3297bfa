"""The DataLoader."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar

from candelabra import _C, accelerator

from .collate import default_collate, default_convert
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .dataset_kind import DatasetKind
from .described import described
from .iterators import BatchIterator, ByWorkers, InProcess
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from .worker_info import get_worker_info

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset", "RandomSampler", "Sampler",
    "SequentialSampler", "StackDataset", "Subset", "TensorDataset", "default_collate", "default_convert", "get_worker_info",
    "random_split",
]  # fmt: skip

T_co = TypeVar("T_co", covariant=True)


class _Endless:
    """The index stream of an iterable dataset, which has no indices."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ValueError(f"prefetch_factor option should be positive, but got {prefetch_factor}")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_stream(shuffle: bool | None, sampler: Any, batch_sampler: Any) -> None:
    """Refuse options that say which samples of an iterable dataset are loaded, and when."""
    if shuffle not in {False, None}:
        raise ValueError(
            f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}"
        )
    if sampler is not None:
        raise ValueError(
            f"DataLoader with IterableDataset: expected unspecified sampler option, but got sampler={sampler}"
        )
    if batch_sampler is not None:
        raise ValueError(
            f"DataLoader with IterableDataset: expected unspecified batch_sampler option, but got batch_sampler={batch_sampler}"
        )


class DataLoader(Generic[T_co]):
    """Iterates over batches of a dataset, loaded in this process or by worker processes.

    Workers pass batches in shared memory.

    Parameters
    ----------
    dataset : Dataset
        A map-style dataset (``__getitem__``, ``__len__``), or an :class:`IterableDataset`.
    batch_size : int, optional
        Number of samples per batch; None yields single samples.
    shuffle : bool, optional
        Whether to shuffle in each epoch.
    sampler : Sampler or iterable, optional
        The order of samples; excludes `shuffle`.
    batch_sampler : Sampler or iterable, optional
        Yields the list of indices of each batch; excludes `batch_size`, `shuffle`, `sampler` and
        `drop_last`.
    num_workers : int
        Number of worker processes; 0 loads batches in this process.
    collate_fn : callable, optional
        Collates a list of samples into a batch; :func:`default_collate` by default.
    pin_memory : bool
        Whether to copy batches to page-locked memory, which speeds up transfers to accelerators.
    drop_last : bool
        Whether to drop the last batch if it is incomplete.
    timeout : float
        Seconds to wait for a batch of a worker before a RuntimeError is raised. 0 waits without a
        limit, but detects dead workers.
    worker_init_fn : callable, optional
        Called in each worker with the worker's id.
    multiprocessing_context : str or context, optional
        Start method of workers: ``"fork"``, ``"spawn"``, ``"forkserver"``, or a context.
    generator : Generator, optional
        Generator for the order and the seeds of workers; the default generator if None.
    prefetch_factor : int, optional
        Number of batches that each worker loads in advance; 2 by default.
    persistent_workers : bool
        Whether workers are kept alive after an epoch.
    pin_memory_device : str
        Device for which memory is pinned.
    in_order : bool
        Whether batches are returned in the order of the sampler, or as soon as they are ready.
    seed_each_batch : bool
        Seed the generators of Python, NumPy and Candelabra for each batch from its position in the
        epoch. Random numbers drawn by datasets then do not depend on the number of workers, and are
        the same after a resume. Otherwise each worker is seeded once.

    Raises
    ------
    ValueError
        If options contradict each other.
    RuntimeError
        While iterating, if a worker was killed or the timeout expired. An exception in a worker is
        raised here with its type and the worker's traceback.

    Notes
    -----
    The order does not depend on the number of workers. ``state_dict()`` can be called within an
    epoch. After ``load_state_dict()``, the next iteration resumes at that batch with the same
    order. Map-style samples are not loaded again; streams are read and dropped up to that batch.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.utils.data import DataLoader, TensorDataset
    >>> loader = DataLoader(TensorDataset(candelabra.arange(5)), batch_size=2)
    >>> [batch.tolist() for (batch,) in loader]
    [[0, 1], [2, 3], [4]]
    """

    _ready = False

    def __init__(
        self,
        dataset: Dataset[T_co] | Sequence[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[Any] | Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        seed_each_batch: bool = False,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.seed_each_batch = seed_each_batch
        if isinstance(dataset, IterableDataset):
            _check_stream(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if isinstance(dataset, IterableDataset):
                sampler = _Endless()
            else:
                sized: Any = dataset  # without a length, the sampler says so
                sampler = RandomSampler(sized, generator=generator) if shuffle else SequentialSampler(sized)
        if batch_size is not None and batch_sampler is None:
            numbers: Any = sampler
            batch_sampler = BatchSampler(numbers, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._iterator: ByWorkers | None = None
        self._latest: Any = None
        self._resumed: dict[str, Any] | None = None
        self._ready = True
        self.check_worker_number_rationality()

    def __repr__(self) -> str:
        sampled = self.sampler if self.batch_size is not None or self.batch_sampler is None else self.batch_sampler
        options = [described(self.dataset), f"batch_size={self.batch_size}", f"sampler={described(sampled)}"]
        options += [
            f"{name}={value!r}"
            for name, value in (
                ("num_workers", self.num_workers),
                ("drop_last", self.drop_last),
                ("pin_memory", self.pin_memory),
                ("persistent_workers", self.persistent_workers),
                ("seed_each_batch", self.seed_each_batch),
            )
            if value
        ]
        return f"{type(self).__name__}({', '.join(options)})"

    @property
    def multiprocessing_context(self) -> Any:
        """Multiprocessing context of the workers; None without workers."""
        if self._context is None and self.num_workers:
            from candelabra import multiprocessing

            return multiprocessing.get_context()
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        self._context: Any = None
        if context is None:
            return
        if self.num_workers == 0:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                f"num_workers={self.num_workers}"
            )
        from candelabra import multiprocessing

        if isinstance(context, str):
            valid = multiprocessing.get_all_start_methods()  # type: ignore[attr-defined]
            if context not in valid:
                raise ValueError(
                    f"multiprocessing_context option should specify a valid start method in {valid!r}, but got "
                    f"multiprocessing_context={context!r}"
                )
        elif isinstance(context, BaseContext):
            context = context.get_start_method()
        else:
            raise TypeError(
                "multiprocessing_context option should be a valid context object or a string specifying the start method, but got "
                f"multiprocessing_context={context}"
            )
        self._context = multiprocessing.get_context(context)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._ready and name in {
            "batch_size",
            "batch_sampler",
            "sampler",
            "drop_last",
            "dataset",
            "persistent_workers",
        }:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def pins(self) -> bool:
        """Whether batches are copied to page-locked memory: requires an accelerator."""
        if not self.pin_memory:
            return False
        if accelerator.is_available():
            return True

        _C.warn(
            "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.",
        )
        return False

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _dataset_kind(self) -> int:
        return DatasetKind.Iterable if isinstance(self.dataset, IterableDataset) else DatasetKind.Map

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _generators(self) -> list[Any]:
        """Return the generators that determine the order, except the default generator."""
        owners = (self, self.sampler, self.batch_sampler, getattr(self.batch_sampler, "sampler", None))
        found: list[Any] = []
        for owner in owners:
            generator = getattr(owner, "generator", None)
            if generator is not None and not any(generator is known for known in found):
                found.append(generator)
        return found

    def __iter__(self) -> Iterator[Any]:
        if self.persistent_workers and self._iterator is not None and not self._iterator.ended:
            return self._iterator.again(self)
        made = self._get_iterator()
        if self.persistent_workers and isinstance(made, ByWorkers):
            self._iterator = made
        self._latest = weakref.ref(made)
        return made

    def _get_iterator(self) -> BatchIterator:
        return ByWorkers(self) if self.num_workers else InProcess(self)

    def __len__(self) -> int:
        if isinstance(self.dataset, IterableDataset):
            length = len(self.dataset)  # type: ignore[arg-type]
            if self.batch_size is None:
                return length
            return length // self.batch_size if self.drop_last else -(-length // self.batch_size)
        return len(self._index_sampler)

    def __getstate__(self) -> dict[str, Any]:
        # Iterators belong to the process that created them.
        return {**self.__dict__, "_iterator": None, "_latest": None}

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the latest iteration, as data that `candelabra.save` accepts.

        Returns
        -------
        dict
            Whether an epoch is in progress, how many of its batches were yielded, and the states of
            the generators that determine its order.

        Examples
        --------
        >>> from candelabra.utils.data import DataLoader
        >>> loader = DataLoader(range(6), batch_size=2)
        >>> batches = iter(loader)
        >>> next(batches)
        tensor([0, 1])
        >>> state = loader.state_dict()
        >>> other = DataLoader(range(6), batch_size=2)
        >>> other.load_state_dict(state)
        >>> list(other)
        [tensor([2, 3]), tensor([4, 5])]
        """
        latest = self._latest() if self._latest is not None else None
        if latest is not None and not latest.finished:
            generators, default = latest.started_with
            return {"in_epoch": True, "batches": latest.yielded, "generators": generators, "default_generator": default}
        if self._resumed is not None:
            return dict(self._resumed)
        states = [generator.get_state() for generator in self._generators()]
        return {"in_epoch": False, "batches": 0, "generators": states, "default_generator": None}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Make the next iteration resume from a state.

        Parameters
        ----------
        state_dict : dict
            The result of :meth:`state_dict` of a loader with the same options. The number of
            workers may differ.

        Raises
        ------
        ValueError
            If the state is invalid, or comes from a loader with other generators.
        """
        missing = {"in_epoch", "batches", "generators", "default_generator"} - set(state_dict)
        if missing:
            raise ValueError(f"load_state_dict: this is no state of a DataLoader: {sorted(missing)} are missing")
        generators = self._generators()
        if len(generators) != len(state_dict["generators"]):
            raise ValueError(
                f"load_state_dict: the state has {len(state_dict['generators'])} generators and this loader {len(generators)}; make it with "
                "the same generator= and sampler="
            )
        if state_dict["in_epoch"]:
            self._resumed = dict(state_dict)
            return
        self._resumed = None
        for generator, saved in zip(generators, state_dict["generators"], strict=True):
            generator.set_state(saved)

    def check_worker_number_rationality(self) -> None:
        """Warn if there are more workers than processors."""
        allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if self.num_workers > allowed:
            _C.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of worker in current "
                f"system is {allowed}, which is smaller than what this DataLoader is going to create. Please be aware that excessive "
                "worker creation might get DataLoader running slow or even freeze, lower the worker number to avoid potential "
                "slowness/freeze if necessary.",
            )
