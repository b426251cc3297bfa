"""Python's `multiprocessing`, with tensors that share their memory when they are sent.

All names of `multiprocessing` are available here. Tensors, parameters, modules and storages that
are sent through queues, pipes and pools, or passed as arguments to a process, are moved to shared
memory and mapped by the receiver. Writes are visible to all processes. See
:doc:`/sharing`.
"""

from __future__ import annotations

from candelabra.version import register

__version__ = "0.1.0"
register("candelabra-multiprocessing", __version__, "candelabra-tensor-core>=0.1,<0.2")

import multiprocessing as _python
from multiprocessing import *  # noqa: F403
from typing import Any

from . import reductions
from .connections import Connection, Pipe
from .contexts import get_context
from .memory import share
from .named_files import SenderGoneError
from .reductions import init_reductions
from .spawning import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)
from .strategies import get_all_sharing_strategies, get_sharing_strategy, set_sharing_strategy


def Queue(maxsize: int = 0) -> Any:  # type: ignore[no-redef]
    """Return a queue between processes.

    Parameters
    ----------
    maxsize : int
        Maximum number of objects in the queue; unlimited if it is not positive.

    Examples
    --------
    >>> import candelabra, candelabra.multiprocessing as mp
    >>> queue = mp.Queue()
    >>> x = candelabra.zeros(2)
    >>> queue.put(x)
    >>> y = queue.get()
    >>> _ = y.fill_(7)
    >>> x
    tensor([7., 7.])
    """
    return get_context().Queue(maxsize)


def JoinableQueue(maxsize: int = 0) -> Any:  # type: ignore[no-redef]
    """Return a queue with ``task_done()`` and ``join()``.

    Examples
    --------
    >>> import candelabra.multiprocessing as mp
    >>> queue = mp.JoinableQueue()
    >>> queue.put("task")
    >>> queue.get()
    'task'
    >>> queue.task_done()
    >>> queue.join()
    """
    return get_context().JoinableQueue(maxsize)


def SimpleQueue() -> Any:  # type: ignore[no-redef]
    """Return a queue that has only ``put()``, ``get()``, ``empty()`` and ``close()``.

    Examples
    --------
    >>> import candelabra.multiprocessing as mp
    >>> queue = mp.SimpleQueue()
    >>> queue.put("word")
    >>> queue.get()
    'word'
    """
    return get_context().SimpleQueue()


def Pool(  # type: ignore[no-redef]
    processes: int | None = None, initializer: Any = None, initargs: Any = (), maxtasksperchild: int | None = None
) -> Any:
    """Return a pool of processes; see `multiprocessing.Pool`.

    Parameters
    ----------
    processes : int, optional
        Number of processes; the number of cores by default.
    initializer, initargs
        A function that each process calls first, and its arguments.
    maxtasksperchild : int, optional
        Number of tasks after which a process is replaced.

    Examples
    --------
    >>> import candelabra, candelabra.multiprocessing as mp
    >>> with mp.Pool(1) as pool:
    ...     pool.map(candelabra.Tensor.sum, [candelabra.ones(2), candelabra.ones(3)])
    [tensor(2.), tensor(3.)]
    """
    return get_context().Pool(processes, initializer, initargs, maxtasksperchild)


init_reductions()

__all__ = [
    *_python.__all__,  # type: ignore[attr-defined]
    "Connection",
    "Pipe",
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SenderGoneError",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "init_reductions",
    "reductions",
    "set_sharing_strategy",
    "share",
    "spawn",
    "start_processes",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
