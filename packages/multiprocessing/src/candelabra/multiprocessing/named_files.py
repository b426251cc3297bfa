"""Files below ``/dev/shm`` that live as long as a process has use for them, without a process that
counts.

Each process has a directory of its own, and in it a hard link for each file that it maps. So the
file system counts the owners: memory goes with the last link. A message takes a further link along,
which whoever receives it renames into his own directory. A process that ends removes its directory;
the directory of one that was killed is removed by the next one that looks.
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

#: A file system in memory; processes that send to each other need the same.
ROOT = os.environ.get("CANDELABRA_SHARED_MEMORY", "/dev/shm")
#: After so many files made or received, a process looks for directories of dead ones again.
SWEEP_EVERY = 256


class SenderGoneError(RuntimeError):
    """What was sent cannot be had any more, since the process that sent it has ended or let go of
    it.
    """


def _start_time(pid: int) -> str | None:
    """When a process started, in ticks since the machine did; None where there is no such
    process.
    """
    try:
        with open(f"/proc/{pid}/stat") as file:
            # The name of the program, in parentheses, may hold blanks.
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # A process that was not waited for yet is as good as gone.
    return None if fields[0] in "ZX" else fields[19]


def _namespace() -> int:
    """Numbers of processes mean something within this namespace only; containers may share
    ``/dev/shm`` but not it.
    """
    return os.stat("/proc/self/ns/pid").st_ino


def _base() -> str:
    """The directory for all processes of this user."""
    path = os.path.join(ROOT, f"candelabra-{os.getuid()}")
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        status = os.lstat(path)
        # Anybody may make a directory there: one of somebody else would be read by him.
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
        # How files end; see NamedFile.
        self.ending = types.SimpleNamespace(unlink=os.unlink)
        sweep()
        _at_exit(self)

    def fresh(self) -> str:
        """A path that is not taken."""
        number = next(self.count)
        if number % SWEEP_EVERY == 0:
            sweep()
            forget_lost_names()
        return os.path.join(self.path, str(number))

    def leave_files(self) -> None:
        """Have files not be removed when their objects end: they are gone already, or another
        process's.
        """
        self.ending.unlink = str  # something that takes a path and does nothing


_directory: _Directory | None = None
# Held while the directory is made: two objects for one directory would hand out the same paths.
_making = threading.RLock()
os.register_at_fork(after_in_child=_making._at_fork_reinit)  # type: ignore[attr-defined]


def _own() -> _Directory:
    global _directory
    # In a process that was forked it is still the parent's.
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
    # multiprocessing forgets the finalizers of the parent, and with them those that were set right
    # after the fork.
    if _directory is not None and _directory.pid == os.getpid():
        _at_exit(_directory)


util.register_after_fork(_Directory, _after_fork)


def sweep() -> list[str]:
    """Remove the directories of processes that are no more, and return their paths."""
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
    with contextlib.suppress(OSError):  # Somebody is using it.
        os.rmdir(base)
    return removed


class NamedFile:
    """A file of shared memory that this process has a name for; the name goes with this object."""

    descriptor: int | None = None

    def __init__(self, path: str) -> None:
        self.path: str | None = path
        self.pid = os.getpid()
        # As in memory.AnonymousFile, without a frame of Python's, in which an interrupt would be
        # lost.
        self._end = functools.partial(operator.methodcaller("unlink", path), _own().ending)

    __del__ = property(operator.attrgetter("_end"))

    @classmethod
    def make(cls) -> tuple[NamedFile, int]:
        """Make an empty file; with it comes a descriptor, which the caller closes."""
        path = _own_path()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        return cls(path), descriptor

    def send(self) -> str:
        """Make a name for a message to take along; see :func:`watch` for what becomes of it where
        nobody reads the message.
        """
        if self.path is None or self.pid != os.getpid():
            raise RuntimeError("this memory has no name in this process; send a clone() of the tensor")
        sent = os.path.join(_own().path, f"sent-{secrets.token_hex(8)}")
        os.link(self.path, sent)
        return sent

    @classmethod
    def receive(cls, sent: str) -> tuple[NamedFile, int]:
        """Take over the name in a message; with it comes a descriptor, which the caller closes."""
        path = _own_path()
        try:
            os.rename(sent, path)
        except FileNotFoundError:
            raise SenderGoneError(
                "the shared memory of a tensor in this message is not there any more: the process that sent it has ended, or the "
                "message was read before. With the sharing strategy 'file_system' a sender has to live until its messages are read"
            ) from None
        return cls(path), os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)


# ---- names on their way

_in_flight: dict[int, list[str]] = {}
_in_flight_of = os.getpid()


def watch(names: list[str]) -> int:
    """Return a descriptor for the message with these names to take along.

    It is one end of a pipe. When the last process has closed it, since the message was read, or was
    lost with those who could have read it, this process finds that out at the other end, and
    removes the names that nobody has taken.
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
    """Remove the names in messages that nobody can read any more."""
    waiting = select.poll()
    for descriptor in _in_flight:
        waiting.register(descriptor, 0)
    for descriptor, _ in waiting.poll(0):
        for name in _in_flight.pop(descriptor):
            with contextlib.suppress(FileNotFoundError):  # It was received.
                if os.path.isdir(name):
                    shutil.rmtree(name)
                else:
                    os.unlink(name)
        os.close(descriptor)


# ---- forks: the names for the child are made before, while the parent cannot let go of the files

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
    with contextlib.suppress(OSError):  # There is no descriptor left.
        # A child that is killed before it has taken the directory would leave it here.
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
        # Swept away at the end of the process, or by hand.
        os.makedirs(directory.path, 0o700, exist_ok=True)
    return directory.fresh()
