"""``torch.compiler`` and ``torch._dynamo``: no-ops, because there is no compiler."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

__all__ = [
    "OptimizedModule", "allow_in_graph", "config", "cudagraph_mark_step_begin", "disable", "is_compiling", "is_dynamo_compiling", "is_exporting",
    "list_backends", "mark_dynamic", "reset",
]  # fmt: skip

#: Settings that programs assign.
config = SimpleNamespace(cache_size_limit=8, suppress_errors=False, verbose=False)


class OptimizedModule:
    """What PyTorch's `compile` makes of a module; here it returns the module, so that there is none."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        raise RuntimeError("OptimizedModule: there is no compiler; torch.compile returns modules as they are")


def is_compiling() -> bool:
    """Return False, because nothing is compiled."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn: Any = None, recursive: bool = True, **options: Any) -> Any:
    """Return the function unchanged; also usable as a decorator with options."""
    return (lambda decorated: decorated) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """Return the function unchanged."""
    return fn


def reset(*arguments: Any, **options: Any) -> None:
    """Do nothing."""


cudagraph_mark_step_begin = mark_dynamic = reset


def list_backends(*arguments: Any) -> list[str]:
    """Return an empty list, because there are no compilers."""
    return []
