"""Profiler: count operator calls, and measure their time and memory.

While a profile is active, every operator call on the thread is timed. Without one, there is no
overhead.
"""

from __future__ import annotations

import functools
import json
import threading
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NoReturn

import candelabra
from candelabra import Tensor

from . import functorch_layers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "emit_itt", "emit_nvtx", "profile", "record_function"]


class FunctionEvent:
    """One event: an operator call or a :class:`record_function` block.

    Times are in microseconds, memory in bytes.
    """

    __slots__ = (
        "allocated", "allocated_before", "cpu_children", "cpu_memory_usage", "cpu_parent", "device", "end", "id", "input_shapes",
        "is_user_annotation", "name", "stack", "start", "thread",
    )  # fmt: skip

    def __init__(self, number: int, name: str, parent: FunctionEvent | None, annotation: bool) -> None:
        self.id = number
        self.name = name
        self.thread = threading.get_ident()
        self.start = self.end = 0
        self.input_shapes: list[list[int]] = []
        self.stack: list[str] = []
        self.cpu_memory_usage = 0
        #: The device of the call where its memory was measured, and the bytes allocated around it.
        self.device: str | None = None
        self.allocated_before = self.allocated = 0
        self.cpu_parent = parent
        self.cpu_children: list[FunctionEvent] = []
        self.is_user_annotation = annotation
        if parent is not None:
            parent.cpu_children.append(self)

    count = 1

    @property
    def key(self) -> str:
        """The key that events are grouped by: the name."""
        return self.name

    @property
    def cpu_time_total(self) -> float:
        """The duration of the event."""
        return (self.end - self.start) / 1000

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """The duration without child events."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """The memory of the results without that of child events."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_total:.3f}us thread={self.thread}>"
        )


class FunctionEventAvg:
    """The aggregate of all events with one key."""

    __slots__ = (
        "count",
        "cpu_memory_usage",
        "cpu_time_total",
        "input_shapes",
        "is_user_annotation",
        "key",
        "self_cpu_memory_usage",
        "self_cpu_time_total",
        "stack",
    )

    def __init__(self, key: str) -> None:
        self.key = key
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.input_shapes: list[list[int]] = []
        self.stack: list[str] = []
        self.is_user_annotation = False

    def add(self, event: FunctionEvent) -> None:
        """Add one event to the aggregate."""
        self.count += 1
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        self.cpu_memory_usage += event.cpu_memory_usage
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.is_user_annotation = event.is_user_annotation

    @property
    def cpu_time(self) -> float:
        """The average duration of one event."""
        return self.cpu_time_total / self.count if self.count else 0.0

    def __repr__(self) -> str:
        return f"<FunctionEventAvg key={self.key} self_cpu_time={_duration(self.self_cpu_time_total)} cpu_time={_duration(self.cpu_time)}>"


def _duration(microseconds: float) -> str:
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f}s"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:.3f}ms"
    return f"{microseconds:.3f}us"


def _memory(count: int) -> str:
    for unit, size in (("Gb", 1 << 30), ("Mb", 1 << 20), ("Kb", 1 << 10)):
        if abs(count) >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} b"


#: Columns that a table can be sorted by.
_SORTABLE = (
    "cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "count",
)  # fmt: skip


