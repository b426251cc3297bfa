"""Atomic replacement of files: if the process or the machine stops, either the old or the new file
exists, complete.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


@contextlib.contextmanager
def replaced(f: Any) -> Iterator[Any]:
    """Context manager that returns a stream, and replaces the file by what was written to it.

    The bytes are written to an unnamed file in the same folder and synced. The file then gets a
    temporary name, and is renamed; last, the folder is synced. An exception leaves the old file
    unchanged. If the path is a symbolic link, its target is replaced. The new file has the
    permissions of the old one, and its owner if this user may set it. Other files than regular
    ones, such as pipes, are written directly.

    Examples
    --------
    >>> import os, tempfile
    >>> from candelabra.serialization.replacing import replaced
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replaced(os.path.join(folder, "notes")) as stream:
    ...         _ = stream.write(b"all or nothing")
    ...     os.listdir(folder)
    ['notes']
    """
    path = os.path.realpath(os.fspath(f))
    try:
        before: os.stat_result | None = os.stat(path)
    except FileNotFoundError:
        before = None
    if before is not None and not stat.S_ISREG(before.st_mode):
        with open(path, "wb") as stream:
            yield stream
        return
    folder = os.path.dirname(path)
    # If the process is killed between the last two steps, the name shows what the file is.
    name = path + (
        b".%b.part" % secrets.token_hex(4).encode() if isinstance(path, bytes) else f".{secrets.token_hex(4)}.part"
    )
    descriptor, named = _new_file(folder, name)
    try:
        with open(descriptor, "wb") as stream:
            if before is not None:
                _like(stream.fileno(), before)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            if not named:
                # linkat(2) with a path follows the symbolic link of the descriptor. Python calls it
                # if a folder is given.
                os.link(f"/proc/self/fd/{stream.fileno()}", name, src_dir_fd=stream.fileno(), follow_symlinks=True)
                named = True
        os.replace(name, path)
        named = False
    finally:
        if named:
            os.unlink(name)
    _sync_folder(folder)


def _new_file(folder: Any, name: Any) -> tuple[int, bool]:
    """Open a new file, unnamed if the file system supports that. An unnamed file vanishes with the
    process.
    """
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        try:
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666), False
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            raise
        except OSError:
            # Not every file system supports unnamed files. Opening a named one shows whether there
            # is another problem.
            pass
    return os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666), True


def _like(descriptor: int, before: os.stat_result) -> None:
    made = os.fstat(descriptor)
    if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
        # Only the superuser may change the owner, and other users the group to one of theirs.
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def _sync_folder(folder: Any) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems do not sync folders; the file itself is synced.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
