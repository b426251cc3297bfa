"""Starting several processes on one function, and raising here what is raised there."""

from __future__ import annotations

import pickle
import signal
import sys
import time
import traceback
import warnings
from multiprocessing import connection
from typing import Any

from .contexts import get_context
from .named_files import sweep


class ProcessException(Exception):
    """A process of :func:`spawn` failed."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        #: Which of the processes, from 0.
        self.error_index = error_index
        #: Its number.
        self.pid = self.error_pid = error_pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A process of :func:`spawn` raised; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """A process of :func:`spawn` ended with another code than 0, or was killed."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def _run(fn: Any, index: int, args: Any, failures: Any) -> None:
    _end_with_parent()
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # The parent has it as well.
    except Exception:
        failures.send_bytes(pickle.dumps(traceback.format_exc()))
        sys.exit(1)


def _end_with_parent() -> None:
    """Have the system end this process when its parent dies, however that comes."""
    import ctypes

    set_parent_death_signal = 1
    # A process that a shell runs in the background ignores interrupts, and so do its children.
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM if ignored else signal.SIGINT)


class ProcessContext:
    """The processes that :func:`start_processes` started."""

    def __init__(self, processes: list[Any], failures: list[Any]) -> None:
        self.processes = processes
        #: For each process the end of a pipe by which its traceback comes.
        self.failures = failures
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Return the numbers of the processes."""
        return [int(process.pid) for process in self.processes]

    def end(self, grace_period: float | None = None) -> None:
        """Ask all processes to end, and kill those that have not after so many seconds; 30 by
        default.
        """
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        deadline = time.monotonic() + (30.0 if grace_period is None else grace_period)
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                warnings.warn(f"process {process.pid} did not end when it was asked to, and is killed", stacklevel=3)
                process.kill()
                process.join()

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process has ended, and raise where it failed; the others are ended then.

        Parameters
        ----------
        timeout : float, optional
            So many seconds at most.
        grace_period : float, optional
            The seconds that the others have to end, before they are killed; 30 by default.

        Returns
        -------
        bool
            Whether all have ended.

        Raises
        ------
        ProcessRaisedException
            Where the function raised; with its traceback.
        ProcessExitedException
            Where a process ended with another code than 0.
        """
        if not self.sentinels:
            return True
        ready = connection.wait(list(self.sentinels), timeout)
        failed = None
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)  # type: ignore[call-overload]
            self.processes[index].join()
            if self.processes[index].exitcode != 0 and failed is None:
                failed = index
        if failed is None:
            if not self.sentinels:
                self._close()
            return not self.sentinels
        process = self.processes[failed]
        self.end(grace_period)
        try:
            raise self._exception(failed, process)
        finally:
            self._close()

    def _close(self) -> None:
        for end in self.failures:
            end.close()
        self.sentinels.clear()
        sweep()

    def _exception(self, index: int, process: Any) -> ProcessException:
        try:
            text = pickle.loads(self.failures[index].recv_bytes()) if self.failures[index].poll() else None
        except EOFError:
            text = None
        if text is not None:
            message = f"\n\n-- Process {index} terminated with the following error:\n{text}"
            return ProcessRaisedException(message, index, process.pid)
        code = process.exitcode
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            return ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, code, name
            )
        return ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)


SpawnContext = ProcessContext


def start_processes(
    fn: Any,
    args: Any = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Start processes that call ``fn(index, *args)``.

    Parameters
    ----------
    fn : callable
        Importable by name where the start method is not ``"fork"``.
    args : tuple
        Its arguments, after the number of the process.
    nprocs : int
        How many processes.
    join : bool
        Whether to wait until all have ended.
    daemon : bool
        Whether the processes end with this one, and start none themselves.
    start_method : str
        ``"fork"``, ``"spawn"`` or ``"forkserver"``.

    Returns
    -------
    ProcessContext or None
        The processes, unless they were waited for.

    Raises
    ------
    ProcessRaisedException, ProcessExitedException
        Where a process failed, and `join` is true.

    Examples
    --------
    >>> import candelabra.multiprocessing as mp
    >>> mp.start_processes(print, nprocs=0, start_method="fork") is None
    True
    """
    mp = get_context(start_method)
    processes: list[Any] = []
    failures: list[Any] = []
    try:
        for index in range(nprocs):
            receiver, sender = mp.Pipe(duplex=False)
            failures.append(receiver)
            process = mp.Process(target=_run, args=(fn, index, args, sender), daemon=daemon)
            process.start()
            sender.close()
            processes.append(process)
    except BaseException:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()
        raise
    context = ProcessContext(processes, failures)
    if not join:
        return context
    try:
        while not context.join():
            pass
    except KeyboardInterrupt:
        # Python would wait for the processes before it ends.
        context.end()
        raise
    return None


def spawn(
    fn: Any,
    args: Any = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Start fresh processes that call ``fn(index, *args)``; :func:`start_processes` has the
    parameters.

    Where one raises, its traceback is raised here, and the others are ended.

    Examples
    --------
    ::

        def train(index, model):
            ...

        if __name__ == "__main__":
            candelabra.multiprocessing.spawn(train, args=(model.share_memory(),), nprocs=4)
    """
    if start_method != "spawn":
        warnings.warn(
            f"spawn() was asked for start_method={start_method!r}; start_processes(start_method={start_method!r}) is the function for that",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method)
