"""Start several processes that run one function, and propagate their exceptions."""

from __future__ import annotations

import pickle
import signal
import sys
import time
import traceback
from multiprocessing import connection
from typing import Any

from candelabra import _C

from .contexts import get_context
from .named_files import sweep


class ProcessException(Exception):
    """A process of :func:`spawn` failed."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        #: Index of the process, from 0.
        self.error_index = error_index
        #: Process id.
        self.pid = self.error_pid = error_pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A process of :func:`spawn` raised an exception; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """A process of :func:`spawn` exited with a nonzero code, or was killed."""

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
        pass  # the parent receives it as well
    except Exception:
        failures.send_bytes(pickle.dumps(traceback.format_exc()))
        sys.exit(1)


def _end_with_parent() -> None:
    """Make the kernel signal this process when its parent dies for any reason."""
    import ctypes

    set_parent_death_signal = 1
    # Background processes of a shell ignore SIGINT, and so do their children.
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM if ignored else signal.SIGINT)


class ProcessContext:
    """The processes that :func:`start_processes` started."""

    def __init__(self, processes: list[Any], failures: list[Any]) -> None:
        self.processes = processes
        #: For each process, the pipe end that receives its traceback.
        self.failures = failures
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Return the process ids."""
        return [int(process.pid) for process in self.processes]

    def end(self, grace_period: float | None = None) -> None:
        """Terminate all processes; kill those alive after `grace_period` seconds (default 30)."""
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        deadline = time.monotonic() + (30.0 if grace_period is None else grace_period)
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                _C.warn(f"process {process.pid} did not end when it was asked to, and is killed")
                process.kill()
                process.join()

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for a process to end; if it failed, end the others and raise.

        Parameters
        ----------
        timeout : float, optional
            Maximum time to wait in seconds.
        grace_period : float, optional
            Seconds that the other processes have to end before they are killed; 30 by default.

        Returns
        -------
        bool
            Whether all processes have ended.

        Raises
        ------
        ProcessRaisedException
            If the function raised; the message has its traceback.
        ProcessExitedException
            If a process exited with a nonzero code.
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
        The function. It must be importable by name unless the start method is ``"fork"``.
    args : tuple
        Arguments after the index of the process.
    nprocs : int
        Number of processes.
    join : bool
        Whether to wait until all processes have ended.
    daemon : bool
        Whether the processes are daemonic: they end with this process and cannot have children.
    start_method : str
        ``"fork"``, ``"spawn"`` or ``"forkserver"``.

    Returns
    -------
    ProcessContext or None
        The processes, or None if `join` is true.

    Raises
    ------
    ProcessRaisedException, ProcessExitedException
        If `join` is true and a process failed.

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
        # Python would wait for the processes at exit.
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
    """Start new processes that call ``fn(index, *args)``; see :func:`start_processes`.

    If a process raises, its traceback is raised here, and the others are ended.

    Examples
    --------
    ::

        def train(index, model):
            ...

        if __name__ == "__main__":
            candelabra.multiprocessing.spawn(train, args=(model.share_memory(),), nprocs=4)
    """
    if start_method != "spawn":
        _C.warn(
            f"spawn() was asked for start_method={start_method!r}; start_processes(start_method={start_method!r}) is the function for that",
            FutureWarning,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method)
