"""Writing a file so that at any moment, whatever ends the process or the machine, there is the old
one or the new one, whole.
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
    """Give a stream to write to, and put what was written in the place of the file at the end of
    the ``with`` block.

    The bytes go to a file without a name in the same folder, to the disk, then get a name of their
    own there, and by renaming that of the file; last, the folder goes to the disk. An exception
    leaves the old file. A symbolic link stays, and what it leads to is replaced. The new file has
    the permissions of the old one, and its owner where this user may give them. What is no ordinary
    file, such as a pipe, is written to.

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
    # What is left where the process is killed between the last two steps tells what it is.
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
                # linkat(2) with a name follows that of the descriptor; Python calls it where a
                # folder is given.
                os.link(f"/proc/self/fd/{stream.fileno()}", name, src_dir_fd=stream.fileno(), follow_symlinks=True)
                named = True
        os.replace(name, path)
        named = False
    finally:
        if named:
            os.unlink(name)
    _sync_folder(folder)


def _new_file(folder: Any, name: Any) -> tuple[int, bool]:
    """Open a new file, where the file system can without a name: such a one is gone when the
    process ends.
    """
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        try:
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666), False
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            raise
        except OSError:
            # Not every file system has files without names; opening one by its name tells what else
            # may be wrong.
            pass
    return os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666), True


def _like(descriptor: int, before: os.stat_result) -> None:
    made = os.fstat(descriptor)
    if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
        # Only the superuser may give files away, and others their files to groups they are in.
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def _sync_folder(folder: Any) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems do not sync folders; the file itself is on the disk.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
