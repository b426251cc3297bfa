"""Errors of files that cannot be read."""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import zlib

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class FileError(RuntimeError):
    """A file is truncated, damaged, hostile, or in an unknown format. Nothing was loaded.

    Examples
    --------
    >>> import candelabra, io
    >>> try:
    ...     candelabra.load(io.BytesIO(b"no archive"))
    ... except candelabra.serialization.FileError:
    ...     print("refused")
    refused
    """


class UnsafeFileError(FileError, pickle.UnpicklingError):
    """A file names a class or a function that is neither a tensor nor plain data, and that the user
    has not allowed.

    Examples
    --------
    >>> import candelabra
    >>> issubclass(candelabra.serialization.UnsafeFileError, candelabra.serialization.FileError)
    True
    """

    #: The full name of what is not allowed.
    missing: str | None = None

    def __init__(self, message: str, missing: str | None = None) -> None:
        super().__init__(message)
        self.missing = missing


class NotReadError(FileError):
    """An intact file holds what is not read: :func:`explained` raises `kind`, and does not call the
    file damaged.
    """

    def __init__(self, message: str, kind: type[FileError] = FileError) -> None:
        super().__init__(message)
        self.kind = kind


class CalledError(Exception):
    """Wraps an exception of a caller's function (``map_location`` or an allowed class), so that
    :func:`explained` passes it on.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def call_given(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the caller. Its exceptions are not reported as faults of the file."""
    try:
        return function(*arguments)
    except Exception as error:
        raise CalledError(error) from error


#: Exceptions that invalid content may raise while it is read.
_FAULTS = (
    ValueError, KeyError, TypeError, EOFError, AttributeError, RecursionError, OverflowError, IndexError, struct.error, zlib.error,
    RuntimeError,
)  # fmt: skip


@contextlib.contextmanager
def explained(function: str, f: Any, formats: str) -> Iterator[None]:
    """Turn errors in the content of a file into a `FileError` that names it. Errors of the system
    and of the caller pass.
    """
    try:
        yield
    except CalledError as called:
        raise called.error from None
    except (_C.OutOfMemoryError, _C.BackendError):
        raise
    except UnsafeFileError as error:
        if error.missing is None:
            raise UnsafeFileError(_sentence(function, f, formats, error)) from error
        raise UnsafeFileError(f"{function}: {_name(f)} is not loaded: {error}", error.missing) from error
    except NotReadError as error:
        raise error.kind(f"{function}: {_name(f)} is not loaded: {error}") from error
    except _FAULTS as error:
        raise FileError(_sentence(function, f, formats, error)) from error


def _name(f: Any) -> str:
    return os.fsdecode(f) if isinstance(f, (str, bytes, os.PathLike)) else "the file"


def _sentence(function: str, f: Any, formats: str, error: Exception) -> str:
    reason = str(error) or type(error).__name__
    return f"{function}: {_name(f)} is no {formats}, or it is damaged: {reason}"
