"""Worker processes of a `DataLoader`, and the transfer of their exceptions to the parent."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import candelabra

from .buffers import Buffers, lend_buffers, use_buffers
from .collate import default_collate
from .fetching import make_fetcher, seed_generators
from .worker_info import WorkerInfo, set_worker_info

#: Kinds of answers to a task.
BATCH, END, ERROR = "batch", "end", "error"


@dataclass
class Work:
    """Data that is common to all workers of a loader."""

    dataset: Any
    batched: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    worker_init_fn: Callable[[int], Any] | None
    base_seed: int
    seed_each_batch: bool
    num_workers: int
    is_stream: bool


class RaisedInWorker:
    """An exception in transfer to the parent: its type and the text of its traceback."""

    def __init__(self, error: BaseException, where: str) -> None:
        self.kind: type[BaseException] = type(error)
        self.where = where
        self.text = "".join(traceback.format_exception(error))

    def raise_again(self) -> None:
        """Raise the exception in this process, with its type if that accepts a message."""
        message = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if issubclass(self.kind, KeyError):
            raise KeyError(_Shown(message))
        try:
            error = self.kind(message)
        except Exception:
            # The type requires other arguments.
            raise RuntimeError(message) from None
        raise error


class _Shown(str):
    """A message that KeyError prints with its line breaks."""

    def __repr__(self) -> str:
        return str(self)


def run(connection: Any, inherited: list[Any], work: Work, number: int, flags: Any) -> None:
    """Process tasks until the parent closes its end of the pipe."""
    for end in inherited:
        # An inherited pipe end that stays open would hide the exit of the process at the other end.
        end.close()
    # Ctrl-C goes to all processes of a terminal. The parent ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    candelabra.set_num_threads(1)
    seed = (work.base_seed + number) & ((1 << 63) - 1)
    seed_generators(seed)
    if work.collate_fn is default_collate:
        # A custom collate function may keep a batch, whose buffer must not be reused then.
        use_buffers(Buffers(flags))
    set_worker_info(WorkerInfo(number, work.num_workers, seed, work.dataset))
    where = f"in DataLoader worker process {number}"
    failure: RaisedInWorker | None = None
    try:
        if work.worker_init_fn is not None:
            work.worker_init_fn(number)
    except Exception as error:
        failure = RaisedInWorker(error, where)
    try:
        _answer(connection, work, failure, where)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        # The parent has closed its end or has exited.
        return


def _answer(connection: Any, work: Work, failure: RaisedInWorker | None, where: str) -> None:
    fetcher: Any = None
    current, base_seed, ended = -1, work.base_seed, False
    while True:
        epoch, task, index = connection.recv()
        if task is None:
            base_seed = index
            continue
        if epoch != current:
            current, fetcher, ended = epoch, None, False
        kind, answer = BATCH, None
        try:
            if failure is not None:
                kind, answer = ERROR, failure
            elif ended:
                kind = END
            else:
                if work.seed_each_batch:
                    seed_generators(base_seed + task)
                if fetcher is None:
                    fetcher = make_fetcher(work.dataset, work.batched, work.collate_fn, work.drop_last, work.is_stream)
                answer = fetcher.fetch(index)
        except StopIteration as error:
            if work.is_stream:
                kind, ended = END, True
            else:
                kind, answer = ERROR, RaisedInWorker(error, where)
        except Exception as error:
            kind, answer = ERROR, RaisedInWorker(error, where)
        _send(connection, epoch, task, kind, answer, where)
        # Release the memory of the batch before waiting for the next task.
        del answer


def _send(connection: Any, epoch: int, task: int, kind: str, answer: Any, where: str) -> None:
    try:
        # For answers that are not batches, lend_buffers() drops the buffers.
        connection.send((epoch, task, kind, answer, lend_buffers(kind == BATCH)))
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:
        # The answer cannot be pickled, possibly because of the type of an exception.
        raised = answer if kind == ERROR else RaisedInWorker(error, where)
        raised.kind = RuntimeError if kind == ERROR else raised.kind
        connection.send((epoch, task, ERROR, raised, lend_buffers(False)))
