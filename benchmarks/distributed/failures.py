"""Ranks of which one is killed or stopped in some phase of a job, and what the others are told."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: The rank that fails.
VICTIM = 1


def meet_one(xp: Any, dist: Any, phase: str, mark: str, moment: str) -> tuple[float, bool, str]:
    """Let rank 1 fail in a phase, and return on the others what they are told.

    Parameters
    ----------
    xp, dist
        Candelabra, and its package for several processes.
    phase : str
        A key of `PHASES`.
    mark : str
        A path, where the rank notes when it fails.
    moment : str
        Seconds from the start of the phase to the failure.

    Returns
    -------
    tuple
        The seconds from the failure to the message, whether that names the rank, and the message.
    """
    is_victim = int(os.environ["RANK"]) == VICTIM
    fail = Failure(Path(mark), signal.SIGSTOP if phase == "stopped" else signal.SIGKILL, float(moment))
    try:
        PHASES[phase](xp, dist, fail if is_victim else None, Path(f"{mark}-saved"))
    except Exception as error:
        told = time.time()
        if phase == "checkpoint":
            _check_last(xp, Path(f"{mark}-saved"))
        since, process = Path(mark).read_text().split()
        ended = "was stopped" if phase == "stopped" else "was killed by signal 9"
        text = str(error)
        is_named = f"rank {VICTIM} (process {process}) {ended}" in text
        # Before it has joined, and while it saves, it is in no collective.
        where = text.partition(ended)[2]
        is_named = is_named and (
            phase in ("start", "checkpoint") or "it was in " in where or "last collective" in where
        )
        if phase == "stopped" and dist.get_rank() == 0:
            os.kill(int(process), signal.SIGKILL)
        return told - float(since), is_named, text
    raise AssertionError("the job has ended")


class Failure:
    """The end of this process at some moment."""

    def __init__(self, mark: Path, number: int, seconds: float) -> None:
        self._mark, self._number = mark, number
        self.seconds = seconds
        self._start = time.monotonic()

    def begin(self) -> None:
        """Count the seconds from now."""
        self._start = time.monotonic()

    def now(self) -> None:
        """Fail."""
        part = self._mark.with_suffix(".part")
        part.write_text(f"{time.time()!r} {os.getpid()}")
        part.rename(self._mark)
        os.kill(os.getpid(), self._number)

    def if_due(self) -> None:
        """Fail if the moment has come."""
        if time.monotonic() - self._start > self.seconds:
            self.now()

    def at_any_point(self) -> None:
        """Fail when the moment has come, wherever the program is."""
        threading.Timer(self.seconds, self.now).start()


def _start(xp: Any, dist: Any, failure: Failure | None, _folder: Path) -> None:
    if failure is not None:
        time.sleep(failure.seconds)
        failure.now()
    dist.init_process_group("mpi")
    dist.all_reduce(xp.ones(1))


def _collectives(xp: Any, dist: Any, failure: Failure | None, _folder: Path) -> None:
    dist.init_process_group("mpi")
    x = xp.ones(1 << 18)
    dist.all_reduce(x)
    if failure is not None:
        failure.begin()
    while True:
        dist.all_reduce(x)
        if failure is not None:
            failure.if_due()


def _training(is_forward: bool) -> Callable[[Any, Any, Failure | None, Path], None]:
    def train(xp: Any, dist: Any, failure: Failure | None, _folder: Path) -> None:
        dist.init_process_group("mpi")

        class Fails(xp.autograd.Function):  # type: ignore[misc,name-defined]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                if failure is not None and is_forward:
                    failure.if_due()
                return x.clone()

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                if failure is not None and not is_forward:
                    failure.if_due()
                return grad

        layers = [xp.nn.Linear(256, 256) for _ in range(6)]
        middle = xp.nn.Module()
        middle.forward = Fails.apply
        model = xp.nn.parallel.DistributedDataParallel(
            xp.nn.Sequential(*layers[:3], middle, *layers[3:]), bucket_cap_mb=0.3
        )
        x = xp.randn(16, 256)
        model(x).sum().backward()
        if failure is not None:
            failure.begin()
        while True:
            model(x).sum().backward()

    return train


def _checkpoint(xp: Any, dist: Any, failure: Failure | None, folder: Path) -> None:
    """Save again and again."""
    import candelabra.distributed.checkpoint as dcp

    dist.init_process_group("mpi")
    state = {f"{name}": xp.ones(1 << 16) for name in range(4)} | {"step": 0}
    dcp.save(state, checkpoint_id=folder)
    if failure is not None:
        failure.at_any_point()
    while True:
        for value in state.values():
            if not isinstance(value, int):
                value.add_(1)
        state["step"] += 1
        dcp.save(state, checkpoint_id=folder)


def _check_last(xp: Any, folder: Path) -> None:
    """Raise an error unless the last checkpoint is whole."""
    import candelabra.distributed.checkpoint as dcp

    found = {f"{name}": xp.zeros(1 << 16) for name in range(4)} | {"step": -1}
    dcp.load(found, checkpoint_id=folder)
    if not all(bool((found[f"{name}"] == found["step"] + 1).all()) for name in range(4)):
        raise AssertionError("a torn checkpoint")


#: What the ranks do, by the name of the phase.
PHASES: dict[str, Callable[[Any, Any, Failure | None, Path], None]] = {
    "collectives": _collectives,
    "start": _start,
    "forward": _training(True),
    "backward": _training(False),
    "checkpoint": _checkpoint,
    "stopped": _collectives,
}
