"""``torch.compiler`` and ``torch._dynamo``: the names of candelabra-compile, if it is installed.

Without it nothing is compiled, and the names do nothing.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from candelabra import _C

installed: Any
try:
    installed = importlib.import_module("candelabra.compiler")
    OptimizedModule = importlib.import_module("candelabra.compiler.optimized_module").OptimizedModule
except ImportError:
    installed = None

    class OptimizedModule:  # type: ignore[no-redef]
        """What `compile` makes of a module; without candelabra-compile there is none."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            raise RuntimeError("OptimizedModule: there is no compiler: pip install candelabra-compile")


__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "compile", "config", "cudagraph_mark_step_begin", "disable", "explain", "graph_break", "is_compiling",
    "is_dynamo_compiling", "is_exporting", "list_backends", "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic", "optimize", "reset", "set_stance",
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


#: Settings that programs assign. None of them changes anything.
config = _Config(
    accumulated_cache_size_limit=256, cache_size_limit=8, capture_scalar_outputs=False, recompile_limit=8, suppress_errors=False,
    verbose=False,
)  # fmt: skip


def compile(model: Any = None, **options: Any) -> Any:
    """Compile a function or a module with candelabra-compile.

    Without that package the function is returned unchanged, with a warning: a program that asks for
    speed also works without.

    Examples
    --------
    >>> from candelabra.torch.stand_ins.compiler import compile
    >>> compile(lambda x: x + 1, disable=True)(1)
    2
    """
    if installed is not None:
        return installed.compile(model, **options)
    if not options.get("disable"):
        _C.warn("torch.compile changes nothing without candelabra-compile: pip install it")
    return (lambda decorated: decorated) if model is None else model


def is_compiling() -> bool:
    """Return whether the caller runs inside a call that is recorded or exported."""
    return bool(_C.is_recording()) if installed is None else bool(installed.is_compiling())


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Return whether the caller runs inside a call that is exported."""
    return installed is not None and bool(installed.is_exporting())


def disable(fn: Any = None, recursive: bool = True, **options: Any) -> Any:
    """Return a function that is never compiled; also usable as a decorator with options."""
    if installed is not None:
        return installed.disable(fn, recursive, **options)
    return (lambda decorated: decorated) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """Return the function unchanged."""
    return fn


def reset(*arguments: Any) -> None:
    """Give up all programs."""
    if installed is not None:
        installed.reset()


assume_constant_result = allow_in_graph


def mark_dynamic(tensor: Any, index: Any, **limits: Any) -> None:
    """Do nothing: every size has a program of its own."""


maybe_mark_dynamic = mark_dynamic


def mark_static_address(tensor: Any, guard: bool = False) -> None:
    """Do nothing: recorded programs ask for the addresses of tensors at every call."""


def mark_static(tensor: Any, index: Any = None) -> None:
    """Do nothing: every size has a program of its own."""


def cudagraph_mark_step_begin() -> None:
    """Do nothing: results of replays are always new tensors."""


def graph_break(message: str = "") -> None:
    """End the recording of a compiled function, which then runs as written."""
    _C.refuse_recording(f"graph_break() is called {message}".rstrip())


def list_backends(*arguments: Any) -> list[str]:
    """Return the names that `compile` takes as ``backend``; none without candelabra-compile."""
    return [] if installed is None else installed.list_backends()


def optimize(backend: Any = "inductor", *, nopython: bool = False, dynamic: bool | None = None, **options: Any) -> Any:
    """Return a decorator that compiles: ``torch._dynamo.optimize("inductor")(fn)``."""
    return compile(fullgraph=nopython, dynamic=dynamic, backend=backend)


def explain(fn: Any, *arguments: Any, **keywords: Any) -> Any:
    """Explain what a compiled function would be: ``explain(fn)(*arguments)``.

    Raises
    ------
    RuntimeError
        If candelabra-compile is not installed.
    """
    if installed is None:
        raise RuntimeError("torch._dynamo.explain: there is no compiler: pip install candelabra-compile")
    explained = installed.explain(fn)
    return explained(*arguments, **keywords) if arguments or keywords else explained


class set_stance:
    """Set how compiled functions are called: a function, a context manager and a decorator."""

    def __new__(cls, stance: str = "default", **options: Any) -> Any:
        if installed is not None:
            return installed.set_stance(stance, **options)
        return super().__new__(cls)

    def __enter__(self) -> set_stance:
        return self

    def __exit__(self, *exception: object) -> None:
        """Do nothing."""

    def __call__(self, function: Any) -> Any:
        return function
