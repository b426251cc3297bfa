"""Type hints of Candelabra's functions and classes as objects.

Modules import the names that only their annotations use in ``if TYPE_CHECKING:`` blocks, because
the module `typing` would make the import of the package slower. `typing.get_type_hints` does not
find these names; `get_type_hints` runs the blocks first.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import inspect
import sys
import typing
from types import ModuleType
from typing import Any

__all__ = ["complete", "get_type_hints"]

_completed: set[str] = set()
#: The function of `typing`, for which programs that import torch get `get_type_hints`.
plain = typing.get_type_hints


def _blocks(module: ModuleType) -> list[ast.stmt]:
    """Return the statements of the blocks that only type checkers run."""
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError):
        # A module without a source, such as the compiled core.
        return []
    return [
        statement
        for node in tree.body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for statement in node.body
    ]


def complete(module: ModuleType) -> None:
    """Give a module the names that its ``if TYPE_CHECKING:`` blocks import, except those of
    builtins, which its functions use.
    """
    if module.__name__ in _completed:
        return
    _completed.add(module.__name__)
    statements = _blocks(module)
    for statement in statements:
        # What is imported may itself be in such a block.
        if isinstance(statement, ast.ImportFrom):
            name = "." * statement.level + (statement.module or "")
            source = importlib.util.resolve_name(name, module.__package__)
            if source.partition(".")[0] == "candelabra":
                complete(importlib.import_module(source))
    found: dict[str, Any] = {"__name__": module.__name__, "__package__": module.__package__}
    exec(compile(ast.Module(statements, []), f"<types of {module.__name__}>", "exec"), {**vars(module), **found}, found)
    for name, value in found.items():
        if not hasattr(builtins, name):
            vars(module).setdefault(name, value)


def _modules_of(obj: Any) -> set[str]:
    if isinstance(obj, type):
        return {base.__module__ for base in obj.__mro__}
    if isinstance(obj, ModuleType):
        return {obj.__name__}
    namespace = getattr(inspect.unwrap(obj) if callable(obj) else obj, "__globals__", {})
    return {namespace.get("__name__", "")}


def get_type_hints(
    obj: Any,
    globalns: dict[str, Any] | None = None,
    localns: dict[str, Any] | None = None,
    include_extras: bool = False,
) -> dict[str, Any]:
    """Return the type hints of a function, class or module, as `typing.get_type_hints` does, also
    of Candelabra's.

    Parameters
    ----------
    obj, globalns, localns, include_extras
        As in `typing.get_type_hints`.

    Raises
    ------
    NameError
        If a name of an annotation is not known.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.type_hints import get_type_hints
    >>> get_type_hints(candelabra.get_default_dtype)
    {'return': <class 'candelabra.dtype'>}
    """
    try:
        return plain(obj, globalns, localns, include_extras)
    except NameError:
        ours = {name for name in _modules_of(obj) if name.partition(".")[0] == "candelabra"} - _completed
        if not ours:
            raise
    for name in ours:
        complete(sys.modules[name])
    return get_type_hints(obj, globalns, localns, include_extras)