class EventList(list[Any]):
    """A list of events or of their averages, printable as a table.

    Examples
    --------
    >>> import candelabra
    >>> with candelabra.autograd.profiler.profile() as profile:
    ...     _ = candelabra.ones(2) + 1
    >>> [(average.key, average.count) for average in profile.key_averages() if average.key == "add"]
    [('add', 1)]
    """

    def __init__(self, events: Iterable[Any] = (), profile_memory: bool = False) -> None:
        super().__init__(events)
        self._profile_memory = profile_memory

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """The total time of all events, without double counting."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Aggregate events by name, and optionally by input shapes and stack lines."""
        averages: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = tuple(map(tuple, event.input_shapes)) if group_by_input_shapes else ()
            stack = tuple(event.stack[:group_by_stack_n])
            key = (event.key, shapes, stack, event.is_user_annotation)
            if key not in averages:
                average = averages[key] = FunctionEventAvg(event.key)
                average.input_shapes, average.stack = list(map(list, shapes)), list(stack)
            averages[key].add(event)
        return EventList(averages.values(), self._profile_memory)

    def total_average(self) -> FunctionEventAvg:
        """Aggregate all events into one."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        return total

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75, max_name_column_width: int = 55,
        header: str | None = None, top_level_events_only: bool = False,
    ) -> str:  # fmt: skip
        """Format the events as a table.

        Parameters
        ----------
        sort_by
            One of ``cpu_time``, ``cpu_time_total``, ``self_cpu_time_total``, ``cpu_memory_usage``,
                ``self_cpu_memory_usage`` or ``count``. By default, rows are in call order.
            row_limit
                Maximum number of rows; -1 for all.
            max_src_column_width, max_name_column_width
                Longer lines and names are truncated.
            header
                A line to print above the table.
            top_level_events_only
                Whether to omit events that have a parent.

        Raises
        ------
        ValueError
            If `sort_by` is not one of these.
        """
        if sort_by is not None and sort_by not in _SORTABLE:
            raise ValueError(f"sort_by has to be one of {', '.join(_SORTABLE)}, not {sort_by!r}")
        events = [
            event for event in self if not (top_level_events_only and getattr(event, "cpu_parent", None) is not None)
        ]
        total = sum(event.self_cpu_time_total for event in self)
        if sort_by is not None:
            events.sort(key=lambda event: getattr(event, sort_by), reverse=True)
        shapes, stacks = any(event.input_shapes for event in events), any(event.stack for event in events)
        columns = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        if self._profile_memory:
            columns += ["CPU Mem", "Self CPU Mem"]
        columns.append("# of Calls")
        columns += ["Input Shapes"] * shapes + ["Source Location"] * stacks
        rows = []
        for event in events if row_limit < 0 else events[:row_limit]:
            name = (
                event.key if len(event.key) <= max_name_column_width else event.key[: max_name_column_width - 3] + "..."
            )
            row = [
                name, _share(event.self_cpu_time_total, total), _duration(event.self_cpu_time_total), _share(event.cpu_time_total, total),
                _duration(event.cpu_time_total), _duration(event.cpu_time),
            ]  # fmt: skip
            if self._profile_memory:
                row += [_memory(event.cpu_memory_usage), _memory(event.self_cpu_memory_usage)]
            row.append(str(event.count))
            row += [str(event.input_shapes)] * shapes
            row += [(event.stack[0][-max_src_column_width:] if event.stack else "")] * stacks
            rows.append(row)
        widths = [max(len(row[at]) for row in [columns, *rows]) for at in range(len(columns))]
        line = "  ".join("-" * width for width in widths)

        def written(row: list[str]) -> str:
            return "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))

        parts = [header] if header is not None else []
        parts += [line, written(columns), line, *map(written, rows), line, f"Self CPU time total: {_duration(total)}"]
        return "\n".join(parts) + "\n"

    def export_chrome_trace(self, path: str | Path) -> None:
        """Write the events as a trace for ``chrome://tracing`` or Perfetto."""
        first = min((event.start for event in self), default=0)
        trace = [
            {
                "name": event.name, "cat": "user_annotation" if event.is_user_annotation else "cpu_op", "ph": "X", "pid": "CPU functions",
                "tid": event.thread, "ts": (event.start - first) / 1000, "dur": event.cpu_time_total,
                "args": {"Input Dims": event.input_shapes, "Bytes": event.cpu_memory_usage, "Stack": event.stack},
            }
            for event in self
        ]  # fmt: skip
        Path(path).write_text(json.dumps({"traceEvents": trace, "displayTimeUnit": "ms"}), encoding="utf-8")

    def export_memory_timeline(self, path: str | Path, device: str | None = None) -> None:
        """Write the allocated memory over time, of a profile with ``profile_memory=True``.

        Parameters
        ----------
        path
            ``.html`` for a page with a picture and the largest allocations; ``.json`` or
            ``.json.gz`` for lists of times (microseconds), bytes and names.
        device
            The device, such as ``"cpu"``; by default that of the first event.

        Raises
        ------
        RuntimeError
            If no memory of the device was measured.
        ValueError
            If the path ends otherwise.
        """
        from . import memory_timeline

        memory_timeline.write(self, path, device)


def _share(part: float, total: float) -> str:
    return f"{100 * part / total:.2f}%" if total else "NaN"


