"""Device memory shared between processes: IPC handles of the backend, and leases.

The process that allocated the memory owns it. Other processes open it by a handle
(``cudaIpcGetMemHandle`` for CUDA). The kernel tracks the users: each sent storage has a pipe whose
read end the owner keeps. The write end, called the lease, is sent with the message and held by the
process that opened the memory. All copies of a lease are closed when the tensors are freed, the
message is dropped, or the process is killed. The owner then gets a hangup on the read end and
releases the storage. In the other direction, an error on the lease means that the owner has exited
and its memory is gone.

An event sent with the handle orders the receiver after work queued on the owner's stream. A
receiver synchronizes its device before it releases the memory.
"""

from __future__ import annotations

import errno
import functools
import os
import select
import threading
import weakref
from multiprocessing import context, reduction, util
from typing import Any

import candelabra
from candelabra import _C

from . import messages
from .memory import out_of_descriptors
from .named_files import SenderGoneError

#: Backend capability bit: other processes can open its memory (CB_CAP_IPC).
_CAPABILITY = 64
#: Event flag CB_EVENT_INTERPROCESS.
_INTERPROCESS = 4


@functools.cache
def can_be_sent(device_type: str) -> bool:
    """Return whether other processes can open memory of a device type."""
    return bool(_C.backend_info(device_type)["capabilities"] & _CAPABILITY)


class Lease:
    """The right to use memory of another process: the write end of a pipe, which it owns."""

    __slots__ = ("__weakref__", "descriptor")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        _state.leases.add(self)

    def is_void(self) -> bool:
        """Return whether the process that owns the memory has exited.

        This is also true in a process that was forked from the owner.
        """
        if self.descriptor < 0:
            return True
        asked = select.poll()
        asked.register(self.descriptor, 0)
        return any(event & select.POLLERR for _, event in asked.poll(0))

    def close(self) -> None:
        """Release the lease."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


class Sent:
    """A storage of this process that is shared with other processes, or about to be."""

    def __init__(self, storage: Any, key: bytes, place: tuple[Any, ...]) -> None:
        self.storage = storage
        self.key = key
        self.place = place
        self.handle, self.offset, self.block_bytes = _C.ipc_export_storage(storage)
        #: Read ends of its leases.
        self.readers: set[int] = set()


class Opened:
    """Data of an opened storage of another process: the lease, and what is needed to forward it."""

    def __init__(self, lease: Lease, described: tuple[Any, ...]) -> None:
        self.lease = lease
        self.described = described


class _State:
    """Storages that this process has sent. A forked process starts with a new instance."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.name = os.urandom(16)
        self.count = 0
        self.by_key: dict[bytes, Sent] = {}
        self.by_place: dict[tuple[Any, ...], Sent] = {}
        #: For each read end: the storage, its device, and the event that was sent with it.
        self.readers: dict[int, tuple[Sent, Any, int]] = {}
        #: Leases that are inherited by processes which are being started.
        self.launching: list[tuple[Any, Lease]] = []
        self.leases: weakref.WeakSet[Lease] = weakref.WeakSet()
        self.poll: Any = None
        self.wake = -1

    def find(self, storage: Any) -> Sent:
        """Return the record of a storage, and create it if needed."""
        place = (storage.device, storage.data_ptr(), storage.nbytes())
        found = self.by_place.get(place)
        if found is None:
            self.count += 1
            found = Sent(storage, self.name + self.count.to_bytes(8, "little"), place)
            self.by_key[found.key] = self.by_place[place] = found
        return found

    def forget(self, sent: Sent) -> None:
        """Release a storage if it has no leases."""
        if not sent.readers:
            self.by_key.pop(sent.key, None)
            self.by_place.pop(sent.place, None)

    def watch(self) -> None:
        """Start the thread that detects the end of leases."""
        if self.poll is None:
            self.poll = select.epoll()
            self.wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self.poll.register(self.wake, select.EPOLLIN)
            threading.Thread(target=_look_after, args=(self,), name="candelabra-device-memory", daemon=True).start()
            util.Finalize(None, _tell_of_loss, (os.getpid(),), exitpriority=-50)

    def lease(self, sent: Sent, event: int) -> Lease:
        """Create a lease of a storage."""
        try:
            self.watch()
            reading, writing = os.pipe()
        except OSError as error:
            self.forget(sent)
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise out_of_descriptors(error) from error
            raise
        sent.readers.add(reading)
        self.readers[reading] = (sent, sent.storage.device, event)
        lease = Lease(writing)
        self.poll.register(reading, 0)  # a hangup is always reported
        return lease

    def ended(self, reading: int) -> None:
        """Handle the end of a lease: all processes have closed it."""
        with self.lock:
            if reading not in self.readers:
                return
            sent, device, event = self.readers.pop(reading)
            self.poll.unregister(reading)
            os.close(reading)
            if event:
                _C.event_destroy(device, event)
            sent.readers.discard(reading)
            self.forget(sent)
        # Free the storage here, after the lock was released.
        del sent

    def launched(self) -> None:
        """Close the leases of processes that have started or failed to start."""
        with self.lock:
            self.launching = [(popen, lease) for popen, lease in self.launching if _is_starting(popen())]

    def collect(self) -> None:
        """Release storages without users."""
        self.launched()
        if self.poll is not None:
            for descriptor, _ in self.poll.poll(0):
                if descriptor != self.wake:
                    self.ended(descriptor)


