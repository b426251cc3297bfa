"""How the ranks that save a checkpoint agree that it is complete: by short messages in a store."""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from datetime import timedelta
from typing import Any
from weakref import WeakKeyDictionary

from ..errors import DistBackendError, DistStoreError
from ..groups import is_initialized, member
from ..process_group import ProcessGroup
from ..store import Store, TCPStore
from ..store.base import Deadline
from ..store.prefix_store import PrefixStore

#: Seconds between looks for the failure of a rank while others are waited for.
_LOOK = 0.5
#: Counts the checkpoints of each group, which all its ranks save in the same order.
_counters: WeakKeyDictionary[ProcessGroup, itertools.count[int]] = WeakKeyDictionary()


class Committee:
    """The ranks that save one checkpoint.

    No collective is called, so that a thread can save while others train.

    Parameters
    ----------
    group : ProcessGroup or None
        None for one process.
    """

    def __init__(self, group: ProcessGroup | None) -> None:
        self.rank = 0 if group is None else group.rank()
        self.size = 1 if group is None else group.size()
        self._group = group
        self._store: Store | None = None
        self._base: Store | None = None
        if group is not None and self.size > 1:
            if group.job.health is None:
                raise RuntimeError("the other ranks of this group are simulated, and save no checkpoint")
            number = next(_counters.setdefault(group, itertools.count()))
            self._group_store, self._prefix = group.get_group_store(), f"checkpoint/{number}"

    def open(self) -> None:
        """Connect to the store, apart from other threads."""
        if self.size > 1:
            self._base = self._group_store.clone()
            self._store = PrefixStore(self._prefix, self._base)

    def close(self) -> None:
        """Close the connection."""
        base = self._base
        while isinstance(base, PrefixStore):
            base = base.underlying_store
        if isinstance(base, TCPStore):
            base.close()
        self._store = self._base = None

    def report(self, step: str, message: dict[str, Any]) -> list[dict[str, Any]]:
        """Tell rank 0 something; return there what all ranks have told, and nothing elsewhere."""
        if self._store is None:
            return [message]
        self._store.set(f"{step}/{self.rank}", json.dumps(message))
        if self.rank:
            return []
        return [json.loads(each) for each in self._wait([f"{step}/{n}" for n in range(self.size)])]

    def decide(self, step: str, verdict: dict[str, Any] | None) -> dict[str, Any]:
        """Return what rank 0 has decided; it gives its decision."""
        if self._store is None:
            assert verdict is not None
            return verdict
        if verdict is not None:
            self._store.set(f"{step}/verdict", json.dumps(verdict))
            for rank in range(self.size):
                with suppress(RuntimeError):  # it takes memory of the server only
                    self._store.delete_key(f"{step}/{rank}")
            return verdict
        found: dict[str, Any] = json.loads(self._wait([f"{step}/verdict"])[0])
        return found

    def _wait(self, keys: list[str]) -> list[bytes]:
        """Return the values of keys, or raise if a rank has failed, before or meanwhile."""
        assert self._store is not None
        assert self._group is not None
        job, deadline = self._group.job, Deadline(self._group.timeout.total_seconds())
        while job.failure is None:
            try:
                self._store.wait(keys, timedelta(seconds=min(_LOOK, deadline.left())))
                return self._store.multi_get(keys)
            except (DistBackendError, DistStoreError):
                # The news of a rank that has failed comes by the job's own channel.
                if not deadline.left():
                    raise
        raise DistBackendError(f"saving a checkpoint on rank {job.rank}: {job.failure}")


def committee(group: ProcessGroup | None, is_alone: bool) -> Committee | None:
    """Return the ranks that save by a call's arguments; None if this process is not one of them."""
    if is_alone or (group is None and not is_initialized()):
        return Committee(None)
    found = member(group)
    return None if found is None else Committee(found)
