"""Settings of all files: checksums, the byte order of old files, mapping."""

from __future__ import annotations

import enum
import mmap
import threading
from types import TracebackType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAP_SHARED, MAP_PRIVATE = mmap.MAP_SHARED, mmap.MAP_PRIVATE


class LoadEndianness(enum.Enum):
    """The byte order of numbers.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.serialization.LoadEndianness.LITTLE
    <LoadEndianness.LITTLE: 2>
    """

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Options:
    checksums = True
    endianness: LoadEndianness | None = None
    mapping = mmap.MAP_PRIVATE


_OPTIONS = _Options()


def get_crc32_options() -> bool:
    """Return whether archives are saved with checksums.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.serialization.get_crc32_options()
    True
    """
    return _OPTIONS.checksums


def write_checksums() -> bool:
    """Return whether an archive gets checksums: not if its storages are filled in later."""
    return _OPTIONS.checksums and not skipping()


def set_crc32_options(compute_crc32: bool) -> None:
    """Set whether archives are saved with checksums. Without them, saving is faster, and unzip
    warns. Existing checksums are always verified.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.serialization.set_crc32_options(True)
    """
    _OPTIONS.checksums = bool(compute_crc32)


def get_default_load_endianness() -> LoadEndianness | None:
    """Return the byte order of PyTorch's files that do not record it; None for this machine's.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.serialization.get_default_load_endianness()
    """
    return _OPTIONS.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order of PyTorch's files that do not record it (from before version 2.1).

    Raises
    ------
    TypeError
        If it is neither a `LoadEndianness` nor None.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.serialization.set_default_load_endianness(None)
    """
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _OPTIONS.endianness = endianness


def get_default_mmap_options() -> int:
    """Return how ``load(mmap=True)`` maps files: ``mmap.MAP_PRIVATE`` or ``mmap.MAP_SHARED``.

    Examples
    --------
    >>> import candelabra, mmap
    >>> candelabra.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    True
    """
    return _OPTIONS.mapping


class set_default_mmap_options:
    """Set how ``load(mmap=True)`` maps files, permanently or in a ``with`` block.

    Parameters
    ----------
    flags
        ``mmap.MAP_PRIVATE``: changes of tensors stay in this process. ``mmap.MAP_SHARED``: they are
        written to the file, which must be writable.

    Raises
    ------
    ValueError
        For other flags.

    Examples
    --------
    >>> import candelabra, mmap
    >>> with candelabra.serialization.set_default_mmap_options(mmap.MAP_SHARED):
    ...     candelabra.serialization.get_default_mmap_options() == mmap.MAP_SHARED
    True
    """

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_SHARED, MAP_PRIVATE):
            raise ValueError(
                f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}"
            )
        self._before = _OPTIONS.mapping
        _OPTIONS.mapping = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: TracebackType | None) -> None:
        _OPTIONS.mapping = self._before


_LOCAL = threading.local()


def skipping() -> bool:
    """Return whether this thread skips the bytes of storages."""
    return getattr(_LOCAL, "skip", False)


class skip_data:
    """Context manager in which saving only reserves the space of storages in an archive, and
    loading does not read them: tensors are zero.

    Parameters
    ----------
    materialize_fake_tensors
        For compatibility with PyTorch; it has no effect.

    Examples
    --------
    >>> import candelabra, io
    >>> file = io.BytesIO()
    >>> with candelabra.serialization.skip_data():
    ...     candelabra.save(candelabra.ones(2), file)
    >>> _ = file.seek(0)
    >>> candelabra.load(file)
    tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before = skipping()
        _LOCAL.skip = True

    def __exit__(self, kind: Any, error: BaseException | None, traceback: TracebackType | None) -> None:
        _LOCAL.skip = self._before
