"""Handling of SIGINT and SIGTERM as requests to stop after the current step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

#: The first signal requests a stop after the step. The second one has its original effect.
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopped_by_signals(stop: Callable[[str], None]) -> Iterator[None]:
    """Call `stop` with the name of the first signal of `SIGNALS` that arrives within the block.

    The second signal has its original effect. Only the main thread receives signals; in other
    threads, this does nothing.
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
        # Leave ignored signals ignored. A handler that Python did not set (None) cannot be
        # restored.
        if handler is not None and handler != signal.SIG_IGN:
            before[number] = handler
            signal.signal(number, handle)
    try:
        yield
    finally:
        restore()
