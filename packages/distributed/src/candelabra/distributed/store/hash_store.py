"""A store for the threads of one process."""

from __future__ import annotations

import threading

from ..errors import DistStoreError
from .base import Deadline, Store, missing_keys
from .table import Missing, Table


class HashStore(Store):
    """A store in this process's memory, which its threads share.

    Examples
    --------
    >>> from candelabra.distributed import HashStore
    >>> store = HashStore()
    >>> store.add("count", 3)
    3
    """

    def __init__(self) -> None:
        super().__init__()
        self._table = Table()
        self._changed = threading.Condition()

    def _request(self, code: int, parts: list[bytes], timeout: float) -> list[bytes]:
        deadline = Deadline(timeout)
        with self._changed:
            while True:
                try:
                    reply, changed = self._table.apply(code, parts)
                except Missing:
                    if not self._changed.wait(deadline.left()) and not deadline.left():
                        raise missing_keys(code, parts, timeout) from None
                    continue
                except ValueError as error:
                    raise DistStoreError(str(error)) from None
                if changed:
                    self._changed.notify_all()
                return reply
