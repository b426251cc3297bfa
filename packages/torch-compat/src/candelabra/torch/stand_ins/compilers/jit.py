"""``torch.jit``: the names of candelabra-compile's jit, if it is installed, and others.

Without it, decorators return their argument, because there is no compiler.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import typing
from collections.abc import Callable, Container, Iterator
from types import UnionType
from typing import Any, NamedTuple, NoReturn, TypeVar, Union, get_args, get_origin

from ..futures import Future
from .unavailable import unavailable_names

try:
    from candelabra.nn import Module as _Module
except ImportError:  # candelabra-nn is not installed
    _Module = object  # type: ignore[assignment, misc]

__all__ = [
    "Attribute", "CompilationUnit", "Error", "Final", "Future", "RecursiveScriptModule", "ScriptFunction", "ScriptModule", "ScriptWarning",
    "TopLevelTracedModule", "TracedModule", "TracerWarning", "TracingCheckError", "annotate", "enable_onednn_fusion", "export",
    "export_opnames", "fork", "freeze", "fuser", "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load",
    "onednn_fusion_enabled", "optimize_for_inference", "optimized_execution", "run_frozen_optimizations", "save", "script",
    "script_if_tracing", "script_method", "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused", "wait", "_drop", "_fork",
    "_isinstance", "_overload", "_overload_method", "_script_if_tracing", "_set_fusion_strategy", "_unique_state_dict", "_unwrap_optional",
    "_wait", *(_unavailable := unavailable_names("jit")),
]  # fmt: skip
globals().update(_unavailable)

T = TypeVar("T")
from typing import Final  # noqa: E402  (TorchScript's Final is Python's)


def script(obj: T, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> T:
    """Return the function, class or module unchanged.

    Examples
    --------
    >>> from candelabra.torch.stand_ins.compilers.jit import script
    >>> script(len)("ab")
    2
    """
    return obj


def _as_it_is(obj: T) -> T:
    """Return the argument unchanged."""
    return obj


export = interface = script_if_tracing = script_method = unused = _as_it_is
_drop = _overload = _overload_method = _script_if_tracing = _as_it_is


def ignore(drop: Any = False, **options: Any) -> Any:
    """Return the function unchanged; also usable as a decorator with options."""
    return drop if callable(drop) else _as_it_is


def trace(func: T, example_inputs: Any = None, *arguments: Any, **options: Any) -> T:
    """Return the function or module unchanged; it runs eagerly for any inputs."""
    return func


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


def fork(func: Callable[..., T], *args: Any, **kwargs: Any) -> Future[T]:
    """Call the function immediately, and return a future of its result or its exception.

    Examples
    --------
    >>> from candelabra.torch.stand_ins.compilers.jit import fork, wait
    >>> wait(fork(max, 1, 2))
    2
    """
    future: Future[T] = Future()
    try:
        future.set_result(func(*args, **kwargs))
    except Exception as error:
        future.set_exception(error)
    return future


def wait(future: Future[T]) -> T:
    """Return the result of `fork`, or raise its exception."""
    return future.wait()


_fork, _wait = fork, wait


def _unwrap_optional(x: T | None) -> T:
    """Return a value that is not None."""
    assert x is not None, "Unwrapping null optional"
    return x


def _unique_state_dict(module: Any, keep_vars: bool = False) -> dict[str, Any]:
    """Return the state dict with each tensor once."""
    seen: set[int] = set()
    found = {}
    for name, value in module.state_dict(keep_vars=True).items():
        if id(value) not in seen:
            seen.add(id(value))
            found[name] = value if keep_vars else value.detach()
    return found


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
    >>> from candelabra.torch.stand_ins.compilers.jit import ScriptModule, script
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
            self.define(lang)

    def define(self, lang: str, rcb: Any = None, _frames_up: int = 0) -> NoReturn:
        """Raise NotImplementedError: nothing is compiled from source."""
        raise NotImplementedError(
            "torch.jit.CompilationUnit: nothing is compiled from source on Candelabra; write a function, and use torch.jit.script"
        )

    def __getattr__(self, attr: str) -> Any:
        raise AttributeError(f"'CompilationUnit' has no attribute '{attr}'")

    def get_functions(self) -> list[Any]:
        """Return the functions of the text: there are none."""
        return []

    def find_function(self, name: str) -> None:
        """Return None: there are no functions."""


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


#: Containers without the types of their entries, which `isinstance` refuses.
_CONTAINERS: dict[Any, str] = {
    list: "List", dict: "Dict", tuple: "Tuple", typing.List: "List", typing.Dict: "Dict", typing.Tuple: "Tuple",  # noqa: UP006
    typing.Optional: "Optional",
}  # fmt: skip


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return whether a value is of a type, or of one in a tuple. Of ``list[int]`` and its relatives
    the entries are checked.

    Raises
    ------
    RuntimeError
        If the type is none, or a container without the types of its entries.
    """
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, kind) for kind in target_type)
    if builtins.isinstance(target_type, Container) and not builtins.isinstance(target_type, type):
        raise RuntimeError("The second argument to `torch.jit.isinstance` must be a type or a tuple of types")
    kind, kinds = get_origin(target_type), get_args(target_type)
    if target_type in _CONTAINERS:
        name = _CONTAINERS[target_type]
        raise RuntimeError(
            f"Attempted to use {name} without a contained type. Please add a contained type, e.g. {name}[int]"
        )
    if kind is None:
        return builtins.isinstance(obj, target_type)
    if kind in (Union, UnionType):
        return obj is None or any(isinstance(obj, one) for one in kinds)
    if not builtins.isinstance(obj, kind):
        return False
    if kind is list:
        return all(isinstance(entry, kinds[0]) for entry in obj)
    if kind is dict:
        return all(isinstance(key, kinds[0]) and isinstance(value, kinds[1]) for key, value in obj.items())
    if kind is tuple:
        return len(obj) == len(kinds) and all(map(isinstance, obj, kinds))
    return True


_isinstance = isinstance


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


_set_fusion_strategy = set_fusion_strategy


def enable_onednn_fusion(enabled: bool) -> None:
    """Do nothing, because nothing is compiled."""


def onednn_fusion_enabled() -> bool:
    """Return False, because nothing is compiled."""
    return False


def run_frozen_optimizations(
    mod: Any, optimize_numerics: bool = True, preserved_methods: list[str] | None = None
) -> None:
    """Do nothing, because nothing is compiled."""


export_opnames = _refuse("export_opnames")

try:
    _installed: Any = importlib.import_module("candelabra.jit")
except ImportError:  # candelabra-compile is not installed
    _installed = None
else:
    globals().update({name: getattr(_installed, name) for name in _installed.__all__})
    _script_if_tracing = script_if_tracing
