"""Contexts: the API of Python's `multiprocessing` for one start method, with tensor sharing."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from multiprocessing import context, pool
from typing import Any

from .connections import Pipe
from .queues import JoinableQueue, Queue, SimpleQueue


class WorkerPool(pool.Pool):
    """A process pool with queues that share tensors; see `multiprocessing.Pool`.

    If a process is killed or exits during a task, its result will never arrive. All pending results
    then raise `RuntimeError`.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        workers = _Workers()
        # Called for each process, including replacements.
        self.Process = workers.make  # type: ignore[method-assign]
        super().__init__(*arguments, **keywords)
        workers.awaited = self._cache  # type: ignore[attr-defined]

    @staticmethod
    def _help_stuff_finish(inqueue: Any, task_handler: Any, size: int) -> None:
        # Drain tasks so that the task thread does not block on a full pipe. Workers may read too,
        # so this must not wait for a message.
        while task_handler.is_alive():
            try:
                inqueue._reader.receive_message(wait=False).close()
            except BlockingIOError:
                break
            time.sleep(0)


class _Workers:
    """The processes of a pool, checked whenever one is replaced.

    Holds no reference to the pool, so that the pool can be garbage collected.
    """

    def __init__(self) -> None:
        self.awaited: dict[int, Any] = {}
        self._made: list[Any] = []

    def make(self, ctx: Any, *arguments: Any, **keywords: Any) -> Any:
        """Create a process without starting it, and fail pending results if a process has died."""
        failed = [worker for worker in self._made if worker.exitcode]
        self._made = [worker for worker in self._made if worker.exitcode is None]
        if failed:
            reasons = ", ".join(f"process {worker.pid} of the pool {_ending(worker.exitcode)}" for worker in failed)
            self._fail(RuntimeError(f"{reasons}, and the task that it had is lost"))
        self._made.append(ctx.Process(*arguments, **keywords))
        return self._made[-1]

    def _fail(self, error: RuntimeError) -> None:
        for number in list(self.awaited):
            waiting = self.awaited.get(number)
            # Its result may arrive concurrently.
            with contextlib.suppress(KeyError):
                # Use `del` instead of pop(): the pool's dictionary overrides it to signal when it
                # becomes empty.
                del self.awaited[number]
                _fail(waiting, error)


def _ending(code: int) -> str:
    return f"was ended by signal {-code}" if code < 0 else f"exited with code {code}"


def _fail(waiting: Any, error: RuntimeError) -> None:
    """Complete a pending result of a pool with an error."""
    if isinstance(waiting, pool.IMapIterator):
        with waiting._cond:  # type: ignore[attr-defined]
            waiting._items.append((False, error))  # type: ignore[attr-defined]
            # The thread that sends tasks may tell the length only now, and removes the job again.
            waiting._cache = {waiting._job: waiting}  # type: ignore[attr-defined]
            waiting._length = None  # type: ignore[attr-defined]
            waiting.__class__ = _LostResults
            waiting._cond.notify()  # type: ignore[attr-defined]
        return
    waiting._success, waiting._value = False, error
    if waiting._error_callback:
        waiting._error_callback(error)
    waiting._event.set()


class _LostResults(pool.IMapIterator):
    """The results of an iteration that has lost a task. They end after those that have arrived."""

    def next(self, timeout: float | None = None) -> Any:
        with self._cond:  # type: ignore[attr-defined]
            if not self._items:  # type: ignore[attr-defined]
                raise StopIteration
        return super().next(timeout)

    __next__ = next


class _Sharing:
    """Methods that differ from those of Python's contexts."""

    def Pipe(self, duplex: bool = True) -> Any:
        """Return the two ends of a pipe; see :func:`candelabra.multiprocessing.Pipe`."""
        return Pipe(duplex)

    def Queue(self, maxsize: int = 0) -> Any:
        """Return a queue between processes."""
        return Queue(maxsize, ctx=self)

    def JoinableQueue(self, maxsize: int = 0) -> Any:
        """Return a queue with ``task_done()`` and ``join()``."""
        return JoinableQueue(maxsize, ctx=self)

    def SimpleQueue(self) -> Any:
        """Return a queue without a feeder thread."""
        return SimpleQueue(ctx=self)

    def Pool(
        self,
        processes: int | None = None,
        initializer: Any = None,
        initargs: Any = (),
        maxtasksperchild: int | None = None,
    ) -> Any:
        """Return a process pool."""
        return WorkerPool(processes, initializer, initargs, maxtasksperchild, context=self)

    def get_context(self, method: str | None = None) -> Any:
        """Return the context of a start method, or this context without one."""
        return self if method is None else get_context(method)


class ForkContext(_Sharing, context.ForkContext):  # type: ignore[misc]
    """Processes are forks of this one."""


class SpawnContext(_Sharing, context.SpawnContext):  # type: ignore[misc]
    """Processes start a new interpreter."""


class ForkServerContext(_Sharing, context.ForkServerContext):  # type: ignore[misc]
    """Processes are forks of a server process with a new interpreter."""


_CONTEXTS: dict[str, Any] = {"fork": ForkContext(), "spawn": SpawnContext(), "forkserver": ForkServerContext()}


def get_context(method: str | None = None) -> Any:
    """Return the context of a start method, with the attributes of this package.

    Parameters
    ----------
    method : str, optional
        ``"fork"``, ``"spawn"`` or ``"forkserver"``. Defaults to the method of
        :func:`set_start_method`, or Python's default.

    Raises
    ------
    ValueError
        If the start method is unknown.

    Examples
    --------
    >>> import candelabra.multiprocessing as mp
    >>> mp.get_context("spawn").get_start_method()
    'spawn'
    """
    name = multiprocessing.get_context(method).get_start_method()
    return _CONTEXTS[name]