class _Session(threading.local):
    current: profile | None = None


_session = _Session()


class profile:
    """Record and time every operator call on this thread within the block.

    Parameters
    ----------
    enabled
        Whether the profiler does anything.
    record_shapes
        Whether to record the shapes of inputs.
    profile_memory
        Whether the table shows the memory of results.
    with_stack
        Whether to record the stack of the program.
    use_cpu, use_cuda, use_device, with_flops, with_modules, use_kineto
        Accepted for compatibility. Work on other devices is measured by the duration of the
        call.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.ones(3, requires_grad=True)
    >>> with candelabra.autograd.profiler.profile() as profile:
    ...     with candelabra.autograd.profiler.record_function("square and sum"):
    ...         y = (x**2).sum()
    ...     y.backward()
    >>> "square and sum" in profile.key_averages().table(sort_by="self_cpu_time_total")
    True
    """

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None, record_shapes: bool = False,
        with_flops: bool = False, profile_memory: bool = False, with_stack: bool = False, with_modules: bool = False,
        use_kineto: bool = False, use_cpu: bool = True,
    ) -> None:  # fmt: skip
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.entered = False
        self._events: list[FunctionEvent] = []
        self._open: list[FunctionEvent] = []
        self._passing = False
        self._finished: EventList | None = None

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        if _session.current is not None:
            raise RuntimeError("a profile is being taken on this thread already")
        self.entered = True
        _session.current = self
        functorch_layers.set_observer(self._observe)
        return self

    def __exit__(self, *error: object) -> None:
        if not self.enabled:
            return
        functorch_layers.set_observer(None)
        _session.current = None
        self._finished = EventList(self._events, self.profile_memory)

    # ---- during the profile

    def begin(self, name: str, annotation: bool = False) -> FunctionEvent:
        """Record the start of an event."""
        event = FunctionEvent(len(self._events), name, self._open[-1] if self._open else None, annotation)
        self._events.append(event)
        self._open.append(event)
        event.start = perf_counter_ns()
        return event

    def finish(self, event: FunctionEvent) -> None:
        """Record the end of an event."""
        event.end = perf_counter_ns()
        if event.is_user_annotation:
            event.cpu_memory_usage = sum(child.cpu_memory_usage for child in event.cpu_children)
        while self._open and self._open.pop() is not event:
            pass

    def _observe(self, operator: Any, arguments: tuple[Any, ...], out: Any, generator: Any, record: bool) -> Any:
        if self._passing:
            self._passing = False
            return functorch_layers.pass_on(operator, arguments, out, generator, record)
        # A recorded in-place operation dispatches a second time with `record` False; count it once.
        again = not record and self._open and self._open[-1].name == operator.name
        event = None if again else self.begin(operator.name)
        if event is not None and self.record_shapes:
            event.input_shapes = [
                list(argument.shape) if isinstance(argument, Tensor) else [] for argument in arguments
            ]
        if event is not None and self.with_stack:
            event.stack = _program_lines()
        device = None
        if event is not None:
            if self.profile_memory:
                device = _device_of(arguments)
                event.allocated_before = 0 if device is None else _allocated(device)
            event.start = perf_counter_ns()
        self._passing = True
        try:
            result = operator.again(arguments, out, generator)
        finally:
            self._passing = False
            if event is not None:
                self.finish(event)
        if event is not None:
            event.cpu_memory_usage = _new_memory(operator, arguments, out, result)
            if self.profile_memory:
                self._measure(event, device, result)
        return result

    def _measure(self, event: FunctionEvent, device: Any, result: Any) -> None:
        """Note the allocated bytes after a call, on the device of its arguments or results."""
        created = device is None
        if created:
            device = _device_of(result if isinstance(result, tuple) else (result,))
        if device is not None:
            event.device = str(device)
            event.allocated = _allocated(device)
            if created:
                event.allocated_before = event.allocated - event.cpu_memory_usage

    # ---- after the profile

    @property
    def function_events(self) -> EventList:
        """All events, ordered by start time.

        Raises
        ------
        RuntimeError
            If the block has not ended.
        """
        if self._finished is None:
            raise RuntimeError("Profiler didn't finish running")
        return self._finished

    @property
    def self_cpu_time_total(self) -> float:
        """The total time of all events, in microseconds."""
        return self.function_events.self_cpu_time_total

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Aggregate events by name; see :meth:`EventList.key_averages`."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """Aggregate all events into one."""
        return self.function_events.total_average()

    def table(self, *arguments: Any, **keywords: Any) -> str:
        """Format all events as a table; see :meth:`EventList.table`."""
        return self.function_events.table(*arguments, **keywords)

    def export_chrome_trace(self, path: str | Path) -> None:
        """Write a trace: see :meth:`EventList.export_chrome_trace`."""
        self.function_events.export_chrome_trace(path)

    def export_memory_timeline(self, path: str | Path, device: str | None = None) -> None:
        """Write the allocated memory over time; see :meth:`EventList.export_memory_timeline`."""
        self.function_events.export_memory_timeline(path, device)

    def __str__(self) -> str:
        return "<unfinished profile>" if self._finished is None else str(self._finished)

    __repr__ = __str__


def _new_memory(operator: Any, arguments: tuple[Any, ...], out: Any, result: Any) -> int:
    """Return the size in bytes of results that are neither views nor arguments."""
    if out is not None or functorch_layers.changes_first(operator) or operator.tags & functorch_layers.VIEW:
        return 0
    given = {id(tensor) for tensor in functorch_layers.tensors_in(arguments)}
    parts = result if isinstance(result, tuple) else (result,)
    return sum(
        part.nbytes for part in parts if isinstance(part, Tensor) and id(part) not in given and not part._is_view()
    )


def _device_of(values: tuple[Any, ...]) -> Any:
    """Return the device of the first tensor among some values, or None."""
    return next((tensor.device for tensor in functorch_layers.tensors_in(values) if not tensor.is_meta), None)


def _allocated(device: Any) -> int:
    return int(candelabra._C.memory_statistics(device)["allocated"])


def _program_lines() -> list[str]:
    """Return the stack of the user's program, innermost frame first, without library frames."""
    import traceback

    own = str(Path(candelabra.__file__).parent), str(Path(__file__).parent)
    return [
        f"{frame.filename}({frame.lineno}): {frame.name}"
        for frame in reversed(traceback.extract_stack())
        if not frame.filename.startswith((*own, "<candelabra"))
    ]


