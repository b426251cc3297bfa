"""Names of nodes, and of the functions and types that generated code refers to."""

from __future__ import annotations

import builtins
import functools
import keyword
import re
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import candelabra
import candelabra.nn as nn
from candelabra import pytree

from . import flatten_spec

__all__ = [
    "CUSTOM_BUILTINS",
    "CustomBuiltin",
    "Namespace",
    "is_ours",
    "public_name",
    "qualified_name",
    "snake_case",
    "type_text",
]


class CustomBuiltin(NamedTuple):
    """A name that generated code uses without a prefix."""

    import_str: str
    obj: Any


#: Names in the repr of constants, and of modules that all generated code sees. No node has one.
CUSTOM_BUILTINS: dict[str, CustomBuiltin] = {
    "inf": CustomBuiltin("from math import inf", float("inf")),
    "nan": CustomBuiltin("from math import nan", float("nan")),
    "NoneType": CustomBuiltin("NoneType = type(None)", type(None)),
    "candelabra": CustomBuiltin("import candelabra", candelabra),
    "device": CustomBuiltin("from candelabra import device", candelabra.device),
    "fx_pytree": CustomBuiltin("import candelabra.fx.flatten_spec as fx_pytree", flatten_spec),
    "pytree": CustomBuiltin("import candelabra.pytree as pytree", pytree),
}

#: Namespaces with functions whose module does not name them.
_NAMESPACES: tuple[tuple[str, Any], ...] = (
    ("candelabra.nn.functional", nn.functional),
    ("candelabra.linalg", candelabra.linalg),
    ("candelabra.special", candelabra.special),
    ("candelabra.fft", candelabra.fft),
    ("candelabra.Tensor", candelabra.Tensor),
    ("candelabra.ops", candelabra.ops),
)


def snake_case(name: str) -> str:
    """Return a name in CamelCase in lower case with underscores.

    Examples
    --------
    >>> from candelabra.fx.naming import snake_case
    >>> snake_case("BatchNorm")
    'batch_norm'
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def is_ours(obj: Any) -> bool:
    """Return whether an object is of Candelabra, so that generated code can name it from its
    root.
    """
    module = getattr(obj, "__module__", None)
    if module is None and isinstance(obj, types.MethodDescriptorType | types.WrapperDescriptorType):
        return getattr(candelabra.Tensor, obj.__name__, None) is obj
    return isinstance(module, str) and (module == "candelabra" or module.startswith("candelabra."))


def public_name(func: Any) -> str | None:
    """Return the dotted name of a function or class of Candelabra; None if it has none."""
    return _name_of_ours(func) if is_ours(func) and hasattr(func, "__name__") else None


@functools.lru_cache(maxsize=4096)
def _name_of_ours(func: Any) -> str | None:
    name = getattr(func, "__qualname__", None) or func.__name__
    module = getattr(func, "__module__", None) or ""
    atoms = module.split(".")
    # The shortest path is the public one.
    for end in range(1, len(atoms) + 1):
        path = ".".join(atoms[:end])
        found = sys.modules.get(path) or _member(candelabra, path.removeprefix("candelabra."))
        if found is not None and _member(found, name) is func:
            return f"{path}.{name}"
    # Custom operators are named namespace::name.
    name = func.__name__.replace("::", ".")
    for path, namespace in _NAMESPACES:
        if _member(namespace, name) is func:
            return f"{path}.{name}"
    return None


def _member(namespace: Any, name: str) -> Any:
    """Return an attribute by its dotted path, or None."""
    for atom in name.split("."):
        namespace = getattr(namespace, atom, None)
    return namespace


def qualified_name(func: Callable[..., Any]) -> str:
    """Return the dotted name of a function or class, by which generated code finds it.

    Examples
    --------
    >>> import operator
    >>> from candelabra import nn
    >>> from candelabra.fx.naming import qualified_name
    >>> qualified_name(nn.functional.relu), qualified_name(operator.add), qualified_name(len)
    ('candelabra.nn.functional.relu', '_operator.add', 'len')
    """
    name = getattr(func, "__name__", None) or type(func).__name__
    if getattr(builtins, name, None) is func:
        return name
    found = public_name(func)
    if found is not None:
        return found
    name = getattr(func, "__qualname__", name)
    if "<locals>" in name or "<lambda>" in name:
        name = func.__name__
    return f"{getattr(func, '__module__', None) or '__main__'}.{name}"


def type_text(obj: Any) -> str:
    """Return the text of a type annotation."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        return obj.__qualname__ if obj.__module__ == "builtins" else f"{obj.__module__}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    return obj.__name__ if isinstance(obj, types.FunctionType) else repr(obj)


class Namespace:
    """Names that are each of one object: valid identifiers, none of them a keyword or a builtin."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._names: dict[Any, str] = {}
        self._counts: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """Return the name of an object, or a new one that resembles `candidate`.

        Examples
        --------
        >>> from candelabra.fx.naming import Namespace
        >>> names = Namespace()
        >>> names.create_name("layer.0", None), names.create_name("layer.0", None), names.create_name("len", None)
        ('layer_0', 'layer_1', 'len_1')
        """
        if obj is not None and obj in self._names:
            return self._names[obj]
        candidate = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        numbered = re.fullmatch(r"(.*)_(\d+)", candidate)
        base, number = (numbered[1], int(numbered[2])) if numbered else (candidate, None)
        if candidate in self._used or self._is_taken(candidate, obj):
            number = max(self._counts.get(base, 0), number or 0)
            while candidate in self._used or self._is_taken(candidate, obj):
                number += 1
                candidate = f"{base}_{number}"
            self._counts[base] = number
        self._used.add(candidate)
        if obj is not None:
            self._names[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Give an object a name that is in use already."""
        self._names[obj] = name

    def rename_object(self, obj: Any, name: str) -> None:
        """Give an object another name, which is free."""
        self._names[obj] = name
        self._used.add(name)

    def _is_taken(self, name: str, obj: Any) -> bool:
        if keyword.iskeyword(name):
            return True
        if name in vars(builtins):
            return vars(builtins)[name] is not obj
        if name in CUSTOM_BUILTINS:
            return CUSTOM_BUILTINS[name].obj is not obj
        return False
