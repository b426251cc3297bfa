"""Waiting for all ranks."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from ..errors import DistBackendError
from ..groups import member, warn_outside
from ..process_group import ProcessGroup
from ..store.base import seconds
from ..work import Work


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Wait until all ranks have called this.

    Parameters
    ----------
    group : ProcessGroup, optional
        The world by default.
    async_op : bool
        Return at once, a Work.
    device_ids
        Has no effect.
    timeout : timedelta, optional
        The group's time limit by default.
    """
    found = member(group)
    if found is None:
        warn_outside("barrier")
        return None
    if timeout is None:
        return found.collective("barrier", None, None, is_async=async_op)
    work = found.collective("barrier", None, None, is_async=True)
    assert work is not None
    if async_op:
        return work
    work.wait(timeout)
    return None


def monitored_barrier(
    group: ProcessGroup | None = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait until all ranks have called this, and name those that have not.

    It goes by the store, so it works where a collective hangs.

    Parameters
    ----------
    group : ProcessGroup, optional
        The world by default.
    timeout : timedelta, optional
        The group's time limit by default.
    wait_all_ranks : bool
        Whether rank 0 names all missing ranks, or the first one.

    Raises
    ------
    RuntimeError
        Ranks are missing.
    """
    found = member(group)
    if found is None:
        warn_outside("monitored_barrier")
        return
    limit = found.timeout.total_seconds() if timeout is None else seconds(timeout)
    store = found.get_group_store()
    number = found.next_monitored()
    if found.rank() != 0:
        store.set(f"monitored/{number}/{found.rank()}", b"1")
        # Rank 0 waits as long; it answers even if ranks are missing.
        store.wait([f"monitored/{number}/done"], timedelta(seconds=limit + 5))
        missing = store.get(f"monitored/{number}/done").decode()
        if missing:
            raise DistBackendError(f"[Rank {found.job.rank}]: {missing}")
        return
    end = time.monotonic() + limit
    absent = []
    for rank in range(1, found.size()):
        try:
            store.wait([f"monitored/{number}/{rank}"], timedelta(seconds=max(0.001, end - time.monotonic())))
        except DistBackendError:
            raise
        except RuntimeError:
            absent.append(found.ranks[rank])
            if not wait_all_ranks:
                break
    text = ""
    if absent:
        named = ", ".join(map(str, absent))
        text = f"Ranks {named} failed to pass monitoredBarrier in {round(limit * 1000)} ms"
    store.set(f"monitored/{number}/done", text)
    if text:
        raise DistBackendError(f"[Rank {found.job.rank}]: {text}")
