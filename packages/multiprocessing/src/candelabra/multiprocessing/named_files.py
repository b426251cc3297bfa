"""Files in ``/dev/shm`` that live as long as a process uses them, without a reference counter.

Each process has its own directory with a hard link to each file that it maps. The link count of the
file system then counts the owners, and the memory is freed with the last link. A message carries an
additional link, which the receiver renames into its directory. A process removes its directory at
exit. The directory of a killed process is removed by the next sweep of another process.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
import os
import secrets
import select
import shutil
import stat
import threading
import types
from multiprocessing import util

from candelabra import _C

from .shared_files import SharedFile

#: In-memory file system; communicating processes must use the same one.
ROOT = os.environ.get("CANDELABRA_SHARED_MEMORY", "/dev/shm")
#: Number of files made or received between sweeps for directories of dead processes.
SWEEP_EVERY = 256


class SenderGoneError(RuntimeError):
    """Sent memory is no longer available, because the sender has exited or released it."""


def _start_time(pid: int) -> str | None:
    """Return the start time of a process in ticks since boot, or None if it does not exist."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            # The program name in parentheses may contain spaces.
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # Treat zombies as dead.
    return None if fields[0] in "ZX" else fields[19]


def _namespace() -> int:
    """Return the PID namespace; containers may share ``/dev/shm`` but have different namespaces."""
    return os.stat("/proc/self/ns/pid").st_ino


def _base() -> str:
    """Return the directory that holds the process directories of this user."""
    path = os.path.join(ROOT, f"candelabra-{os.getuid()}")
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        status = os.lstat(path)
        # Anyone can create a directory here. Reject one that another user owns or could read.
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
            raise RuntimeError(
                f"{path} is not a directory that this user alone can read; remove it, or use set_sharing_strategy('file_descriptor')"
            ) from None
    except OSError as error:
        raise RuntimeError(
            f"cannot make {path} for shared memory: {error.strerror}; use set_sharing_strategy('file_descriptor')"
        ) from error
    return path


def _path_of_this_process() -> str:
    pid = os.getpid()
    return os.path.join(_base(), f"{_namespace()}-{pid}-{_start_time(pid)}")


class _Directory:
    """The directory of this process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.path = _path_of_this_process()
        os.makedirs(self.path, 0o700, exist_ok=True)
        self.count = itertools.count(1)
        # How names are removed; see NamedFile.
        self.ending = types.SimpleNamespace(unlink=os.unlink)
        sweep()
        _at_exit(self)

    def fresh(self) -> str:
        """Return an unused path."""
        number = next(self.count)
        if number % SWEEP_EVERY == 0:
            sweep()
            forget_lost_names()
        return os.path.join(self.path, str(number))

    def leave_files(self) -> None:
        """Do not remove files when their objects are freed.

        The files are already removed, or belong to another process.
        """
        self.ending.unlink = str  # a callable that takes a path and does nothing


_directory: _Directory | None = None
# Held while the directory is created. Two instances would return the same paths.
_making = threading.RLock()
os.register_at_fork(after_in_child=_making._at_fork_reinit)  # type: ignore[attr-defined]


def _own() -> _Directory:
    global _directory
    # After a fork, it is still the parent's.
    if _directory is None or _directory.pid != os.getpid():
        with _making:
            if _directory is None or _directory.pid != os.getpid():
                _directory = _Directory()
    return _directory


def _remove(directory: _Directory) -> None:
    if directory.pid == os.getpid():
        directory.leave_files()
        shutil.rmtree(directory.path, ignore_errors=True)
        sweep()


def _at_exit(directory: _Directory) -> None:
    util.Finalize(None, _remove, (directory,), exitpriority=-1000)


def _in_child() -> None:
    if _directory is not None:
        _directory.leave_files()


os.register_at_fork(after_in_child=_in_child)


def _after_fork(_: object) -> None:
    # multiprocessing clears finalizers in a forked child, including the one registered by the fork
    # handler. Register it again.
    if _directory is not None and _directory.pid == os.getpid():
        _at_exit(_directory)


util.register_after_fork(_Directory, _after_fork)


def sweep() -> list[str]:
    """Remove the directories of dead processes, and return their paths."""
    removed: list[str] = []
    base = os.path.join(ROOT, f"candelabra-{os.getuid()}")
    here = str(_namespace())
    try:
        names = os.listdir(base)
    except FileNotFoundError:
        return removed
    for name in names:
        namespace, _, process = name.partition("-")
        pid, _, start = process.partition("-")
        if namespace == here and pid.isdecimal() and _start_time(int(pid)) != start:
            shutil.rmtree(os.path.join(base, name), ignore_errors=True)
            removed.append(name)
    with contextlib.suppress(OSError):  # the directory is not empty
        os.rmdir(base)
    return removed


class NamedFile(SharedFile):
    """A shared-memory file with a name in this process; the name is removed with this object."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.pid = os.getpid()
        self._release = functools.partial(operator.methodcaller("unlink", path), _own().ending)

    @classmethod
    def make(cls) -> tuple[NamedFile, int]:
        """Create an empty file; return it and a descriptor, which the caller closes."""
        path = _own_path()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        return cls(path), descriptor

    def send(self) -> str:
        """Create a name to send with a message.

        If nobody reads the message, :func:`watch` removes the name.
        """
        if self.path is None or self.pid != os.getpid():
            raise RuntimeError("this memory has no name in this process; send a clone() of the tensor")
        sent = os.path.join(_own().path, f"sent-{secrets.token_hex(8)}")
        os.link(self.path, sent)
        return sent

    @classmethod
    def receive(cls, sent: str) -> tuple[NamedFile, int]:
        """Take over the name in a message; return the file and a descriptor for the caller."""
        path = _own_path()
        try:
            os.rename(sent, path)
        except FileNotFoundError:
            raise SenderGoneError(
                "the shared memory of a tensor in this message is not there any more: the process that sent it has ended, or the "
                "message was read before. With the sharing strategy 'file_system' a sender has to live until its messages are read"
            ) from None
        return cls(path), os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)


