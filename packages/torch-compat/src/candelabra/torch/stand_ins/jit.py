"""``torch.jit``: the names of candelabra-compile's jit, if it is installed, and others.

Without it, decorators return their argument, because there is no compiler.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn, TypeVar

from .futures import Future

try:
    from candelabra.nn import Module as _Module
except ImportError:  # candelabra-nn is not installed
    _Module = object  # type: ignore[assignment, misc]

__all__ = [
    "Attribute", "CompilationUnit", "Error", "Final", "Future", "RecursiveScriptModule", "ScriptFunction", "ScriptModule", "ScriptWarning",
    "TopLevelTracedModule", "TracedModule", "TracerWarning", "TracingCheckError", "annotate", "enable_onednn_fusion", "export",
    "export_opnames", "fork", "freeze", "fuser", "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load",
    "onednn_fusion_enabled", "optimize_for_inference", "optimized_execution", "run_frozen_optimizations", "save", "script",
    "script_if_tracing", "script_method", "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused", "wait", "_get_trace_graph", "_overload", "_overload_method",
    "_script_if_tracing",
]  # fmt: skip

T = TypeVar("T")
from typing import Final  # noqa: E402  (TorchScript's Final is Python's)


def script(obj: T, *arguments: Any, **options: Any) -> T:
    """Return the function, class or module unchanged.

    Examples
    --------
    >>> from candelabra.torch.stand_ins.jit import script
    >>> script(len)("ab")
    2
    """
    return obj


def _as_it_is(obj: T) -> T:
    """Return the argument unchanged."""
    return obj


export = interface = script_if_tracing = script_method = unused = _as_it_is
_overload = _overload_method = _script_if_tracing = _as_it_is


def ignore(drop: Any = False, **options: Any) -> Any:
    """Return the function unchanged; also usable as a decorator with options."""
    return drop if callable(drop) else _as_it_is


def trace(func: T, example_inputs: Any = None, *arguments: Any, **options: Any) -> T:
    """Return the function or module unchanged; it runs eagerly for any inputs."""
    return func


def _get_trace_graph(f: Any, *arguments: Any, **options: Any) -> NoReturn:
    """Raise NotImplementedError, because there are no TorchScript graphs."""
    raise NotImplementedError(
        "torch.jit._get_trace_graph(): there are no TorchScript graphs on Candelabra; torch.utils.flop_counter.FlopCounterMode counts "
        "operations, and torch.fx.symbolic_trace returns a graph"
    )


def freeze(mod: T, *arguments: Any, **options: Any) -> T:
    """Return the module unchanged."""
    return mod


optimize_for_inference = freeze


def is_scripting() -> bool:
    """Return False, because nothing is compiled."""
    return False


is_tracing = is_scripting


def annotate(the_type: Any, the_value: T) -> T:
    """Return the value; the type only matters for a compiler."""
    return the_value


def fork(func: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
    """Call the function immediately and return its result."""
    return func(*arguments, **keywords)


def wait(future: T) -> T:
    """Return the result of `fork`."""
    return future


def _refuse(name: str) -> Callable[..., NoReturn]:
    def refuse(*arguments: Any, **options: Any) -> NoReturn:
        raise NotImplementedError(
            f"torch.jit.{name}(): there are no compiled programs on Candelabra; save and load the state dict with torch.save and torch.load"
        )

    refuse.__name__ = name
    return refuse


save, load = _refuse("save"), _refuse("load")


# ---- classes of compiled programs


class ScriptModule(_Module):
    """A module; one that derives from it runs eagerly. `script` returns modules of other classes as
    they are, so they are no instances.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.torch.stand_ins.jit import ScriptModule, script
    >>> isinstance(script(candelabra.nn.Linear(1, 1)), ScriptModule)
    False
    """


class RecursiveScriptModule(ScriptModule):
    """The class of compiled modules."""


class TracedModule(ScriptModule):
    """The class of modules that were traced."""


class TopLevelTracedModule(TracedModule):
    """The class of modules that `trace` was called with."""


class ScriptFunction:
    """The class of compiled functions."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        _refuse("ScriptFunction")()


class CompilationUnit:
    """The class of compiled texts."""

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        if lang is not None:
            _refuse("CompilationUnit")()


class Attribute(NamedTuple):
    """A value and its type, for a compiler."""

    value: Any
    type: Any


class Error(RuntimeError):
    """The class of the errors of a compiler."""


class TracingCheckError(Exception):
    """The class of the errors where a trace differs from its function."""


class TracerWarning(Warning):
    """The class of the warnings of a tracer."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Do nothing, because nothing is traced."""


class ScriptWarning(Warning):
    """The class of the warnings of a compiler."""


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return whether a value is of a type; of ``list[int]`` and its relatives, only the outer type
    is checked.
    """
    types = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    plain: Any = tuple(getattr(kind, "__origin__", kind) for kind in types)
    return builtins.isinstance(obj, plain)


def trace_module(mod: T, inputs: Any = None, *arguments: Any, **options: Any) -> T:
    """Return the module unchanged."""
    return mod


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Do nothing, because nothing is compiled."""
    yield


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """Do nothing, because nothing is compiled."""
    yield


class strict_fusion:
    """A context manager that does nothing, because nothing is compiled."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        pass


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the strategy that was set before: there is none."""
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """Do nothing, because nothing is compiled."""


def onednn_fusion_enabled() -> bool:
    """Return False, because nothing is compiled."""
    return False


def run_frozen_optimizations(mod: Any, *arguments: Any, **options: Any) -> None:
    """Do nothing, because nothing is compiled."""


export_opnames = _refuse("export_opnames")

try:
    _installed: Any = importlib.import_module("candelabra.jit")
except ImportError:  # candelabra-compile is not installed
    _installed = None
else:
    globals().update({name: getattr(_installed, name) for name in _installed.__all__})
    _script_if_tracing = script_if_tracing
