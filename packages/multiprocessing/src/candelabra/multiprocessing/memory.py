"""Storages in shared memory: how they are made, and what keeps their file."""

from __future__ import annotations

import contextlib
import errno
import functools
import operator
import os
from collections.abc import Callable
from typing import Any

import candelabra
from candelabra import _C

from . import strategies
from .named_files import NamedFile


class AnonymousFile:
    """A file without a name, which lives while somebody has a descriptor of it or maps it; the
    descriptor goes with this object.
    """

    path: str | None = None

    def __init__(self, descriptor: int) -> None:
        self.descriptor: int = descriptor
        self._end: Callable[[], Any] = functools.partial(os.close, descriptor)

    # What is done at the end is called without a frame of Python's: an interrupt (Ctrl-C) that
    # arrived in one would be lost, since nothing that a finalizer raises goes further.
    __del__ = property(operator.attrgetter("_end"))


#: Larger storages are compared with the memory that is available.
ASKED_FIRST = 1 << 26

SharedFile = AnonymousFile | NamedFile


@functools.cache
def _host_memory(device_type: str) -> bool:
    return bool(_C.backend_info(device_type)["capabilities"] & 1)


def on_host(storage: Any) -> bool:
    """Tell whether other processes on this machine could map the memory of a storage."""
    return _host_memory(storage.device.type)


def file_of(storage: Any) -> SharedFile | None:
    """Return the file behind a storage that is shared; None of one that is not."""
    return _C.storage_owner(storage)


def out_of_descriptors(error: OSError) -> RuntimeError:
    """Return what to raise where the system has no descriptor left."""
    return RuntimeError(
        f"no file descriptor left for shared memory ({error.strerror}): each shared storage takes one in each process. Raise the limit "
        "(ulimit -n), or call candelabra.multiprocessing.set_sharing_strategy('file_system')"
    )


def _available() -> int:
    """The bytes that the machine, or the container where it says so, can give."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with open("/proc/meminfo") as file:
        limits += [int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:")]
    with contextlib.suppress(FileNotFoundError), open("/sys/fs/cgroup/memory.max") as file:
        limit = file.read().strip()
        if limit != "max":
            limits.append(int(limit))
    return min(limits)


def _allocate(descriptor: int, nbytes: int) -> None:
    if nbytes == 0:
        return
    # Allocating more than there is would have the system end some process before it says no.
    if nbytes > ASKED_FIRST and nbytes > (available := _available()):
        raise candelabra.OutOfMemoryError(f"no shared memory left for {nbytes} bytes: {available} are available")
    try:
        # The pages are there from now on: touching them cannot end the process with SIGBUS.
        os.posix_fallocate(descriptor, 0, nbytes)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.ENOMEM, errno.EFBIG, errno.EDQUOT):
            raise
        raise candelabra.OutOfMemoryError(
            f"no shared memory left for {nbytes} bytes ({error.strerror}); see what /dev/shm and the limits of this container allow"
        ) from error


def new_storage(nbytes: int, device: Any = "cpu") -> Any:
    """Make a storage of zeros in shared memory, by the current strategy.

    Raises
    ------
    candelabra.OutOfMemoryError
        Where there is not so much shared memory.
    RuntimeError
        Where there is no file descriptor left.
    """
    file: SharedFile
    try:
        if strategies.get_sharing_strategy() == strategies.FILE_SYSTEM:
            file, descriptor = NamedFile.make()
            try:
                _allocate(descriptor, nbytes)
                return _C.map_storage(descriptor, nbytes, file, device)
            finally:
                os.close(descriptor)
        file = AnonymousFile(os.memfd_create("candelabra", os.MFD_CLOEXEC))
        _allocate(file.descriptor, nbytes)
        return _C.map_storage(file.descriptor, nbytes, file, device)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise out_of_descriptors(error) from error
        if error.errno == errno.ENOMEM:
            raise candelabra.OutOfMemoryError(
                f"cannot map {nbytes} bytes of shared memory: {error.strerror}"
            ) from error
        raise


def share(storage: Any) -> Any:
    """Move the memory of a storage to shared memory, under all tensors on it, and return the
    storage.

    Where it is shared already, or not in the memory of the host, nothing is done. Arrays and DLPack
    capsules that were made of its tensors before keep the private memory.
    """
    if on_host(storage) and file_of(storage) is None:
        _C.move_storage(storage, new_storage(storage.nbytes(), storage.device))
    return storage
