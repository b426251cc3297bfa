"""Tensors and storages on memory-mapped files."""

from __future__ import annotations

import errno
import os

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..creation.creation import check_layout, finish
from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Storage, Tensor, dtype
    from candelabra.types import Device

_HOST_MEMORY = 1


class MappedFile:
    """The mapping that a storage on a file keeps. candelabra.multiprocessing sends its descriptor
    to other processes.
    """

    #: A finalizer, which files of shared memory may have. This file is not deleted with its last
    #: user.
    path: str | None = None

    def __init__(self, descriptor: int, filename: str) -> None:
        self.descriptor = descriptor
        self.filename = filename

    def __del__(self) -> None:
        os.close(self.descriptor)


@function(method=False)
def from_file(
    filename: Any,
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return a one-dimensional tensor on a memory-mapped file.

    Parameters
    ----------
    filename : str or path
        The file.
    shared : bool, optional
        If True, changes are written to the file, and other processes that map it see them. The file
        is created or extended if needed. If False, changes stay in memory.
    size : int
        The number of elements.
    dtype : dtype, optional
        By default the default dtype.
    layout, device, pin_memory
        Only CPU tensors can be on a file.
    requires_grad : bool
        Whether autograd records operations on the result.

    Raises
    ------
    RuntimeError
        If the file cannot be opened or mapped, is shorter than `size` elements, or cannot be
        extended.

    Examples
    --------
    >>> import candelabra, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "numbers")
    ...     candelabra.from_file(path, shared=True, size=3, dtype=candelabra.int32).fill_(7)
    ...     candelabra.from_file(path, size=2, dtype=candelabra.int32)
    tensor([7, 7, 7], dtype=candelabra.int32)
    tensor([7, 7], dtype=candelabra.int32)
    """
    check_layout(layout, "from_file")
    if pin_memory:
        raise RuntimeError("from_file(): tensors constructed from a file cannot be pinned")
    wanted = _C.get_default_dtype() if dtype is None else dtype
    if size < 0:
        raise RuntimeError(f"from_file(): size must not be negative, but got {size}")
    if device is not None and not _C.backend_info(_C.device(device).type)["capabilities"] & _HOST_MEMORY:
        raise NotImplementedError(
            f"from_file(): only tensors in host memory can be mapped to files, not on {device}; use .to()"
        )
    storage = _mapped(filename, bool(shared), size * wanted.itemsize, device)
    if storage is None:
        return finish(OPERATORS["empty"]((0,), dtype=wanted, device=device), requires_grad)
    return finish(_C.tensor_on_storage(storage, wanted), requires_grad)


def _mapped(filename: Any, shared: bool, nbytes: int, device: Device) -> Storage | None:
    """Map the first bytes of a file; None for zero bytes."""
    path = os.fsdecode(filename)
    mode, flags = ("read-write", os.O_RDWR | os.O_CREAT) if shared else ("read-only", os.O_RDONLY)
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RuntimeError(f"unable to open file <{path}> in {mode} mode: {error.strerror} ({error.errno})") from error
    try:
        held = os.fstat(descriptor).st_size
        if held < nbytes:
            if not shared:
                raise RuntimeError(f"file <{path}> size <{held}> is smaller than the required mapping size <{nbytes}>")
            _lengthen(descriptor, held, nbytes)
        if nbytes == 0:
            return None
        where = _C.get_default_device() if device is None else device
        if not shared:
            return _C.map_range(descriptor, 0, nbytes, False, where)
        owner = MappedFile(descriptor, path)
        descriptor = -1
        return _C.map_storage(owner.descriptor, nbytes, owner, where)
    except (OSError, ValueError, OverflowError) as error:
        raise RuntimeError(f"unable to mmap {nbytes} bytes from file <{path}>: {error}") from error
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _lengthen(descriptor: int, held: int, nbytes: int) -> None:
    try:
        # Allocate the blocks now, so that a full disk cannot end the process later.
        os.posix_fallocate(descriptor, held, nbytes - held)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            os.ftruncate(descriptor, held)
            raise
        os.ftruncate(descriptor, nbytes)


def _storage_from_file(filename: Any, shared: bool = False, nbytes: int = 0) -> Any:
    """Return a storage on a memory-mapped file; see :func:`candelabra.from_file`.

    Parameters
    ----------
    filename : str or path
        The file.
    shared : bool
        If True, changes are written to the file, which is created or extended if needed.
    nbytes : int
        The number of bytes.

    Raises
    ------
    RuntimeError
        If the file cannot be opened or mapped, or is shorter.

    Examples
    --------
    >>> import candelabra, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "bytes")
    ...     candelabra.UntypedStorage.from_file(path, shared=True, nbytes=4).fill_(7).tolist()
    [7, 7, 7, 7]
    """
    if nbytes < 0:
        raise RuntimeError(f"from_file(): nbytes must not be negative, but got {nbytes}")
    storage = _mapped(filename, bool(shared), nbytes, None)
    return OPERATORS["empty"]((0,), dtype=_C.uint8).untyped_storage() if storage is None else storage


def _filename(storage: Any) -> str | None:
    """The file of a storage from ``from_file(shared=True)``, or None."""
    return getattr(_C.storage_owner(storage), "filename", None)


_Storage: Any = _C.Storage
_storage_from_file.__name__ = _storage_from_file.__qualname__ = "from_file"
_Storage.from_file = staticmethod(_storage_from_file)
_Storage.filename = property(_filename)
