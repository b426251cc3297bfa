"""``torch.compiler`` and ``torch._dynamo``: no-ops, because there is no compiler."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "cudagraph_mark_step_begin", "disable", "is_compiling", "is_dynamo_compiling", "is_exporting",
    "list_backends", "mark_dynamic", "mark_static_address", "reset",
]  # fmt: skip


class _Config(SimpleNamespace):
    @contextlib.contextmanager
    def patch(self, name: str | dict[str, Any] | None = None, val: Any = None, **changes: Any) -> Iterator[None]:
        """Change settings within the block, or while a decorated function runs."""
        if isinstance(name, dict):
            changes = {**name, **changes}
        elif name is not None:
            changes = {name: val, **changes}
        before = dict(vars(self))
        vars(self).update(changes)
        try:
            yield
        finally:
            vars(self).clear()
            vars(self).update(before)


#: Settings that programs assign.
config = _Config(
    cache_size_limit=8,
    capture_scalar_outputs=False,
    inline_inbuilt_nn_modules=True,
    suppress_errors=False,
    verbose=False,
)


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


assume_constant_result = allow_in_graph


def reset(*arguments: Any, **options: Any) -> None:
    """Do nothing."""


cudagraph_mark_step_begin = mark_dynamic = mark_static_address = reset


def list_backends(*arguments: Any) -> list[str]:
    """Return an empty list, because there are no compilers."""
    return []