def _is_starting(popen: Any) -> bool:
    return popen is not None and getattr(popen, "pid", None) is None


def _look_after(state: _State) -> None:
    while True:
        # No descriptor signals the start of a process, so poll with a timeout.
        found = state.poll.poll(0.02 if state.launching else None)
        for descriptor, _ in found:
            if descriptor == state.wake:
                os.eventfd_read(state.wake)
            else:
                state.ended(descriptor)
        state.launched()


def _tell_of_loss(pid: int) -> None:
    if pid != os.getpid():
        return
    collect()
    if _state.readers:
        _C.warn(
            "Producer process has been terminated before all shared tensors of devices were released: the memory goes with the process "
            "that made it, so let it live until the others are done. See docs/sharing.md",
        )


_state = _State()


def _after_fork() -> None:
    global _state
    # The read and write ends belong to the parent. Copies here would keep its memory alive, or hide
    # its exit.
    before = _state
    _state = _State()
    for lease in list(before.leases):
        lease.close()
    for reading in before.readers:
        os.close(reading)
    if before.poll is not None:
        before.poll.close()
        os.close(before.wake)
    # The storages also belong to the parent. Keep them referenced, so that no backend frees them
    # here.
    _of_parent.append(before)


_of_parent: list[_State] = []
os.register_at_fork(after_in_child=_after_fork)


def collect() -> None:
    """Release sent storages that no other process uses.

    A background thread does the same as soon as it can.

    ``candelabra.cuda.ipc_collect`` calls this.

    Examples
    --------
    >>> from candelabra.multiprocessing import device_memory
    >>> device_memory.collect()
    """
    _state.collect()


# ---- sending


@functools.cache
def _identity(device: Any) -> bytes:
    """Return the UUID of a device, or empty bytes if the backend does not provide one."""
    found = bytes(_C.device_details(device)["uuid"])
    return found if any(found) else b""


def _recorded(device: Any) -> tuple[int, bytes]:
    """Record an event after the queued work, and return its id and IPC handle.

    If events cannot be shared between processes, synchronize and return id 0.
    """
    stream = _C.current_stream(device)
    try:
        event = _C.event_create(device, _INTERPROCESS)
    except NotImplementedError:
        _C.stream_synchronize(device, stream)
        return 0, b""
    try:
        handle = _C.ipc_export_event(device, event)
        _C.event_record(device, event, stream)
    except NotImplementedError:
        _C.event_destroy(device, event)
        _C.stream_synchronize(device, stream)
        return 0, b""
    except BaseException:
        _C.event_destroy(device, event)
        raise
    return event, handle


