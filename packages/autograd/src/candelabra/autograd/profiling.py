"""Scheduled profiles of long runs: the contents of ``candelabra.profiler``."""

from __future__ import annotations

import gzip
import json
import os
import socket
import time
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import profiler
from .profiler import EventList, record_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip


class ProfilerActivity(Enum):
    """The kinds of work that a profile may cover.

    Calls are timed on the host; calls on every device count as CPU activity.
    """

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(Enum):
    """The action of the profiler during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """Return the supported activities.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.profiler.supported_activities()
    {<ProfilerActivity.CPU: 0>}
    """
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return a schedule of cycles: steps without profiling, warm-up steps and recorded steps.

    The cycles start after `skip_first` steps.

    Parameters
    ----------
    wait, warmup, active
        Number of steps of each kind per cycle.
    repeat
        Number of cycles; 0 for no limit.
    skip_first
        Number of steps before the first cycle.
    skip_first_wait
        If not 0, the first cycle has no wait steps.

    Raises
    ------
    ValueError
        If a number is negative, or `active` is 0.

    Examples
    --------
    >>> import candelabra
    >>> plan = candelabra.profiler.schedule(wait=1, warmup=1, active=1)
    >>> [plan(step).name for step in range(4)]
    ['NONE', 'WARMUP', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise ValueError(
            f"Invalid profiler schedule arguments: wait={wait}, warmup={warmup}, active={active}, repeat={repeat}, skip_first={skip_first}"
        )

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise ValueError(f"Step must be non-negative, got {step}")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle = wait + warmup + active
        if repeat and step >= repeat * cycle:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """Return an `on_trace_ready` function that writes each trace to its own file.

    Parameters
    ----------
    dir_name
        The output directory; created if it is missing.
    worker_name
        Prefix of the file names; host name and process id by default.
    use_gzip
        Whether to compress the files.

    Examples
    --------
    >>> import candelabra, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with candelabra.profiler.profile(on_trace_ready=candelabra.profiler.tensorboard_trace_handler(folder)):
    ...     _ = candelabra.ones(2).sin()
    """

    def handle(taken: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        ending = ".pt.trace.json.gz" if use_gzip else ".pt.trace.json"
        taken.export_chrome_trace(Path(dir_name) / f"{worker}.{time.time_ns()}{ending}")

    return handle


class profile:
    """Profile a program that marks its steps.

    Parameters
    ----------
    activities
        Accepted for compatibility: see :class:`ProfilerActivity`.
    schedule
        Maps a step number to an action; see :func:`schedule`. By default, every step is recorded.
    on_trace_ready
        Called with the profile at the end of each cycle.
    record_shapes, profile_memory, with_stack
        As in :class:`candelabra.autograd.profiler.profile`.
    acc_events
        Whether to keep the events of earlier cycles.
    with_flops, with_modules, experimental_config, use_cuda
        Accepted for compatibility.
    execution_trace_observer, custom_trace_id_callback
        Accepted for compatibility.

    Examples
    --------
    >>> import candelabra
    >>> plan = candelabra.profiler.schedule(wait=1, warmup=0, active=2)
    >>> with candelabra.profiler.profile(schedule=plan) as profile:
    ...     for _ in range(3):
    ...         _ = candelabra.ones(2).sin()
    ...         profile.step()
    >>> sum(event.name == "sin" for event in profile.events())
    2
    """

    def __init__(
        self, *, activities: Iterable[ProfilerActivity] | None = None, schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None, record_shapes: bool = False, profile_memory: bool = False,
        with_stack: bool = False, with_flops: bool = False, with_modules: bool = False, experimental_config: Any = None,
        execution_trace_observer: Any = None, acc_events: bool = False, use_cuda: bool | None = None, custom_trace_id_callback: Any = None,
    ) -> None:  # fmt: skip
        self.activities = set(activities) if activities is not None else supported_activities()
        self.schedule = schedule or _always
        self.on_trace_ready = on_trace_ready
        self.acc_events = acc_events
        self.step_num = 0
        self.metadata: dict[str, str] = {}
        self._options = {"record_shapes": record_shapes, "profile_memory": profile_memory, "with_stack": with_stack}
        self._steps = schedule is not None
        self._taking: profiler.profile | None = None
        self._step_block: record_function | None = None
        self._events: EventList | None = None
        self._action = ProfilerAction.NONE

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the first step."""
        self._action = self.schedule(self.step_num)
        self._begin()

    def stop(self) -> None:
        """End the last step."""
        was_taking = self._taking is not None and self._action in (
            ProfilerAction.RECORD,
            ProfilerAction.RECORD_AND_SAVE,
        )
        self._end(keep=was_taking)
        if was_taking and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self) -> None:
        """End the current step and start the next one."""
        before = self._action
        if self._step_block is not None:
            self._step_block.__exit__(None, None, None)
            self._step_block = None
        self.step_num += 1
        self._action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._end(keep=True)
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        elif before is ProfilerAction.WARMUP and self._action in (
            ProfilerAction.RECORD,
            ProfilerAction.RECORD_AND_SAVE,
        ):
            # Discard events from warm-up steps.
            self._end(keep=False)
        self._begin()

    def _begin(self) -> None:
        if self._action is ProfilerAction.NONE:
            if self._taking is not None:
                self._end(keep=False)
            return
        if self._taking is None:
            self._taking = profiler.profile(**self._options)  # type: ignore[arg-type]
            self._taking.__enter__()
        if self._steps:
            self._step_block = record_function(f"ProfilerStep#{self.step_num}")
            self._step_block.__enter__()

    def _end(self, keep: bool) -> None:
        if self._step_block is not None:
            self._step_block.__exit__(None, None, None)
            self._step_block = None
        if self._taking is None:
            return
        taken, self._taking = self._taking, None
        taken.__exit__(None, None, None)
        if not keep:
            return
        events = taken.function_events
        if self.acc_events and self._events is not None:
            events = EventList([*self._events, *events], bool(self._options["profile_memory"]))
        self._events = events

    def events(self) -> EventList:
        """Return the events of the last cycle.

        Raises
        ------
        RuntimeError
            If no cycle has ended.
        """
        if self._events is None:
            raise RuntimeError("Profiler is not initialized: no cycle of steps is over yet")
        return self._events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Aggregate events by name."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def add_metadata(self, key: str, value: str) -> None:
        """Add a string to the metadata of written traces."""
        self.metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a JSON value to the metadata of written traces."""
        self.metadata[key] = json.loads(value)

    def export_chrome_trace(self, path: str | Path) -> None:
        """Write the events as a trace, compressed if the file name ends with ``.gz``."""
        path = Path(path)
        self.events().export_chrome_trace(path)
        if not self.metadata and path.suffix != ".gz":
            return
        trace = json.loads(path.read_text(encoding="utf-8"))
        text = json.dumps({**self.metadata, **trace})
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text, encoding="utf-8")

    def export_memory_timeline(self, path: str | Path, device: str | None = None) -> None:
        """Write the allocated memory over time; see
        :meth:`candelabra.autograd.profiler.EventList.export_memory_timeline`.
        """
        self.events().export_memory_timeline(path, device)

    def export_stacks(self, path: str | Path, metric: str = "self_cpu_time_total") -> None:
        """Write stacks with one number each, for a flame graph; requires ``with_stack=True``.

        Raises
        ------
        ValueError
            If events do not have `metric`.
        """
        if metric not in ("self_cpu_time_total", "cpu_time_total"):
            raise ValueError(f"metric has to be self_cpu_time_total or cpu_time_total, not {metric!r}")
        lines = [
            f"{';'.join(line.replace(' ', '_') for line in reversed(event.stack))};{event.name} {int(getattr(event, metric))}"
            for event in self.events()
            if event.stack
        ]
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
