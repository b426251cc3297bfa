"""The processes of one machine: starting, output and end."""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from .arguments import Settings

_TAIL_LINES = 30
_SET_PARENT_DEATH_SIGNAL = 1
_libc = ctypes.CDLL(None, use_errno=True)


def _die_with_launcher() -> None:
    """Make the kernel kill a process whose launcher was killed; called between fork and exec."""
    _libc.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


@dataclass
class Worker:
    """One process."""

    rank: int
    local_rank: int
    process: subprocess.Popen[bytes]
    descriptor: int
    tail: deque[bytes] = field(default_factory=lambda: deque(maxlen=_TAIL_LINES))
    log: Path | None = None
    status: int | None = None
    ended_at: float = 0.0
    stopped_since: float | None = None
    #: The launcher has told it to end.
    was_told_to_end: bool = False

    def ending(self) -> str:
        """Return how it has ended, in words."""
        assert self.status is not None
        if self.status < 0:
            return f"was killed by signal {-self.status}"
        return f"ended with exit code {self.status}"

    def last_lines(self) -> list[str]:
        """Return the end of what it wrote to stderr."""
        if self.log is not None and not self.tail:
            with suppress(OSError), self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - 16384))
                self.tail.extend(file.read().splitlines())
        return [line.decode(errors="replace").rstrip() for line in self.tail]


@dataclass
class _Stream:
    """A pipe from a process, which is passed on line by line."""

    worker: Worker
    pipe: IO[bytes]
    console: IO[bytes] | None
    file: IO[bytes] | None
    prefix: bytes
    is_error: bool
    rest: bytes = b""


