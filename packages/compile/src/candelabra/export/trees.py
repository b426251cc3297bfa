"""Forms of arguments and results as plain data, and names of arguments."""

from __future__ import annotations

import collections
import inspect
from collections.abc import Callable
from typing import Any

from candelabra import pytree
from candelabra.serialization import FileError

_MOST_DEPTH = 64
_MOST_LEAVES = 1 << 20


def described(spec: Any) -> Any:
    """Return the form of a tree as plain data.

    Raises
    ------
    ValueError
        If it has containers that a file cannot name.
    """
    if spec.is_leaf():
        return None
    children = [described(child) for child in spec.children()]
    kind, context = spec.type, spec.context
    if kind in (tuple, list):
        return [kind.__name__, children]
    if kind in (dict, collections.OrderedDict):
        if not all(type(key) in (str, int) for key in context):
            raise ValueError("a file holds dicts whose keys are of type str or int")
        return [kind.__name__, children, list(context)]
    if isinstance(context, type) and issubclass(context, tuple):
        return ["namedtuple", children, context.__name__, list(context._fields)]  # type: ignore[attr-defined]
    raise ValueError(
        f"a file holds arguments and results of tuples, lists and dicts, not of {getattr(kind, '__qualname__', kind)}"
    )


def restored(form: Any, depth: int = 0) -> Any:
    """Return the form of a tree that `described` has described; checks it completely."""
    if form is None:
        return pytree.treespec_leaf()
    if depth > _MOST_DEPTH:
        raise FileError("containers are nested too deeply")
    if type(form) is not list or len(form) < 2 or type(form[1]) is not list or len(form[1]) > _MOST_LEAVES:
        raise FileError("the form of the arguments makes no sense")
    kind, children = form[0], [restored(child, depth + 1) for child in form[1]]
    if kind in ("tuple", "list") and len(form) == 2:
        return pytree.PyTreeSpec(tuple if kind == "tuple" else list, None, children)
    if kind in ("dict", "OrderedDict") and len(form) == 3:
        keys = form[2]
        if type(keys) is list and len(keys) == len(children) and all(type(key) in (str, int) for key in keys):
            return pytree.PyTreeSpec(dict if kind == "dict" else collections.OrderedDict, keys, children)
    if kind == "namedtuple" and len(form) == 4 and len(children) <= 256:
        return pytree.PyTreeSpec(collections.namedtuple, _named_tuple(form[2], form[3], len(children)), children)
    raise FileError("the form of the arguments makes no sense")


def _named_tuple(name: Any, fields: Any, count: int) -> Any:
    texts = [name, *fields] if type(fields) is list else []
    if len(texts) != count + 1 or any(type(text) is not str or not text.isascii() or len(text) > 100 for text in texts):
        raise FileError("a named tuple without names")
    return collections.namedtuple(name, fields)  # type: ignore[misc]


def names_of_arguments(signature: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    """Return the names of the arguments that are given by position."""
    try:
        parameters = list(inspect.signature(signature).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    named = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    rest = next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), "arg")
    return [named[k] if k < len(named) else f"{rest}_{k - len(named)}" for k in range(len(args))]
