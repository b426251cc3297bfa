"""``torch.utils.data._utils.signal_handling``: loaders of programs' own that watch their
workers.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
from collections.abc import Iterable
from typing import Any

__all__ = [
    "_error_if_any_worker_fails", "_remove_worker_pids", "_set_SIGCHLD_handler", "_set_worker_pids", "_set_worker_signal_handlers",
]  # fmt: skip

_workers: dict[int, tuple[int, ...]] = {}
_is_handler_set = False


def _set_worker_pids(loader_id: int, worker_pids: Iterable[int]) -> None:
    """Say which processes are the workers of a loader.

    Raises
    ------
    ValueError
        If that was said before.
    """
    if loader_id in _workers:
        raise ValueError("_set_worker_pids should be called only once for each _BaseDataLoaderIter.")
    _workers[loader_id] = tuple(worker_pids)


def _remove_worker_pids(loader_id: int) -> None:
    """Forget the workers of a loader.

    Raises
    ------
    ValueError
        If they are not known.
    """
    if loader_id not in _workers:
        raise ValueError(f"Cannot find worker information for _BaseDataLoaderIter with id {loader_id}")
    del _workers[loader_id]


def _error_if_any_worker_fails() -> None:
    """Raise if a worker was killed or has failed.

    Raises
    ------
    RuntimeError
        With the worker, and how it ended.
    """
    for loader_id, pids in list(_workers.items()):
        for pid in pids:
            try:
                ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                # Another part of the program has waited for it.
                continue
            if ended is None or (ended.si_code == os.CLD_EXITED and ended.si_status == 0):
                continue
            # Report it once.
            _workers[loader_id] = ()
            if ended.si_code == os.CLD_EXITED:
                raise RuntimeError(
                    f"DataLoader worker (pid {pid}) exited unexpectedly with exit code {ended.si_status}. Details are lost due to "
                    "multiprocessing. Rerunning with num_workers=0 may give better error trace."
                )
            raise RuntimeError(
                f"DataLoader worker (pid {pid}) is killed by signal: {signal.strsignal(ended.si_status) or ended.si_status}. "
            )


def _set_SIGCHLD_handler() -> None:
    """Look at the workers when a child process ends; only the main thread can set that."""
    global _is_handler_set
    if _is_handler_set or threading.current_thread() is not threading.main_thread():
        return
    previous: Any = signal.getsignal(signal.SIGCHLD)

    def handler(number: int, frame: Any) -> None:
        _error_if_any_worker_fails()
        if callable(previous):
            previous(number, frame)

    signal.signal(signal.SIGCHLD, handler)
    _is_handler_set = True


def _set_worker_signal_handlers() -> None:
    """Print the stack of a worker that is killed by SIGSEGV, SIGBUS or SIGFPE."""
    faulthandler.enable()
