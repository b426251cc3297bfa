"""``torch.utils._traceback``: where a program is, for messages and debuggers."""

from __future__ import annotations

import inspect
import os
import tempfile
import traceback
from collections.abc import Sequence
from types import FrameType, TracebackType

__all__ = ["CapturedTraceback", "format_traceback_short", "report_compile_source_on_error"]


def format_traceback_short(tb: TracebackType) -> str:
    """Return the innermost place of a traceback: file, line and function."""
    while tb.tb_next is not None:
        tb = tb.tb_next
    code = tb.tb_frame.f_code
    return f"{code.co_filename}:{tb.tb_lineno} in {code.co_name}"


class CapturedTraceback:
    """The frames at which it was made, formatted when they are asked for.

    Examples
    --------
    >>> found = CapturedTraceback.extract()
    >>> found.format()[-1].startswith("  File")
    True
    """

    def __init__(self, frames: Sequence[tuple[FrameType, int]]) -> None:
        self._frames = list(frames)
        self._summary: traceback.StackSummary | None = None

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """Return where the caller is, without the innermost `skip` frames."""
        here = inspect.currentframe()
        frames = list(traceback.walk_stack(here.f_back if here is not None else None))
        return CapturedTraceback(frames[skip:])

    def summary(self) -> traceback.StackSummary:
        """Return the frames, the outermost first."""
        if self._summary is None:
            self._summary = traceback.StackSummary.extract(reversed(self._frames))
        return self._summary

    def format(self) -> list[str]:
        """Return the frames as text, the outermost first."""
        return self.summary().format()

    @staticmethod
    def format_all(tbs: Sequence[CapturedTraceback]) -> list[list[str]]:
        """Return the text of several."""
        return [tb.format() for tb in tbs]

    def cleanup(self) -> None:
        """Let go of the frames; their text stays."""
        self.summary()
        self._frames.clear()


class report_compile_source_on_error:
    """A context that shows source lines in tracebacks of code that was compiled from a string.

    Such code has its source as the global name ``__compile_source__``; where it raises, the source
    is written to a temporary file, to which the traceback then points.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, place: TracebackType | None) -> None:
        if not isinstance(error, Exception):
            return
        entries = []
        while place is not None:
            entries.append(place)
            place = place.tb_next
        chain: TracebackType | None = None
        for entry in reversed(entries):
            chain = _with_source(entry, chain)
        raise error.with_traceback(chain) from None


def _with_source(entry: TracebackType, rest: TracebackType | None) -> TracebackType:
    """Return an entry of a traceback, in a file if its code was compiled from a string."""
    source = entry.tb_frame.f_globals.get("__compile_source__")
    if source is None or os.path.exists(entry.tb_frame.f_code.co_filename):
        return TracebackType(rest, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(source)
    # An exception that is raised from the file, at the same line, has a frame of that file.
    padding = "\n" * (entry.tb_lineno - 1)
    code = compile(padding + "raise RuntimeError", file.name, "exec")
    code = code.replace(co_name=entry.tb_frame.f_code.co_name)
    try:
        exec(code, dict(entry.tb_frame.f_globals), {})
    except RuntimeError as raised:
        inner = raised.__traceback__.tb_next if raised.__traceback__ is not None else None
        assert inner is not None
        return TracebackType(rest, inner.tb_frame, inner.tb_lasti, entry.tb_lineno)
    raise AssertionError("code that raises did not raise")
