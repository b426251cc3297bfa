"""Noticing where code between operators reads or writes the values of tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from candelabra import _C

#: Parts of the core's reasons, why a recording of kernels ends, that are about values.
_VALUES = ("reads the value", "gives out", "the host writes")


class Watch:
    """Asks the core's recorder of kernels, between operators, whether values were read.

    Parameters
    ----------
    notify
        Called with what was done, and the line, when it is noticed.
    """

    def __init__(self, notify: Callable[[str, tuple[str, int]], None]) -> None:
        self._notify = notify
        self._recording: _C.Recording | None = None

    def start(self) -> None:
        """Watch from now on."""
        self._recording = _C.Recording()
        self._recording.start()

    def stop(self) -> None:
        """Watch no longer."""
        if self._recording is not None:
            self._recording.stop()
            self._recording = None

    def check(self) -> None:
        """Notify of what was done since the start, and watch no longer."""
        reason = None if self._recording is None else self._recording.reason
        self.stop()
        if reason is not None and any(part in reason[0] for part in _VALUES):
            self._notify(reason[0], (reason[1], reason[2]))

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Watch nothing within the block, after a check of what was before."""
        is_on = self._recording is not None
        self.check()
        try:
            yield
        finally:
            if is_on:
                self.start()
