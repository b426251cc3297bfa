"""Queues between processes on the pipes of this package.

Tensors share their memory, and a killed process does not leave a lock behind.
"""

from __future__ import annotations

import errno
import os
import threading
import time
import weakref
from multiprocessing import connection, process, queues, util
from queue import Empty, Full
from typing import Any

from .connections import Pipe
from .messages import Message, Received

__all__ = ["Empty", "Full", "JoinableQueue", "Queue", "SimpleQueue"]

_END = queues._sentinel  # type: ignore[attr-defined]
#: Seconds between two looks of a waiting receiver at whether its parent is alive.
_IDLE = 1


def _parent_is_gone() -> bool:
    """Whether the process that started this one has ended."""
    parent = process.parent_process()
    if parent is None or parent.pid is None:
        return False
    if not parent.is_alive():
        return True
    # Processes that were forked after this one keep what is_alive() looks at open.
    try:
        descriptor = os.pidfd_open(parent.pid)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # refused, or an old kernel
    try:
        return bool(connection.wait([descriptor], 0))
    finally:
        os.close(descriptor)


def _leave_if_orphaned(queue: Any) -> None:
    """Close this process's sending end if its parent is gone and it has only received.

    A receiver that holds the sending end, too, would otherwise wait for itself. It ends with
    EOFError once every other process that may send is gone or waits here, too.
    """
    is_own = getattr(queue, "_creator", None) == os.getpid()
    if not is_own and not queue._writer.closed and not _has_sent(queue) and _parent_is_gone():
        queue._left = True
        queue._writer.close()


def _has_sent(queue: Any) -> bool:
    """Whether this process has put objects into the queue."""
    return getattr(queue, "_thread", None) is not None or getattr(queue, "_sender", None) == os.getpid()


def _refuse_if_left(queue: Any) -> None:
    if getattr(queue, "_left", False):
        raise BrokenPipeError(
            errno.EPIPE, "this process only received from the queue when its parent ended, and gave up sending"
        )


def _next_message(queue: Any, block: bool, timeout: float | None) -> Received:
    """Return the next message of a pipe with several readers; raise queue.Empty on timeout."""
    reader = queue._reader
    if block and timeout is None:
        return reader.receive_message(when_idle=lambda: _leave_if_orphaned(queue))
    deadline = time.monotonic() + (max(timeout or 0.0, 0.0) if block else 0.0)
    while True:
        try:
            return reader.receive_message(wait=False)
        except BlockingIOError:
            left = deadline - time.monotonic()
            if left <= 0:
                _leave_if_orphaned(queue)
                raise Empty from None
            connection.wait([reader], left)


class Queue(queues.Queue):  # type: ignore[type-arg]
    """A queue for any number of producer and consumer processes.

    It has the methods of `multiprocessing.Queue`. Objects are pickled in `put`, so pickling errors
    are raised there, and their tensors are in shared memory from then on. Create one with a
    context: ``candelabra.multiprocessing.Queue()``.
    """

    def __init__(self, maxsize: int = 0, *, ctx: Any) -> None:
        super().__init__(maxsize, ctx=ctx)
        for end in (self._reader, self._writer):  # type: ignore[has-type]
            end.close()
        self._reader, self._writer = Pipe(duplex=False)
        self._reader.wake_each(_IDLE)
        self._creator = os.getpid()
        self._reset()  # type: ignore[attr-defined]

    def _reset(self, after_fork: bool = False) -> None:
        super()._reset(after_fork)  # type: ignore[misc]
        #: The error after which nothing can be sent, if any.
        self._failure: list[BaseException] = []

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Put an object; raise queue.Full, or BrokenPipeError if there is no receiver."""
        if self._failure:
            raise BrokenPipeError(
                "the receiver is gone: no process has the other end of this queue open"
            ) from self._failure[0]
        if self._closed:  # type: ignore[attr-defined]
            raise ValueError(f"Queue {self!r} is closed")
        _refuse_if_left(self)
        super().put(Message(obj), block, timeout)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Return the next object; raise queue.Empty, or EOFError if there is no sender.

        A process that has only received from the queue gives up sending when the process that
        started it ends, by a kill for example: it would otherwise wait for itself.
        """
        if self._closed:  # type: ignore[attr-defined]
            raise ValueError(f"Queue {self!r} is closed")
        received = _next_message(self, block, timeout)
        self._sem.release()  # type: ignore[attr-defined]
        return received.load()

    def _start_thread(self) -> None:
        buffer: Any = self._buffer  # type: ignore[attr-defined]
        notempty: Any = self._notempty  # type: ignore[attr-defined]
        buffer.clear()
        ends = (self._reader, self._writer)
        self._thread = threading.Thread(
            target=_feed, args=(buffer, notempty, ends, self._failure, self._on_error, self._sem), name="QueueFeederThread", daemon=True  # type: ignore[attr-defined]
        )  # fmt: skip
        self._thread.start()
        if not self._joincancelled:  # type: ignore[attr-defined]
            self._jointhread = util.Finalize(
                self._thread, _join, [weakref.ref(self._thread), self._reader], exitpriority=-5
            )
        close = queues.Queue._finalize_close  # type: ignore[attr-defined]
        self._close = util.Finalize(self, close, [buffer, notempty], exitpriority=10)

    @property
    def _on_error(self) -> Any:
        # A plain function, because a reference from the thread would keep the queue alive.
        return type(self)._on_queue_feeder_error  # type: ignore[attr-defined]


