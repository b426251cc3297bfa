"""``torch.compiler`` and ``torch._dynamo``: the names of candelabra-compile, if it is installed.

Without it nothing is compiled, and the names do nothing.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

from candelabra import _C, Tensor, from_numpy, pytree

from .unavailable import unavailable

T = TypeVar("T")

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
    "is_dynamo_compiling", "is_exporting", "keep_portable_guards_unsafe", "keep_tensor_guards_unsafe", "list_backends", "load_cache_artifacts", "load_compiled_function",
    "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic", "nested_compile_region", "optimize", "reset", "save_cache_artifacts", "set_enable_guard_collectives",
    "set_stance", "skip_all_guards_unsafe", "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe", "substitute_in_graph", "wrap_numpy",
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
    >>> from candelabra.torch.stand_ins.compilers.compiler import compile
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


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True) -> Any:
    """Return a function that is never compiled; also usable as a decorator with options."""
    if installed is not None:
        return installed.disable(fn, recursive, reason=reason)
    return (lambda decorated: decorated) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """Return the function unchanged."""
    return fn


def reset(*arguments: Any) -> None:
    """Give up all programs."""
    if installed is not None:
        installed.reset()


assume_constant_result = allow_in_graph


def mark_dynamic(
    t: Any,
    index: Any,
    *,
    hint_override: int | None = None,
    min: int | None = None,
    max: int | None = None,
    specialize_on: Any = None,
) -> None:
    """Do nothing: every size has a program of its own."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Do nothing: every size has a program of its own."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Do nothing: recorded programs ask for the addresses of tensors at every call."""


def mark_static(t: Any, index: Any = None) -> None:
    """Do nothing: every size has a program of its own."""


def cudagraph_mark_step_begin() -> None:
    """Do nothing: results of replays are always new tensors."""


# ---- guards, caches and regions


def _all_guards(guard_entries: Sequence[Any]) -> list[bool]:
    """Return that every guard is kept: each is checked, and takes some nanoseconds."""
    return [True] * len(guard_entries)


keep_portable_guards_unsafe = skip_guard_on_inbuilt_nn_modules_unsafe = _all_guards
skip_guard_on_all_nn_modules_unsafe = skip_guard_on_globals_unsafe = skip_all_guards_unsafe = _all_guards


def keep_tensor_guards_unsafe(guard_entries: Sequence[Any], keep_parameters: bool = False) -> list[bool]:
    """Return that every guard is kept, as the other filters do."""
    return _all_guards(guard_entries)


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Return False: processes do not agree on their programs.

    Raises
    ------
    NotImplementedError
        If they shall.
    """
    if enabled:
        raise NotImplementedError(
            "torch.compiler.set_enable_guard_collectives(True): each process records its own programs on Candelabra, and collectives "
            "are not part of them"
        )
    return False


def save_cache_artifacts() -> None:
    """Return None, as where nothing is cached: recording takes some milliseconds."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """Return None, as where nothing in the artifacts fits: those of PyTorch hold its own code."""


load_compiled_function = unavailable("compiler", "load_compiled_function")


def substitute_in_graph(
    original_fn: Any, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable[[T], T]:
    """Return a decorator that changes nothing: the original function is recorded as it runs."""
    return allow_in_graph


def nested_compile_region(
    fn: Any = None, *, options: Any = None, max_reuse_entries: int = 8, reuse_hash_fn: Any = None
) -> Any:
    """Return the function unchanged: regions are not compiled once for all of their calls."""
    return allow_in_graph if fn is None else fn


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of tensors that calls a function of NumPy arrays.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.torch.stand_ins.compilers.compiler import wrap_numpy
    >>> wrap_numpy(lambda a: a * 2)(candelabra.ones(2))
    tensor([2., 2.])
    """
    import numpy

    def array(value: Any) -> Any:
        return value.numpy() if isinstance(value, Tensor) else value

    def tensor(value: Any) -> Any:
        if isinstance(value, numpy.ndarray):
            return from_numpy(value)
        return from_numpy(numpy.asarray(value)) if isinstance(value, numpy.generic) else value

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given = pytree.tree_map(array, (args, kwargs))
        return pytree.tree_map(tensor, fn(*given[0], **given[1]))

    return wrapped


def graph_break(msg: str = "") -> None:
    """End the recording of a compiled function, which then runs as written."""
    _C.refuse_recording(f"graph_break() is called {msg}".rstrip())


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
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
