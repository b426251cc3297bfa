"""A lock between processes: a file that one of them creates."""

from __future__ import annotations

import os
import time

from candelabra import _C

__all__ = ["FileBaton"]


class FileBaton:
    """A lock that the process has which creates a file.

    Parameters
    ----------
    lock_file_path
        The file.
    wait_seconds
        How long `wait` sleeps between two looks.
    warn_after_seconds
        After how long it warns.

    Examples
    --------
    >>> import os, tempfile
    >>> from candelabra.utils.file_baton import FileBaton
    >>> path = os.path.join(tempfile.mkdtemp(), "lock")
    >>> baton = FileBaton(path)
    >>> baton.try_acquire(), FileBaton(path).try_acquire()
    (True, False)
    >>> baton.release()
    """

    def __init__(self, lock_file_path: str, wait_seconds: float = 0.1, warn_after_seconds: float | None = None) -> None:
        self.lock_file_path = lock_file_path
        self.wait_seconds = wait_seconds
        self.warn_after_seconds = warn_after_seconds
        self.fd: int | None = None

    def try_acquire(self) -> bool:
        """Create the file; return False if there is one."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Wait until the file is gone."""
        start, has_warned = time.monotonic(), False
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            waited = time.monotonic() - start
            if self.warn_after_seconds is not None and waited > self.warn_after_seconds and not has_warned:
                _C.warn(f'Waited on lock file "{self.lock_file_path}" for {self.warn_after_seconds} seconds.')
                has_warned = True

    def release(self) -> None:
        """Remove the file."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        os.remove(self.lock_file_path)
