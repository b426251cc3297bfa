"""Notes that nodes get while they are made: annotations, stack traces, the meta of an original."""

from __future__ import annotations

import contextlib
import copy
import functools
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

__all__ = [
    "annotate", "annotate_fn", "format_stack", "get_current_meta", "has_preserved_node_meta", "preserve_node_meta",
    "set_current_meta", "set_stack_trace",
]  # fmt: skip

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _State(threading.local):
    meta: dict[str, Any]
    preserve: bool

    def __init__(self) -> None:
        self.meta = {}
        self.preserve = False


_state = _State()


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Give nodes that are made in this context the current meta.

    `candelabra.fx.Interpreter` sets it to that of the node that it runs.
    """
    before = _state.meta, _state.preserve
    _state.preserve = enable
    _state.meta = dict(_state.meta)
    try:
        yield
    finally:
        _state.meta, _state.preserve = before


def has_preserved_node_meta() -> bool:
    """Return whether `preserve_node_meta` is on."""
    return _state.preserve


@contextlib.contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Note the entries under ``custom`` in the meta of the nodes that are made in this context.

    Examples
    --------
    >>> from candelabra import fx
    >>> def f(x):
    ...     with fx.traceback.annotate({"stage": 1}):
    ...         return x + 1
    >>> with fx.traceback.preserve_node_meta():
    ...     graph = fx.Tracer().trace(f)
    >>> graph.find_nodes(op="call_function")[0].meta["custom"]
    {'stage': 1}
    """
    before = _state.meta
    _state.meta = {**before, "custom": {**before.get("custom", {}), **annotation_dict}}
    try:
        yield
    finally:
        _state.meta = before


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[_Function], _Function]:
    """Decorate a function whose nodes are annotated; see `annotate`."""

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return annotated  # type: ignore[return-value]

    return decorate


def set_stack_trace(stack: list[str]) -> None:
    """Set the stack trace of the nodes that are made next, if `preserve_node_meta` is on."""
    if _state.preserve and stack:
        _state.meta["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """Return the stack trace that nodes get: that of the node which runs, or that of the
    program.
    """
    if _state.preserve:
        return [_state.meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@contextlib.contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """Give nodes that are made in this context the meta of a node, if `preserve_node_meta` is
    on.
    """
    if not (_state.preserve and node.meta):
        yield
        return
    before = _state.meta
    _state.meta = node.meta.copy()
    if "custom" in before:
        _state.meta["custom"] = {**_state.meta.get("custom", {}), **before["custom"]}
    if pass_name:
        _state.meta["from_node"] = [*_state.meta.get("from_node", []), (node.name, node.target, pass_name)]
    try:
        yield
    finally:
        _state.meta = before


def get_current_meta() -> dict[str, Any]:
    """Return the meta that new nodes get."""
    return copy.copy(_state.meta)
