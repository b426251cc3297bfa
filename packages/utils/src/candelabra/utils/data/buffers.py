"""The shared memory that batches come in, used again once the parent has no tensor on it any more.

New memory has to be cleared and mapped page by page, which costs more than filling it. So a worker
keeps the buffers of the batches it has sent. Each has a flag in memory that both processes share:
the worker raises it when it sends the buffer, and the parent lowers it when the storage there is
freed. A buffer that the parent hands on, to a third process or to a fork of its own, is never
lowered: the worker then gives its own hold of that memory up.
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

#: So many buffers a worker can keep at most.
SLOTS = 256
FREE, LENT, GIVEN_AWAY = 0, 1, 2


class BorrowedFile(memory.AnonymousFile):
    """The file of a buffer in the parent; lowers the flag when nobody there has a tensor on it any
    more.
    """

    # A file is made one by borrow(), which sets these; memory that is passed on asks for the
    # descriptor.
    _descriptor: int
    _slot: int
    _flags: Any
    _end: Callable[[], Any]

    def lend(self, descriptor: int, slot: int, flags: Any) -> None:
        """Note whose buffer this is, and that it goes back at the end."""
        self._descriptor, self._slot, self._flags = descriptor, slot, flags
        # One after the other, and again without a frame of Python's.
        steps = (functools.partial(os.close, descriptor), functools.partial(operator.setitem, flags, slot, FREE))
        self._end = functools.partial(collections.deque, map(operator.call, steps), 0)

    def give_away(self) -> None:
        """Have the buffer not go back: others will hold its memory."""
        self._end = functools.partial(os.close, self._descriptor)
        self._flags[self._slot] = GIVEN_AWAY

    @property
    def descriptor(self) -> int:  # type: ignore[override]
        """The descriptor; who asks for it shares the memory further, so that it cannot go back."""
        self.give_away()
        return self._descriptor


# By the flags that a buffer has and its place there; without callbacks, which would have a frame of
# Python's.
_borrowed: dict[tuple[int, int], weakref.ref[BorrowedFile]] = {}


def _before_fork() -> None:
    # The child will see the same memory, and nobody tells when it is done.
    for file in [reference() for reference in list(_borrowed.values())]:
        if file is not None:
            file.give_away()
    _borrowed.clear()


os.register_at_fork(before=_before_fork)


def new_flags() -> Any:
    """Return the flags of one worker, in memory that both processes share."""
    return rebuilt((SLOTS,), "uint8")


def rebuilt(shape: tuple[int, ...], dtype: Any) -> Tensor:
    """Return a new tensor of zeros in shared memory."""
    import candelabra

    dtype = getattr(candelabra, dtype) if isinstance(dtype, str) else dtype
    return _on(memory.new_storage(math.prod(shape) * dtype.itemsize), shape, dtype)


def _on(storage: Any, shape: tuple[int, ...], dtype: Any) -> Tensor:
    strides = tuple(math.prod(shape[number + 1 :]) for number in range(len(shape)))
    return reductions.rebuild_tensor(storage, dtype, shape, strides, 0, False, None)


class Buffers:
    """The buffers of a worker."""

    def __init__(self, flags: Tensor) -> None:
        self._tensor = flags
        self._flags = view_of(flags)
        self._kept: dict[int, Any] = {}
        self._taken: list[int] = []

    def take(self, nbytes: int) -> Any:
        """Return a storage of so many bytes, one that came back where there is one."""
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
            # What came back and has another size is of batches that are not made any more.
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
        """Return what the parent has to know of the buffers taken since the last time, and raise
        their flags.
        """
        taken, self._taken = self._taken, []
        if not sent:
            # Whoever made the batch may still hold it: only memory that went to the parent is told
            # to be free.
            for slot in taken:
                del self._kept[slot]
            return []
        for slot in taken:
            self._flags[slot] = LENT
        return [(self._kept[slot], slot) for slot in taken]


_buffers: Buffers | None = None


def use_buffers(buffers: Buffers) -> None:
    """Have this process, a worker, take its shared memory from there."""
    global _buffers
    _buffers = buffers


def shared_empty(shape: tuple[int, ...], dtype: Any) -> Tensor:
    """Return a tensor in shared memory, which reaches the parent of a worker without a copy."""
    if _buffers is None:
        return rebuilt(shape, dtype)
    return _on(_buffers.take(math.prod(shape) * dtype.itemsize), shape, dtype)


def lend(sent: bool) -> list[tuple[Any, int]]:
    """See :meth:`Buffers.lend`."""
    return [] if _buffers is None else _buffers.lend(sent)


def view_of(flags: Tensor) -> Any:
    """Return the flags as bytes that can be read and written fast."""
    return memoryview(flags)  # type: ignore[arg-type]


def borrow(lent: list[tuple[Any, int]], flags: Tensor) -> None:
    """Have buffers that came from a worker tell it when they are free again."""
    for storage, slot in lent:
        found = memory.file_of(storage)
        if type(found) is not memory.AnonymousFile:
            continue
        file: Any = found
        descriptor = file.__dict__.pop("descriptor")
        file.__class__ = BorrowedFile
        file.lend(descriptor, slot, view_of(flags))
        # Those of flags that are gone are left over.
        if len(_borrowed) >= 16 * SLOTS:
            for key in [key for key, reference in _borrowed.items() if reference() is None]:
                del _borrowed[key]
        _borrowed[id(flags), slot] = weakref.ref(file)
