"""Iterators over the batches of a `DataLoader`, in this process or with workers."""

from __future__ import annotations

import itertools
import os
import signal
import time
import weakref
from collections import deque
from collections.abc import Iterator
from multiprocessing import connection as waiting
from typing import Any

import candelabra
from candelabra import _C

from .buffers import borrow, new_flags
from .dataset import IterableDataset
from .dataset_kind import DatasetKind, as_loader
from .fetching import generator_states, make_fetcher, restore_generators, seed_generators
from .worker import BATCH, END, ERROR, Work, run

#: Seconds that a worker has to exit before it is terminated.
PATIENCE = 1.0


class BatchIterator:
    """Base class of the iterators: order, position, and processing of each batch."""

    def __init__(self, loader: Any) -> None:
        self._auto_collation = loader._auto_collation
        self._expected = (
            len(loader) if isinstance(loader.dataset, IterableDataset) and hasattr(loader.dataset, "__len__") else None
        )
        self._iterable = loader._dataset_kind == DatasetKind.Iterable
        self._num_workers = loader.num_workers
        self._pin = loader.pins
        self._dataset_name = type(loader.dataset).__name__
        self._order = loader._index_sampler
        self._begin(loader)

    def _begin(self, loader: Any) -> None:
        """Start an epoch, or resume the epoch of a loaded state."""
        state, loader._resumed = loader._resumed, None
        skipped = state["batches"] if state else 0
        generators = loader._generators()
        default = None
        if state:
            for generator, saved in zip(generators, state["generators"], strict=True):
                generator.set_state(saved)
            if state["default_generator"] is not None:
                default = candelabra.get_rng_state()
                candelabra.set_rng_state(state["default_generator"])
        try:
            #: Generator states at the start of the epoch, which determine its order.
            self.started_with = ([generator.get_state() for generator in generators], candelabra.get_rng_state())
            self._base_seed = int(
                candelabra.empty((), dtype=candelabra.int64).random_(generator=loader.generator).item()
            )
            self._indices: Iterator[Any] = iter(loader._index_sampler)
            # Samplers draw random numbers at their first index. Do that now, before the generators
            # change.
            count = 0 if self._iterable else skipped
            ahead = list(itertools.islice(self._indices, count + 1))[count:]
            self._indices = itertools.chain(ahead, self._indices)
        finally:
            if default is not None:
                candelabra.set_rng_state(default)
        self._task = 0 if self._iterable else skipped
        self._to_drop = skipped if self._iterable else 0
        #: Number of batches of this epoch that were yielded.
        self.yielded = 0 if self._iterable else skipped
        self.finished = False

    def __iter__(self) -> BatchIterator:
        return self

    def __len__(self) -> int:
        return len(self._order)

    def _next(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        if self.finished:
            raise StopIteration
        try:
            while self._to_drop:
                self._next()
                self._to_drop -= 1
                self.yielded += 1
            batch = self._next()
        except StopIteration:
            self.finished = True
            raise
        self.yielded += 1
        if self._expected is not None and self.yielded == self._expected + 1:
            _C.warn(
                f"Length of IterableDataset {self._dataset_name} was reported to be {self._expected} (when accessing len(dataloader)), "
                f"but {self.yielded} samples have been fetched. "
                + (
                    "For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset replica at "
                    "each worker: see get_worker_info()."
                    if self._num_workers
                    else ""
                ),
            )
        return pinned(batch) if self._pin else batch


def pinned(data: Any) -> Any:
    """Copy the tensors of a batch to page-locked memory."""
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, dict):
        return type(data)({key: pinned(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pinned(one) for one in data))
    if isinstance(data, list | tuple):
        return type(data)(pinned(one) for one in data)
    return data


class InProcess(BatchIterator):
    """Loads batches in this process on demand."""

    def __init__(self, loader: Any) -> None:
        loader = as_loader(loader)
        if loader.timeout:
            raise ValueError("timeout can only be used with workers: num_workers is 0")
        super().__init__(loader)
        self._seed_each_batch = loader.seed_each_batch
        self._fetcher = make_fetcher(
            loader.dataset, self._auto_collation, loader.collate_fn, loader.drop_last, self._iterable
        )

    def _next(self) -> Any:
        index = next(self._indices)
        task, self._task = self._task, self._task + 1
        if not self._seed_each_batch:
            return self._fetcher.fetch(index)
        states = generator_states()
        try:
            seed_generators(self._base_seed + task)
            return self._fetcher.fetch(index)
        finally:
            restore_generators(states)


class ByWorkers(BatchIterator):
    """Loads batches with worker processes, partly in advance; each worker has its own pipe."""

    def __init__(self, loader: Any) -> None:
        loader = as_loader(loader)
        self._prefetch = loader.prefetch_factor
        self._timeout = loader.timeout or None
        self._persistent = loader.persistent_workers
        self._in_order = loader.in_order
        self._epoch = -1
        self._connections: list[Any] = []
        self._processes: list[Any] = []
        self._flags: list[Any] = []
        # The finalizer ends the workers however the iterator ends: completion, an error, Ctrl-C or
        # a loop that was left.
        self._end = weakref.finalize(self, end_workers, os.getpid(), self._connections, self._processes)
        super().__init__(loader)

    def _start_workers(self, loader: Any) -> None:
        context = loader.multiprocessing_context
        work = Work(
            loader.dataset, self._auto_collation, loader.collate_fn, loader.drop_last, loader.worker_init_fn, self._base_seed,
            loader.seed_each_batch, self._num_workers, self._iterable,
        )  # fmt: skip
        forked = context.get_start_method() == "fork"
        try:
            for number in range(self._num_workers):
                ours, theirs = context.Pipe()
                self._connections.append(ours)
                inherited = list(self._connections) if forked else []
                self._flags.append(new_flags())
                arguments = (theirs, inherited, work, number, self._flags[-1])
                process = context.Process(target=run, args=arguments, daemon=True)
                try:
                    process.start()
                finally:
                    theirs.close()
                self._processes.append(process)
        except BaseException:
            self._end()
            raise

    def _begin(self, loader: Any) -> None:
        super()._begin(loader)
        if not self._processes:
            self._start_workers(loader)
        else:
            for number in range(self._num_workers):
                self._tell(number, (self._epoch, None, self._base_seed))
        self._epoch += 1
        self._active = [True] * self._num_workers
        self._load = [0] * self._num_workers
        self._turn = 0
        #: (worker, task) pairs in the order in which their batches are returned.
        self._due: deque[tuple[int, int]] = deque()
        self._arrived: dict[int, tuple[str, Any]] = {}
        for _ in range(self._prefetch * self._num_workers):
            self._assign()

    def _tell(self, number: int, message: Any) -> None:
        try:
            self._connections[number].send(message)
        except (BrokenPipeError, ConnectionResetError):
            self._died(number)

    def _assign(self) -> None:
        """Send the next task to the next worker in turn."""
        able = [number for number in range(self._num_workers) if self._active[number]]
        if not able:
            return
        try:
            index = next(self._indices)
        except StopIteration:
            return
        if self._in_order:
            number = min(able, key=lambda one: (one - self._turn) % self._num_workers)
        else:
            number = min(able, key=lambda one: (self._load[one], (one - self._turn) % self._num_workers))
        self._turn = number + 1
        self._load[number] += 1
        self._due.append((self._task, number))
        self._tell(number, (self._epoch, self._task, index))
        self._task += 1

    def _receive(self, number: int) -> None:
        """Receive a message of a worker; raises BlockingIOError if there is none."""
        try:
            epoch, task, kind, answer, lent = self._connections[number].receive_message(wait=False).load()
        except (EOFError, ConnectionResetError):
            self._died(number)
        borrow(lent, self._flags[number])
        del lent
        if epoch != self._epoch:
            return
        self._load[number] -= 1
        if kind == END:
            self._active[number] = False
        self._arrived[task] = (kind, answer)

    def _wait(self, numbers: list[int]) -> None:
        """Wait for a message of one of these workers, or for the exit of any worker."""
        ends = {self._connections[number]: number for number in numbers}
        sentinels = {process.sentinel: number for number, process in enumerate(self._processes)}
        ready = waiting.wait([*ends, *sentinels], self._timeout)
        if not ready:
            self.finished = True
            self._end()
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        messages = [ends[end] for end in ready if end in ends]
        for number in messages:
            self._receive(number)
        if not messages:
            self._died(sentinels[ready[0]])  # type: ignore[index]

    def _died(self, number: int) -> None:
        process = self._processes[number]
        process.join(PATIENCE)
        code, pid = process.exitcode, process.pid
        self.finished = True
        self._end()
        if code is not None and code < 0:
            name = signal.strsignal(-code) or f"signal {-code}"
            hint = " It might be out of memory." if -code == signal.SIGKILL else ""
            raise RuntimeError(f"DataLoader worker (pid {pid}) is killed by signal: {name}.{hint}")
        raise RuntimeError(
            f"DataLoader worker (pid(s) {pid}) exited unexpectedly"
            + ("" if code is None else f" with exit code {code}")
        )

    def _next(self) -> Any:
        while True:
            if not self._due:
                if not self._persistent:
                    self._end()
                raise StopIteration
            found = self._take()
            if found is None:
                continue
            kind, answer = found
            self._assign()
            if kind == BATCH:
                return answer
            if kind == ERROR:
                answer.raise_again()

    def _take(self) -> tuple[str, Any] | None:
        """Return the next answer in order, or None if another one arrived."""
        if self._in_order:
            task, number = self._due[0]
            if task not in self._arrived:
                try:
                    self._receive(number)
                except BlockingIOError:
                    self._wait([number])
                if task not in self._arrived:
                    return None
            self._due.popleft()
            return self._arrived.pop(task)
        if not self._arrived:
            self._wait(sorted({number for _, number in self._due}))
        if not self._arrived:
            return None
        task = next(iter(self._arrived))
        self._due = deque(one for one in self._due if one[0] != task)
        return self._arrived.pop(task)

    def again(self, loader: Any) -> ByWorkers:
        """Start the next epoch with the same workers."""
        self._begin(loader)
        return self

    @property
    def ended(self) -> bool:
        """Whether the workers have ended."""
        return not self._end.alive


def end_workers(owner: int, connections: list[Any], processes: list[Any]) -> None:
    """Close the pipes, which ends idle workers, and terminate those that do not exit in time."""
    if os.getpid() != owner:
        # A forked process has a copy of the iterator, but the workers are not its children.
        return
    for end in connections:
        end.close()
    deadline = time.monotonic() + PATIENCE
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
    for process in processes:
        if process.is_alive():
            process.terminate()
    for process in processes:
        process.join(PATIENCE)
        if process.is_alive():
            process.kill()
            process.join()
    connections.clear()
    processes.clear()