# ---- names in transit

_in_flight: dict[int, list[str]] = {}
_in_flight_of = os.getpid()


def watch(names: list[str]) -> int:
    """Return a descriptor to send with the message that contains these names.

    The descriptor is one end of a pipe. It is closed everywhere after the message was read or
    dropped. This process detects that at the other end, and removes the names that nobody has
    taken.
    """
    global _in_flight_of
    if _in_flight_of != os.getpid():
        for descriptor in _in_flight:
            os.close(descriptor)
        _in_flight.clear()
        _in_flight_of = os.getpid()
    forget_lost_names()
    here, there = os.pipe()
    _in_flight[here] = names
    return there


def forget_lost_names() -> None:
    """Remove names in messages that can no longer be read."""
    waiting = select.poll()
    for descriptor in _in_flight:
        waiting.register(descriptor, 0)
    for descriptor, _ in waiting.poll(0):
        for name in _in_flight.pop(descriptor):
            with contextlib.suppress(FileNotFoundError):  # the name was received
                if os.path.isdir(name):
                    shutil.rmtree(name)
                else:
                    os.unlink(name)
        os.close(descriptor)


# ---- forks: names for the child are created before the fork, while the parent still holds the
# files

_for_child: tuple[str, list[NamedFile], int | None] | None = None


def _before_fork() -> None:
    global _for_child
    files = [file for file in _C.mapped_owners() if isinstance(file, NamedFile) and file.path is not None]
    if not files:
        return
    directory = os.path.join(_own().path, f"fork-{secrets.token_hex(8)}")
    os.mkdir(directory, 0o700)
    for number, file in enumerate(files):
        os.link(str(file.path), os.path.join(directory, f"inherited-{number}"))
    token = None
    with contextlib.suppress(OSError):  # no descriptor left
        # Ensures removal of the directory if the child is killed before it takes it over.
        token = watch([directory])
    _for_child = (directory, files, token)


def _after_fork_in_parent() -> None:
    global _for_child
    if _for_child is not None and _for_child[2] is not None:
        os.close(_for_child[2])
    _for_child = None


def _after_fork_in_child() -> None:
    global _for_child, _directory
    if _for_child is None:
        return
    (made, files, token), _for_child = _for_child, None
    try:
        os.rename(made, _path_of_this_process())
    finally:
        if token is not None:
            os.close(token)
    _directory = _Directory()
    for number, file in enumerate(files):
        file.path, file.pid = os.path.join(_directory.path, f"inherited-{number}"), _directory.pid


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


def _own_path() -> str:
    directory = _own()
    try:
        os.stat(directory.path)
    except FileNotFoundError:
        # The directory was removed by a sweep or by a user.
        os.makedirs(directory.path, 0o700, exist_ok=True)
    return directory.fresh()