def reduce_storage(storage: Any) -> Any:
    """Pickle a device storage as an IPC handle with a lease."""
    device = storage.device
    if storage.nbytes() == 0:
        return rebuild_empty, (str(device),)
    opened: Opened | None = _C.ipc_storage_owner(storage)
    if opened is not None:
        # Forwarded memory: the lease belongs to the owner, so an event of this process could end
        # too early.
        _C.stream_synchronize(device, _C.current_stream(device))
        if opened.lease.is_void():
            raise _sender_gone()
        lease, described, event = opened.lease, opened.described, (0, b"")
    else:
        event = _recorded(device)
        try:
            with _state.lock:
                sent = _state.find(storage)
                lease = _state.lease(sent, event[0])
        except BaseException:
            if event[0]:
                _C.event_destroy(device, event[0])
            raise
        where = (device.type, device.index or 0, _identity(device))
        described = (sent.key, where, sent.handle, sent.offset, sent.block_bytes, storage.nbytes())
    popen = context.get_spawning_popen()
    message = messages.outgoing() if popen is None else None
    if message is not None:
        return rebuild_received, (message.add(lease), event, *described)
    if popen is not None:
        with _state.lock:
            _state.watch()
            _state.launching.append((weakref.ref(popen), lease))
        os.eventfd_write(_state.wake, 1)
    return rebuild_asked_for, (reduction.DupFd(lease.descriptor), event, *described)


# ---- receiving


def _sender_gone() -> SenderGoneError:
    return SenderGoneError(
        "the process that made this tensor has ended, and the memory of its device with it: a process that sends such tensors has to live "
        "until the others are done with them (or send tensor.cpu())"
    )


def _here(where: tuple[str, int, bytes]) -> Any:
    """Return the local device that corresponds to the sender's device."""
    device_type, index, identity = where
    count = candelabra.backends.device_count(device_type)
    if not identity:
        return _C.device(device_type, index)
    # Device indices differ if the processes see different devices.
    for number in sorted(range(count), key=lambda number: number != index):
        if _identity(_C.device(device_type, number)) == identity:
            return _C.device(device_type, number)
    raise RuntimeError(
        f"the tensor is on the sender's {device_type}:{index}, which is none of the {count} devices that this process sees "
        "(CUDA_VISIBLE_DEVICES); send tensor.cpu()"
    )


def _opened(lease: Lease, event: tuple[int, bytes], *described: Any) -> Any:
    key, where, handle, offset, block_bytes, nbytes = described
    sent = _state.by_key.get(key)
    if sent is not None:
        # The storage has returned to its owner.
        storage = sent.storage
        if event[0]:
            _C.event_wait(storage.device, event[0], _C.current_stream(storage.device))
        return storage
    if lease.is_void():
        raise _sender_gone()
    device = _here(where)
    try:
        if event[1]:
            number = _C.ipc_open_event(device, event[1])
            try:
                _C.event_wait(device, number, _C.current_stream(device))
            finally:
                _C.event_destroy(device, number)
        return _C.ipc_open_storage(device, handle, offset, block_bytes, nbytes, key, Opened(lease, described))
    except RuntimeError as error:
        if lease.is_void():
            raise _sender_gone() from error
        raise


def rebuild_received(number: int, *described: Any) -> Any:
    """Open memory whose lease was sent with the message."""
    return _opened(Lease(messages.incoming().take(number)), *described)


def rebuild_asked_for(duplicate: Any, *described: Any) -> Any:
    """Open memory whose lease is inherited, or requested from the sender."""
    try:
        lease = Lease(duplicate.detach())
    except (ConnectionError, EOFError, FileNotFoundError) as error:
        raise _sender_gone() from error
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise out_of_descriptors(error) from error
        raise
    return _opened(lease, *described)


def rebuild_empty(device: str) -> Any:
    """Return an empty storage."""
    return candelabra.empty(0, dtype=candelabra.uint8, device=device).untyped_storage()