class Workers:
    """The processes of one machine, of one attempt.

    Parameters
    ----------
    settings : Settings
        The launcher's.
    environments : list of dict
        The environment of each process.
    ranks : list of int
        The rank of each.
    attempt : int
        The number of the attempt, for the names of log files.
    descriptor : int
        Of the memory in which the processes write what they do.
    """

    def __init__(
        self,
        settings: Settings,
        environments: list[dict[str, str]],
        ranks: list[int],
        attempt: int,
        descriptor: int,
    ) -> None:
        self._settings = settings
        self._descriptor = descriptor
        self._selector = selectors.DefaultSelector()
        self._files: list[IO[bytes]] = []
        self.all: list[Worker] = []
        try:
            for local_rank, (environment, rank) in enumerate(zip(environments, ranks, strict=True)):
                self._start(local_rank, rank, environment, attempt)
        except BaseException:
            self.end(signal.SIGKILL, 0)
            self.close()
            raise

    # ---- starting

    def _start(self, local_rank: int, rank: int, environment: dict[str, str], attempt: int) -> None:
        settings = self._settings
        folder = self._log_folder(local_rank, attempt)
        targets: list[tuple[Any, IO[bytes] | None, bool]] = []  # for Popen, the log file, shown on the console
        for number, name in ((1, "stdout"), (2, "stderr")):
            is_teed = bool(settings.tees.get(local_rank, 0) & number)
            is_redirected = bool(settings.redirects.get(local_rank, 0) & number) and not is_teed
            is_shown = settings.shown_ranks is None or local_rank in settings.shown_ranks
            file: IO[bytes] | None = None
            if is_teed or is_redirected:
                file = (folder / f"{name}.log").open("wb", buffering=0)
                self._files.append(file)
            if is_redirected:
                targets.append((file, None, False))
            elif is_teed or number == 2:
                targets.append((subprocess.PIPE, file, is_shown))
            else:
                targets.append((None if is_shown else subprocess.DEVNULL, None, is_shown))
        process = subprocess.Popen(
            settings.command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=targets[0][0],
            stderr=targets[1][0],
            start_new_session=True,
            pass_fds=(self._descriptor,),
            preexec_fn=_die_with_launcher,
        )
        worker = Worker(rank, local_rank, process, os.pidfd_open(process.pid))
        if targets[1][0] is not subprocess.PIPE:
            worker.log = folder / "stderr.log"
        self.all.append(worker)
        self._selector.register(worker.descriptor, selectors.EVENT_READ, worker)
        consoles = (sys.stdout, sys.stderr)
        for number, (pipe, console, target) in enumerate(
            zip((process.stdout, process.stderr), consoles, targets, strict=True)
        ):
            if pipe is not None:
                _, file, is_shown = target
                prefix = f"[{settings.role}{rank}]:".encode() if file is not None else b""
                os.set_blocking(pipe.fileno(), False)
                shown = console.buffer if is_shown else None
                stream = _Stream(worker, pipe, shown, file, prefix, number == 1)
                self._selector.register(pipe, selectors.EVENT_READ, stream)

    def _log_folder(self, local_rank: int, attempt: int) -> Path:
        settings = self._settings
        if not settings.redirects.get(local_rank, 0) | settings.tees.get(local_rank, 0):
            return Path()
        if settings.log_folder is None:
            import tempfile

            settings.log_folder = tempfile.mkdtemp(prefix="candelabra_job_")
        folder = Path(settings.log_folder) / settings.run_id / f"attempt_{attempt}" / str(local_rank)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    # ---- watching

    def wait(self, timeout: float, on_end: Callable[[Worker], None]) -> bool:
        """Pass output on, and call `on_end` for each process that has ended, at most `timeout`
        seconds.

        Returns
        -------
        bool
            Whether any process has ended.
        """
        has_ended = False
        for key, _ in self._selector.select(timeout):
            if isinstance(key.data, Worker):
                worker = key.data
                worker.status = worker.process.wait()
                worker.ended_at = time.time()
                self._selector.unregister(worker.descriptor)
                os.close(worker.descriptor)
                self._drain(worker)
                has_ended = True
                on_end(worker)
            else:
                self._pass_on(key.data)
        return has_ended

    def _drain(self, worker: Worker) -> None:
        """Read what a process wrote before its end."""
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, _Stream) and key.data.worker is worker:
                while self._pass_on(key.data):
                    pass

    def _pass_on(self, stream: _Stream) -> bool:
        try:
            data = stream.pipe.read(1 << 16)
        except ValueError:
            return False
        if data is None:
            return False
        if not data:
            self._selector.unregister(stream.pipe)
            stream.pipe.close()
            data, stream.rest = stream.rest, b""
            if data:
                self._write(stream, data + b"\n")
            return False
        *lines, stream.rest = (stream.rest + data).split(b"\n")
        for line in lines:
            self._write(stream, line + b"\n")
        return True

    @staticmethod
    def _write(stream: _Stream, line: bytes) -> None:
        if stream.is_error:
            stream.worker.tail.append(line)
        if stream.file is not None:
            stream.file.write(line)
        if stream.console is not None:
            with suppress(OSError, ValueError):
                stream.console.write(stream.prefix + line)
                stream.console.flush()

    def running(self) -> list[Worker]:
        """Return the processes that have not ended."""
        return [worker for worker in self.all if worker.status is None]

    # ---- the end

    def send(self, number: int) -> None:
        """Send a signal to the running processes."""
        for worker in self.running():
            worker.was_told_to_end = True
            with suppress(ProcessLookupError):
                worker.process.send_signal(number)

    def end(self, number: int, timeout: float) -> None:
        """End the running processes by a signal, and after `timeout` seconds by SIGKILL."""
        self.send(number)
        self._wait_for_all(timeout)
        self.send(signal.SIGKILL)
        self._wait_for_all(10)

    def wait_for_all(self, timeout: float, on_end: Callable[[Worker], None]) -> None:
        """Wait until all processes have ended, at most `timeout` seconds."""
        end = time.monotonic() + timeout
        while self.running() and time.monotonic() < end:
            self.wait(max(0.0, end - time.monotonic()), on_end)

    def _wait_for_all(self, timeout: float) -> None:
        self.wait_for_all(timeout, lambda worker: None)

    def close(self) -> None:
        """Kill what the processes have left in their sessions, and close the files."""
        for worker in self.all:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(worker.process.pid, signal.SIGKILL)
            self._drain(worker)
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, _Stream):
                key.data.pipe.close()
        self._selector.close()
        for file in self._files:
            file.close()