def _join(thread: Any, reader: Any) -> None:
    """Wait until all objects are sent, or there is no receiver."""
    # Close this process's read end. Otherwise the thread would block if all other receivers have
    # exited.
    reader.close()
    waiting = thread()
    if waiting is not None:
        waiting.join()


def _feed(buffer: Any, notempty: Any, ends: Any, failure: list[BaseException], on_error: Any, free: Any) -> None:
    """Send the buffered objects until the queue is closed.

    Runs in the feeder thread, so that `put` does not block.
    """
    reader, writer = ends
    while True:
        with notempty:
            while not buffer:
                notempty.wait()
            message = buffer.popleft()
        if message is _END:
            reader.close()
            writer.close()
            return
        try:
            writer.send_message(message)
        except BrokenPipeError as error:
            failure.append(error)
            return
        except Exception as error:
            if util.is_exiting():  # type: ignore[attr-defined]
                return
            free.release()
            on_error(error, message)
        # Release the memory of tensors before waiting for the next object.
        del message


class JoinableQueue(Queue, queues.JoinableQueue):  # type: ignore[type-arg]
    """A queue with ``task_done()`` and ``join()``; see `multiprocessing.JoinableQueue`."""

    def __init__(self, maxsize: int = 0, *, ctx: Any) -> None:
        Queue.__init__(self, maxsize, ctx=ctx)
        self._unfinished_tasks = ctx.Semaphore(0)
        self._cond = ctx.Condition()


class SimpleQueue(queues.SimpleQueue):  # type: ignore[type-arg]
    """A queue without a feeder thread; see `multiprocessing.SimpleQueue`.

    `put` blocks while the pipe is full.
    """

    def __init__(self, *, ctx: Any) -> None:
        self._reader, self._writer = Pipe(duplex=False)
        self._reader.wake_each(_IDLE)
        self._creator = os.getpid()
        # Messages are atomic without locks. concurrent.futures and pools access these attributes,
        # but do not wait while holding them.
        self._rlock, self._wlock = ctx.Lock(), ctx.Lock()
        self._poll = self._reader.poll

    def __setstate__(self, state: Any) -> None:
        self._reader, self._writer, self._rlock, self._wlock = state
        self._poll = self._reader.poll

    def get(self) -> Any:
        """Wait for the next object and return it; raise EOFError if there is no sender."""
        return self._reader.receive_message(when_idle=lambda: _leave_if_orphaned(self)).load()

    def put(self, obj: Any) -> None:
        """Put an object; raise BrokenPipeError if there is no receiver."""
        _refuse_if_left(self)
        self._sender = os.getpid()
        self._writer.send_message(Message(obj))
