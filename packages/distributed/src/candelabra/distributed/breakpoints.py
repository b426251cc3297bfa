"""A breakpoint on one rank."""

from __future__ import annotations

import pdb
import sys
from datetime import timedelta
from types import CodeType
from typing import Any

from .collectives.barriers import barrier
from .groups import get_rank

#: How often each line of a program was passed that asks to skip some calls.
_passed: dict[tuple[CodeType, int], int] = {}


class _Debugger(pdb.Pdb):
    """Reads what is typed although the launcher has redirected the rank's standard input."""

    def interaction(self, *arguments: Any, **keywords: Any) -> None:
        before = sys.stdin
        with open("/dev/stdin") as sys.stdin:
            try:
                super().interaction(*arguments, **keywords)
            finally:
                sys.stdin = before


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: float | None = 3600) -> None:
    """Stop in the debugger on one rank, while the others wait.

    Parameters
    ----------
    rank : int
        The rank that stops.
    skip : int
        So many calls of this line pass.
    timeout_s : float, optional
        How many seconds the others wait; the time limit of the world by default.
    """
    caller = sys._getframe(1)
    line = caller.f_code, caller.f_lineno
    _passed[line] = _passed.get(line, 0) + 1
    if _passed[line] <= skip:
        return
    if get_rank() == rank:
        _Debugger().set_trace(caller)
    barrier(timeout=None if timeout_s is None else timedelta(seconds=timeout_s))
