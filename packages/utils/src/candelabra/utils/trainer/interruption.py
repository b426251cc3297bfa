"""Ctrl-C and the end of a job, as requests to stop after the step that is under way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

#: What is asked for once is done after the step; what is asked for again, at once.
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopped_by_signals(stop: Callable[[str], None]) -> Iterator[None]:
    """Call `stop` with the name of a signal that asks the process to end, within a block; the
    second one does what it did before.

    Signals come to the main thread, so that in another one nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        restore()
        stop(signal.Signals(number).name)

    for number in SIGNALS:
        handler = signal.getsignal(number)
        # A signal that is ignored stays so, and a handler that was not set by Python cannot be put
        # back.
        if handler is not None and handler != signal.SIG_IGN:
            before[number] = handler
            signal.signal(number, handle)
    try:
        yield
    finally:
        restore()
