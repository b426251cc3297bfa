"""Shared-memory buffers of batches, reused after the parent process has released their tensors.

Clearing and mapping the pages of new memory costs more than filling it. A worker therefore keeps
the buffers of the batches it has sent. Each buffer has a flag in memory shared by both processes.
The worker sets the flag when it sends the buffer, and the parent clears it when its storage is
freed. If the parent passes a buffer to a third process or forks, the flag is never cleared, and the
worker drops its own reference to that memory.
"""

from __future__ import annotations

import collections
import functools
import math
import operator
import os
import weakref
from collections.abc import Callable
from typing import Any

from candelabra import Tensor
from candelabra.multiprocessing import memory, reductions
from candelabra.multiprocessing.shared_files import AnonymousFile

#: Maximum number of buffers of a worker.
SLOTS = 256
FREE, LENT, GIVEN_AWAY = 0, 1, 2


class BorrowedFile(AnonymousFile):
    """The file of a buffer in the parent; it clears the flag when its last tensor is freed."""

    # borrow() changes the class of a file and sets these. Sharing the memory with another process
    # reads `descriptor`.
    _descriptor: int
    _slot: int
    _flags: Any
    _release: Callable[[], Any]

    def return_when_freed(self, descriptor: int, slot: int, flags: Any) -> None:
        """Return the buffer to the worker, by its flag in `slot`, when this object is freed."""
        self._descriptor, self._slot, self._flags = descriptor, slot, flags
        # Runs both steps in order, also without a Python frame; see SharedFile.
        steps = (functools.partial(os.close, descriptor), functools.partial(operator.setitem, flags, slot, FREE))
        self._release = functools.partial(collections.deque, map(operator.call, steps), 0)

    def give_away(self) -> None:
        """Prevent the return of the buffer, because another process will hold its memory."""
        self._release = functools.partial(os.close, self._descriptor)
        self._flags[self._slot] = GIVEN_AWAY

    @property
    def descriptor(self) -> int:  # type: ignore[override]
        """The descriptor; access gives the buffer away, because the memory is shared further."""
        self.give_away()
        return self._descriptor


# Keyed by the id of the flags and the slot. No weakref callbacks, because they would run in a
# Python frame.
_borrowed: dict[tuple[int, int], weakref.ref[BorrowedFile]] = {}


def _before_fork() -> None:
    # The child maps the same memory and cannot report when it is done with it.
    for file in [reference() for reference in list(_borrowed.values())]:
        if file is not None:
            file.give_away()
    _borrowed.clear()


os.register_at_fork(before=_before_fork)


def new_flags() -> Any:
    """Return the flags of one worker in shared memory."""
    return rebuilt((SLOTS,), "uint8")


def rebuilt(shape: tuple[int, ...], dtype: Any) -> Tensor:
    """Return a new zero-initialized tensor in shared memory."""
    import candelabra

    dtype = getattr(candelabra, dtype) if isinstance(dtype, str) else dtype
    return _on(memory.new_storage(math.prod(shape) * dtype.itemsize), shape, dtype)


def _on(storage: Any, shape: tuple[int, ...], dtype: Any) -> Tensor:
    strides = tuple(math.prod(shape[number + 1 :]) for number in range(len(shape)))
    return reductions.rebuild_tensor(storage, dtype, shape, strides, 0, False, None)


class Buffers:
    """The buffers of one worker."""

    def __init__(self, flags: Tensor) -> None:
        self._tensor = flags
        self._flags = view_of(flags)
        self._kept: dict[int, Any] = {}
        self._taken: list[int] = []

    def take(self, nbytes: int) -> Any:
        """Return a storage of `nbytes` bytes, reusing a returned buffer if one fits."""
        fits = -1
        for slot, storage in list(self._kept.items()):
            state = self._flags[slot]
            if state == GIVEN_AWAY:
                del self._kept[slot]
                self._flags[slot] = FREE
            elif state == FREE and slot not in self._taken and storage.nbytes() == nbytes:
                fits = slot
                break
        if fits < 0:
            # Returned buffers of other sizes belong to batch shapes that are no longer in use.
            for slot in [one for one in self._kept if self._flags[one] == FREE and one not in self._taken][4:]:
                del self._kept[slot]
            free = next((slot for slot in range(SLOTS) if slot not in self._kept), None)
            storage = memory.new_storage(nbytes)
            if free is None:
                return storage
            self._kept[free] = storage
            fits = free
        self._taken.append(fits)
        return self._kept[fits]

    def lend(self, sent: bool) -> list[tuple[Any, int]]:
        """Return (storage, slot) of the buffers taken since the last call, and set their flags.

        If the batch was not sent, drop the buffers instead.
        """
        taken, self._taken = self._taken, []
        if not sent:
            # The producer of the batch may still hold the memory, and no parent will report it as
            # free.
            for slot in taken:
                del self._kept[slot]
            return []
        for slot in taken:
            self._flags[slot] = LENT
        return [(self._kept[slot], slot) for slot in taken]


_buffers: Buffers | None = None


def use_buffers(buffers: Buffers) -> None:
    """Make this worker process allocate shared memory from `buffers`."""
    global _buffers
    _buffers = buffers


def shared_empty(shape: tuple[int, ...], dtype: Any) -> Tensor:
    """Return a tensor in shared memory, which a worker can send to its parent without a copy."""
    if _buffers is None:
        return rebuilt(shape, dtype)
    return _on(_buffers.take(math.prod(shape) * dtype.itemsize), shape, dtype)


def lend_buffers(sent: bool) -> list[tuple[Any, int]]:
    """Return the buffers taken since the last call; see `Buffers.lend`."""
    return [] if _buffers is None else _buffers.lend(sent)


def view_of(flags: Tensor) -> Any:
    """Return a memory view of the flags, for fast access."""
    return memoryview(flags)  # type: ignore[arg-type]


def borrow(lent: list[tuple[Any, int]], flags: Tensor) -> None:
    """Make buffers received from a worker clear their flags when they are freed."""
    for storage, slot in lent:
        found = memory.file_of(storage)
        if type(found) is not AnonymousFile:
            continue
        file: Any = found
        descriptor = file.__dict__.pop("descriptor")
        file.__class__ = BorrowedFile
        file.return_when_freed(descriptor, slot, view_of(flags))
        # Remove entries whose files no longer exist.
        if len(_borrowed) >= 16 * SLOTS:
            for key in [key for key, reference in _borrowed.items() if reference() is None]:
                del _borrowed[key]
        _borrowed[id(flags), slot] = weakref.ref(file)
