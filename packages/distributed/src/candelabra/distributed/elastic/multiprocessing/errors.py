"""What programs do so that the launcher can report their errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def record(fn: F) -> F:
    """Return the function unchanged: the launcher reports the end of the process's stderr, which
    has the traceback.

    Examples
    --------
    >>> from candelabra.distributed.elastic.multiprocessing.errors import record
    >>> @record
    ... def main():
    ...     return 3
    >>> main()
    3
    """
    return fn
