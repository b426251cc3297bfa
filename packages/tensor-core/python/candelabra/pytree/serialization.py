"""Structures of nested containers as JSON, in PyTorch's format."""

from __future__ import annotations

import functools
import importlib
import json
from enum import Enum
from typing import Any

from .registry import (
    NO_SERIALIZED_TYPE_NAME_FOUND,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    SUPPORTED_SERIALIZED_TYPES,
    DumpableContext,
)
from .specs import LEAF, TreeSpec

PROTOCOL = 1


class EnumEncoder(json.JSONEncoder):
    """Writes members of enumerations as their class and name."""

    def default(self, o: object) -> Any:
        """Return what JSON can hold for a member of an enumeration."""
        if isinstance(o, Enum):
            kind = type(o)
            return {"__enum__": True, "fqn": f"{kind.__module__}:{kind.__qualname__}", "name": o.name}
        return super().default(o)


def enum_object_hook(obj: dict[str, Any]) -> Any:
    """Return the member of an enumeration that `EnumEncoder` wrote; other objects as they are."""
    if "__enum__" not in obj:
        return obj
    module, _, name = obj["fqn"].partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found[obj["name"]]


def _to_json(spec: TreeSpec) -> DumpableContext:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    known = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if known is None:
        raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
    if known.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your _register_pytree_node call with a "
            "`serialized_type_name` kwarg."
        )
    if known.to_dumpable_context is not None:
        context = known.to_dumpable_context(spec._context)
    else:
        try:
            context = json.dumps(spec._context, cls=EnumEncoder)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register a custom serializer using "
                "_register_pytree_node."
            ) from error
    return {
        "type": known.serialized_type_name,
        "context": context,
        "children_spec": [_to_json(child) for child in spec._children],
    }


def _from_json(schema: DumpableContext) -> TreeSpec:
    name, context, children = schema["type"], schema["context"], schema["children_spec"]
    if name is None and context is None and not children:
        return LEAF
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    load = SUPPORTED_SERIALIZED_TYPES[kind].from_dumpable_context
    if load is not None:
        context = load(context)
    else:
        try:
            context = json.loads(context, object_hook=enum_object_hook)
        except TypeError as error:
            raise TypeError(
                "Unable to deserialize context. Please make the context json load-able, or register a custom serializer using "
                "_register_pytree_node."
            ) from error
    return TreeSpec(kind, context, [_from_json(child) for child in children])


def _check_protocol(protocol: int) -> None:
    if protocol != PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: {[PROTOCOL]}")


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Return a structure as JSON.

    Parameters
    ----------
    treespec
        The structure.
    protocol
        The version of the format: 1.

    Raises
    ------
    TypeError
        If `treespec` is no structure, or JSON cannot hold a context.
    NotImplementedError
        If a type has no `serialized_type_name`.
    ValueError
        If there is no such version.

    Examples
    --------
    >>> from candelabra import pytree
    >>> spec = pytree.tree_structure((1, [2]))
    >>> pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    True
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    protocol = PROTOCOL if protocol is None else protocol
    _check_protocol(protocol)
    return json.dumps((protocol, _to_json(treespec)), cls=EnumEncoder)


@functools.lru_cache
def treespec_loads(serialized: str) -> TreeSpec:
    """Return the structure that `treespec_dumps` wrote.

    Raises
    ------
    NotImplementedError
        If a type is not registered in this process.
    ValueError
        If it was written in another version of the format.
    """
    protocol, schema = json.loads(serialized)
    _check_protocol(protocol)
    return _from_json(schema)