class record_function:
    """Show a block, or each call of a decorated function, in the profile under a name.

    Parameters
    ----------
    name
        The name of the event.
    args
    Accepted for compatibility.

    Examples
    --------
    >>> import candelabra
    >>> @candelabra.autograd.profiler.record_function("doubling")
    ... def double(x):
    ...     return x * 2
    >>> with candelabra.autograd.profiler.profile() as profile:
    ...     _ = double(candelabra.ones(1))
    >>> [event.name for event in profile.function_events if event.is_user_annotation]
    ['doubling']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._event: FunctionEvent | None = None
        self._profile: profile | None = None

    def __enter__(self) -> record_function:
        self._profile = _session.current
        if self._profile is not None:
            self._event = self._profile.begin(self.name, annotation=True)
        return self

    def __exit__(self, *error: object) -> None:
        if self._profile is not None and self._event is not None:
            self._profile.finish(self._event)
        self._profile = self._event = None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def recorded(*arguments: Any, **keywords: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*arguments, **keywords)

        return recorded


class emit_nvtx:
    """Raise an error: NVTX ranges are not supported.

    Raises
    ------
    NotImplementedError
        Always.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.autograd.profiler.emit_nvtx()
    Traceback (most recent call last):
    ...
    NotImplementedError: emit_nvtx: NVTX ranges are not emitted; use
    candelabra.autograd.profiler.profile and its export_chrome_trace
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> NoReturn:
        raise NotImplementedError(
            "emit_nvtx: NVTX ranges are not emitted; use candelabra.autograd.profiler.profile and its export_chrome_trace"
        )


class emit_itt:
    """Raise an error: ITT ranges are not supported.

    Raises
    ------
    NotImplementedError
        Always.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.autograd.profiler.emit_itt()
    Traceback (most recent call last):
    ...
    NotImplementedError: emit_itt: ITT ranges are not emitted; use
    candelabra.autograd.profiler.profile and its export_chrome_trace
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> NoReturn:
        raise NotImplementedError(
            "emit_itt: ITT ranges are not emitted; use candelabra.autograd.profiler.profile and its export_chrome_trace"
        )
