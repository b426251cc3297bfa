"""``torch._dynamo``: switches of PyTorch's compiler, beside the names of ``torch.compiler``.

Marks of functions change nothing, because every operator is recorded whoever calls it. What is
about bytecode, or about compilers of graphs, raises.
"""

from __future__ import annotations

from typing import Any

from . import compiler
from .compiler import (
    OptimizedModule,
    allow_in_graph,
    assume_constant_result,
    config,
    disable,
    explain,
    graph_break,
    installed,
    is_compiling,
    list_backends,
    mark_dynamic,
    mark_static,
    mark_static_address,
    maybe_mark_dynamic,
    optimize,
    reset,
    set_stance,
    substitute_in_graph,
)
from .unavailable import unavailable_names

_unavailable = unavailable_names("_dynamo")

__all__ = [
    "OptimizedModule", "allow_c_slot", "allow_in_graph", "assume_constant_result", "config", "disable", "disable_nested_graph_breaks",
    "disallow_in_graph", "dont_skip_tracing", "error_on_graph_break", "explain", "forbid_in_graph", "graph_break", "is_compiling",
    "is_dynamo_disable_recursive", "is_dynamo_supported", "is_inductor_supported", "list_backends", "mark_dynamic", "mark_static",
    "mark_static_address", "maybe_mark_dynamic", "nonstrict_trace", "optimize", "optimize_assert", "override_cudagraphs",
    "override_optimization_hint", "patch_dynamo_config", "reset", "reset_code", "reset_recompile_user_contexts", "run", "set_recursion_limit",
    "set_stance", "skip_frame", "step_unsupported", "substitute_in_graph", *_unavailable,
]  # fmt: skip


globals().update(_unavailable)


def optimize_assert(backend: Any = "inductor", **options: Any) -> Any:
    """Return a decorator that compiles whole functions, or raises."""
    return optimize(backend, nopython=True, **options)


def run(fn: Any = None) -> Any:
    """Return a function that replays the programs that there are, and makes none; or do so from now
    on.
    """
    stance = set_stance("eager_on_recompile")
    return None if fn is None else stance(fn)


def is_dynamo_supported() -> bool:
    """Return whether functions are compiled."""
    return installed is not None


is_inductor_supported = is_dynamo_supported


def reset_code(code: Any) -> None:
    """Give up all programs."""
    compiler.reset()


def reset_recompile_user_contexts() -> None:
    """Do nothing: no functions are called when something is recorded again."""


def set_recursion_limit(limit: int) -> None:
    """Do nothing: recorded functions run in Python, with its limit."""


def is_dynamo_disable_recursive(method: Any) -> bool | None:
    """Return whether a function is marked by `disable`; None if it is not."""
    return True if getattr(method, "_candelabra_disabled", False) else None


# ---- marks of functions


def disallow_in_graph(fn: Any) -> Any:
    """Return the function unchanged: the operators that it calls are recorded."""
    return fn


forbid_in_graph = nonstrict_trace = disallow_in_graph


def allow_c_slot(*arguments: Any, **options: Any) -> None:
    """Do nothing: C functions are called, not analyzed."""


def skip_frame(msg: str = "") -> None:
    """End the recording of a compiled function, which then runs as written."""
    graph_break(msg)


step_unsupported = skip_frame


def override_optimization_hint(x: Any, val: int) -> None:
    """Do nothing: every size has a program of its own."""


def patch_dynamo_config(name: Any = None, val: Any = None, **changes: Any) -> Any:
    """Return a context manager and decorator that changes settings, none of which has an effect."""
    return config.patch(name, val, **changes)


def dont_skip_tracing(fn: Any = None) -> Any:
    """Return the function unchanged, or a context manager that does nothing."""
    return config.patch() if fn is None else fn


disable_nested_graph_breaks = dont_skip_tracing


def override_cudagraphs(fwd: bool | None = None, bwd: bool | None = None) -> Any:
    """Return a context manager and decorator that does nothing: all programs are replayed."""
    return config.patch()


def error_on_graph_break(error_on_graph_break: bool) -> Any:
    """Return a context manager and decorator that does nothing.

    Raises
    ------
    NotImplementedError
        If errors are asked for: ``fullgraph=True`` has them.
    """
    if error_on_graph_break:
        raise NotImplementedError(
            "torch._dynamo.error_on_graph_break(True) is not available on Candelabra: use torch.compile(..., fullgraph=True)"
        )
    return config.patch()
