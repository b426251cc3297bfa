"""Record a function while it runs, and replay its kernels from C++.

`candelabra.compile` is the function `compile` of this package.
"""

from __future__ import annotations

from candelabra.version import register

__version__ = "0.1.0"
register("candelabra-compile", __version__, "candelabra-tensor-core>=0.1,<0.2", "candelabra-nn>=0.1,<0.2")

from typing import Any

from .compiled import CompileError, reset_all
from .compiling import BACKENDS, compile, get_default_backend, set_default_backend
from .explaining import Explanation, explain
from .stance import (
    allow_in_graph,
    cudagraph_mark_step_begin,
    disable,
    is_compiling,
    is_exporting,
    set_stance,
)


def reset() -> None:
    """Give up all programs: compiled functions begin anew.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.compiler.reset()
    """
    reset_all()


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return the names that `compile` takes as ``backend``.

    Examples
    --------
    >>> import candelabra
    >>> "replay" in candelabra.compiler.list_backends()
    True
    """
    return list(BACKENDS)


def is_dynamo_compiling() -> bool:
    """Return the same as `is_compiling`."""
    return is_compiling()


__all__ = [
    "CompileError", "Explanation", "allow_in_graph", "compile", "cudagraph_mark_step_begin", "disable", "explain",
    "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "reset", "set_default_backend",
    "set_stance",
]  # fmt: skip
