"""``torch._C._profiler``: tracebacks that are gathered now and read later."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any

__all__ = ["gather_traceback", "symbolize_tracebacks"]


def gather_traceback(python: bool, script: bool, cpp: bool) -> traceback.StackSummary:
    """Return where the program is: its frames in Python, if they are asked for.

    There are no frames of TorchScript, and those of C++ are not gathered.
    """
    if not python:
        return traceback.StackSummary()
    return traceback.StackSummary.extract(traceback.walk_stack(None), lookup_lines=False)


def symbolize_tracebacks(tracebacks: Sequence[traceback.StackSummary]) -> list[list[dict[str, Any]]]:
    """Return the frames of each traceback, the innermost first: file, line and function."""
    return [
        [{"filename": frame.filename, "line": frame.lineno, "name": frame.name} for frame in gathered]
        for gathered in tracebacks
    ]
