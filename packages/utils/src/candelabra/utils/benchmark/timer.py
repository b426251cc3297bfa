"""Timing of statements, as in `timeit`, with one thread by default and automatic repetition."""

from __future__ import annotations

import timeit as _timeit
from collections.abc import Callable
from time import perf_counter as timer
from typing import Any

import candelabra

from .measurement import Measurement

__all__ = ["Timer", "timer"]

#: A run takes at least this many times as long as one clock reading.
CLOCK_READINGS = 1000


class Timer:
    """Measure the run time of a statement.

    Parameters
    ----------
    stmt, setup, global_setup : str
        The statement, code that runs before each series of runs, and code that runs once. All of
        them see `globals`.
    timer : callable
        A clock that returns seconds.
    globals : dict, optional
        Names that the statement may use. The timer copies the dict and adds `candelabra`.
    label, sub_label, description, env : str, optional
        Labels for tables.
    num_threads : int
        Number of threads that operators use during the measurement.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.utils.benchmark import Timer
    >>> measured = Timer("x + x", globals={"x": candelabra.ones(4)}).timeit(100)
    >>> measured.number_per_run, measured.median > 0
    (100, True)
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if num_threads < 1:
            raise ValueError(f"num_threads should be positive, but got {num_threads}")
        names = {"candelabra": candelabra, **(globals or {})}
        if global_setup:
            exec(global_setup, names)
        self._clock = timer
        self._timer = _timeit.Timer(stmt=stmt, setup=setup, timer=timer, globals=names)
        self._what = (stmt, setup, label, sub_label, description, env, num_threads)
        self._threads = num_threads

    def _run(self, number: int) -> float:
        before = candelabra.get_num_threads()
        candelabra.set_num_threads(self._threads)
        try:
            return max(self._timer.timeit(number), 1e-9)
        finally:
            candelabra.set_num_threads(before)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Run the statement `number` times after a short warm-up, and return one measurement."""
        self._run(max(number // 100, 2))
        return Measurement(number, [self._run(number)], *self._what)

    def _block(self, min_run_time: float) -> int:
        readings = [self._clock() for _ in range(101)]
        overhead = (readings[-1] - readings[0]) / 100
        number = 1
        while True:
            taken = self._run(number)
            if (taken > min_run_time / 1000 and taken > CLOCK_READINGS * overhead) or taken > min_run_time:
                return number
            number *= 10

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measure runs until `min_run_time` seconds have passed; each is long enough for the clock.

        Parameters
        ----------
        callback : callable, optional
            Called with the number of executions and the duration of each run.
        min_run_time : float
            Minimum total time in seconds.
        """
        number = self._block(min_run_time)
        times: list[float] = []
        while sum(times) < min_run_time:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, *self._what)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Measure until the interquartile range is below `threshold` times the median.

        Stops after `max_run_time` seconds in any case.
        """
        number = self._block(0.05)
        times: list[float] = []
        while True:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
            measured = Measurement(number, times, *self._what)
            total = sum(times)
            if total >= max_run_time or (
                total >= min_run_time and len(times) > 3 and measured.iqr / measured.median < threshold
            ):
                return measured
