"""Storages in shared memory: allocation, and ownership of their files."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from typing import Any

import candelabra
from candelabra import _C

from . import strategies
from .named_files import NamedFile
from .shared_files import AnonymousFile, SharedFile

#: Larger allocations are checked against the available memory first.
CHECKED_ABOVE = 1 << 26


@functools.cache
def _host_memory(device_type: str) -> bool:
    return bool(_C.backend_info(device_type)["capabilities"] & 1)


def on_host(storage: Any) -> bool:
    """Return whether other processes on this machine can map the memory of a storage."""
    return _host_memory(storage.device.type)


def file_of(storage: Any) -> SharedFile | None:
    """Return the file behind a shared storage, or None."""
    return _C.storage_owner(storage)


def out_of_descriptors(error: OSError) -> RuntimeError:
    """Return the exception for a lack of file descriptors."""
    return RuntimeError(
        f"no file descriptor left for shared memory ({error.strerror}): each shared storage takes one in each process. Raise the limit "
        "(ulimit -n), or call candelabra.multiprocessing.set_sharing_strategy('file_system')"
    )


def _available() -> int:
    """Return the available memory of the machine or the container in bytes."""
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
    # Exceeding the available memory could trigger the OOM killer before the allocation fails.
    if nbytes > CHECKED_ABOVE and nbytes > (available := _available()):
        raise candelabra.OutOfMemoryError(f"no shared memory left for {nbytes} bytes: {available} are available")
    try:
        # Allocates all pages, so that later accesses cannot raise SIGBUS.
        os.posix_fallocate(descriptor, 0, nbytes)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.ENOMEM, errno.EFBIG, errno.EDQUOT):
            raise
        raise candelabra.OutOfMemoryError(
            f"no shared memory left for {nbytes} bytes ({error.strerror}); see what /dev/shm and the limits of this container allow"
        ) from error


def new_storage(nbytes: int, device: Any = "cpu") -> Any:
    """Allocate a zero-initialized storage in shared memory, with the current strategy.

    Raises
    ------
    candelabra.OutOfMemoryError
        If there is not enough shared memory.
    RuntimeError
        If there is no file descriptor left.
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
    """Move a storage to shared memory, for all its tensors, and return the storage.

    Does nothing if the storage is already shared or not in host memory. Arrays and DLPack capsules
    that were created from its tensors before keep the private memory.
    """
    if on_host(storage) and file_of(storage) is None:
        _C.move_storage(storage, new_storage(storage.nbytes(), storage.device))
    return storage
