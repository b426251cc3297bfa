"""What tracing changes while it lasts: wrapped functions in the globals of programs, and how
modules are called and give out their parameters.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import candelabra.nn as nn
from candelabra import Tensor

from .node import map_aggregate
from .proxy import Proxy

__all__ = ["Patches", "is_fx_tracing", "tracing_modules", "wrap"]

#: Tracing changes classes and globals, which all threads see: one thread traces at a time.
_lock = threading.RLock()
#: Functions that `wrap` named: globals of modules with the name, by the identity of the globals.
_wrapped: dict[tuple[int, str], dict[str, Any]] = {}
#: In globals of generated code: the names that it has wrapped. `_wrapped` would keep them alive.
WRAPPED_HERE = "__candelabra_fx_wrapped__"
_depth = 0
_ABSENT = object()


def is_fx_tracing() -> bool:
    """Return whether a program is being traced.

    Examples
    --------
    >>> from candelabra.fx.patching import is_fx_tracing
    >>> is_fx_tracing()
    False
    """
    return _depth > 0


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Have the calls of a function of this module traced as they are, rather than what it does.

    Call it at the top level of a module, with a function, a name, or as a decorator. The name may
    be that of a builtin, such as ``len``.

    Raises
    ------
    NotImplementedError
        If it is called within a function.
    RuntimeError
        If it is given neither a function nor a name.

    Examples
    --------
    >>> from candelabra import fx
    >>> @fx.wrap
    ... def halve(x):
    ...     return x / 2 if x > 1 else x
    >>> [node.name for node in fx.symbolic_trace(lambda x: halve(x) + 1).graph.nodes]
    ['x', 'halve', 'add', 'output']
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name.__name__ if callable(fn_or_name) else fn_or_name
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    names = frame.f_globals
    if WRAPPED_HERE in names:
        names[WRAPPED_HERE].add(name)
    else:
        _wrapped[id(names), name] = names
    return fn_or_name


def find_proxy(*arguments: Any) -> Proxy | None:
    """Return the first proxy in some arguments, or None."""
    found: list[Proxy] = []

    def note(a: Any) -> Any:
        if isinstance(a, Proxy):
            found.append(a)
        return a

    map_aggregate(arguments, note)
    return found[0] if found else None


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose calls with proxies are nodes."""

    @functools.wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    recorded.__fx_already_patched = True  # type: ignore[attr-defined]
    return recorded


class Patches:
    """Entries of namespaces that are replaced, and restored at the end."""

    def __init__(self, function_ids: set[int]) -> None:
        #: Identities of the functions to be recorded wherever globals have them.
        self.function_ids = function_ids
        self._undo: list[tuple[dict[str, Any], str, Any]] = []
        self._visited: set[int] = set()

    def replace(self, names: dict[str, Any], name: str) -> None:
        """Replace a function in a namespace by one that records its calls."""
        before = names.get(name, _ABSENT)
        function = getattr(builtins, name, None) if before is _ABSENT else before
        if function is None or getattr(function, "__fx_already_patched", False):
            return
        self._undo.append((names, name, before))
        names[name] = _recording(function)

    def replace_wrapped(self) -> None:
        """Replace all functions that `wrap` has named."""
        for (_, name), names in _wrapped.copy().items():
            self.replace(names, name)

    def replace_in(self, names: dict[str, Any]) -> None:
        """Replace the functions of the tracer, and those that generated code has wrapped, in
        globals.
        """
        if id(names) in self._visited:
            return
        self._visited.add(id(names))
        for name in names.get(WRAPPED_HERE, ()):
            self.replace(names, name)
        for name, value in list(names.items()):
            if not name.startswith("_") and callable(value) and id(value) in self.function_ids:
                self.replace(names, name)

    def undo(self) -> None:
        """Restore what was replaced."""
        while self._undo:
            names, name, before = self._undo.pop()
            if before is _ABSENT:
                del names[name]
            else:
                names[name] = before


@contextlib.contextmanager
def tracing(patches: Patches) -> Iterator[None]:
    """Replace functions in this context, in which other threads cannot trace."""
    global _depth
    with _lock:
        _depth += 1
        try:
            patches.replace_wrapped()
            yield
        finally:
            patches.undo()
            _depth -= 1


_plain_call = nn.Module.__call__
_plain_get = nn.Module.__getattribute__
#: What modules give out that tracers may replace.
_TRACED = (Tensor, nn.Module)


def module_call(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a module as if nothing was traced."""
    return _plain_call(module, *args, **kwargs)


@contextlib.contextmanager
def tracing_modules(
    call: Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], Any], get: Callable[[str, Any], Any]
) -> Iterator[None]:
    """Pass calls of modules, and the parameters, buffers and modules that they give out, to
    functions.

    Parameters
    ----------
    call
        Takes a module and its arguments, and returns the result.
    get
        Takes the name and the value of a parameter, buffer or module, and returns what the program
        gets.
    """
    thread = threading.get_ident()
    # Set on the class, in this order, so that nested tracers restore each other's.
    before = {name: vars(nn.Module).get(name, _ABSENT) for name in ("__call__", "__getattribute__")}

    def traced_call(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != thread:
            return _plain_call(self, *args, **kwargs)
        return call(self, args, kwargs)

    def traced_get(self: nn.Module, name: str) -> Any:
        value = _plain_get(self, name)
        if not isinstance(value, _TRACED) or threading.get_ident() != thread:
            return value
        state = _plain_get(self, "__dict__")
        is_registered = (
            name in state.get("_parameters", ())
            or name in state.get("_modules", ())
            or name in state.get("_buffers", ())
        )
        return get(name, value) if is_registered else value

    nn.Module.__call__ = traced_call  # type: ignore[method-assign]
    nn.Module.__getattribute__ = traced_get  # type: ignore[method-assign]
    try:
        yield
    finally:
        for name, value in before.items():
            if value is _ABSENT:
                delattr(nn.Module, name)
            else:
                setattr(nn.Module, name, value)
