"""The container types: how each is flattened, rebuilt and named in files."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from candelabra import _C

from .keys import GetAttrKey, KeyEntry

Context = Any
PyTree = Any
FlattenFn = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn = Callable[[Iterable[Any], Context], PyTree]
#: What JSON can hold.
DumpableContext = Any
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]
FlattenWithKeysFn = Callable[[PyTree], tuple[list[tuple[KeyEntry, Any]], Any]]

NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"


class NodeDef(NamedTuple):
    """How a container type is flattened and rebuilt."""

    type: Any
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: FlattenWithKeysFn | None


class SerializeNodeDef(NamedTuple):
    """How a container type and its context are written to JSON."""

    typ: Any
    serialized_type_name: str
    to_dumpable_context: ToDumpableContextFn | None
    from_dumpable_context: FromDumpableContextFn | None


_LOCK = threading.RLock()
SUPPORTED_NODES: dict[Any, NodeDef] = {}
SUPPORTED_SERIALIZED_TYPES: dict[Any, SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
CONSTANT_NODES: set[type] = set()


@dataclasses.dataclass(frozen=True, slots=True)
class ConstantNode:
    """The context of a node without leaves: the object itself."""

    value: Any


def define(
    cls: Any,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: FlattenWithKeysFn | None = None,
) -> None:
    """Register a container type, or replace its registration with a warning; the parameters are
    those of `register_pytree_node`.
    """
    with _LOCK:
        if cls in SUPPORTED_NODES:
            _C.warn(f"{cls} is already registered as pytree node. Overwriting the previous registration.")
        if (to_dumpable_context is None) != (from_dumpable_context is None):
            raise ValueError(
                f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered."
            )
        SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
        name = NO_SERIALIZED_TYPE_NAME_FOUND if serialized_type_name is None else serialized_type_name
        SUPPORTED_SERIALIZED_TYPES[cls] = SerializeNodeDef(cls, name, to_dumpable_context, from_dumpable_context)
        SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def forget(cls: Any) -> None:
    """Undo a registration.

    Raises
    ------
    KeyError
        If the type is not registered.
    """
    with _LOCK:
        del SUPPORTED_NODES[cls]
        name = SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name
        # All types without a name have an entry in common.
        if SERIALIZED_TYPE_TO_PYTHON_TYPE.get(name) is cls:
            del SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
        CONSTANT_NODES.discard(cls)


def register_pytree_node(
    cls: Any,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: FlattenWithKeysFn | None = None,
) -> None:
    """Register a type whose objects are containers.

    Parameters
    ----------
    cls
        The type. Types derived from it are not registered with it.
    flatten_fn
        Takes an object; returns a list of its children, and a context, which is what else is needed
        to rebuild it. Contexts are compared with ``==``.
    unflatten_fn
        Takes the children and the context; returns an object.
    serialized_type_name
        The name of the type in the result of `treespec_dumps`.
    to_dumpable_context, from_dumpable_context
        Convert the context to something that JSON can hold, and back.
    flatten_with_keys_fn
        Like `flatten_fn`, with a list of pairs of key and child; the functions whose names end in
        ``with_path`` need it.

    Raises
    ------
    ValueError
        If the type is registered already, or only one of the conversions is given.

    Examples
    --------
    >>> from candelabra import pytree
    >>> class Pair:
    ...     def __init__(self, first, second):
    ...         self.first, self.second = first, second
    >>> pytree.register_pytree_node(Pair, lambda p: ([p.first, p.second], None), lambda v, _: Pair(*v))
    >>> pytree.tree_leaves([Pair(1, 2), 3])
    [1, 2, 3]
    """
    with _LOCK:
        if cls in SUPPORTED_NODES:
            raise ValueError(f"{cls} is already registered as pytree node.")
        define(
            cls, flatten_fn, unflatten_fn, serialized_type_name=serialized_type_name, to_dumpable_context=to_dumpable_context,
            from_dumpable_context=from_dumpable_context, flatten_with_keys_fn=flatten_with_keys_fn,
        )  # fmt: skip


def _field_names(cls: Any, field_names: list[str] | None, dropped: list[str]) -> list[str]:
    if not dataclasses.is_dataclass(cls):
        if field_names is None:
            raise ValueError(
                f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a dataclass."
            )
        return field_names
    fields = [field.name for field in dataclasses.fields(cls) if field.init]
    if field_names is None:
        return fields
    expected = set(fields) - set(dropped)
    message = ""
    if missing := expected - set(field_names):
        message += (
            f"Missing fields in `field_names`: {missing}. If you want to include these fields in the pytree, please add them to "
            "`field_names`, otherwise please add them to `drop_field_names`.\n"
        )
    if unexpected := set(field_names) - expected:
        message += f"Unexpected fields in `field_names`: {unexpected}. Please remove these fields, or add them to `drop_field_names`.\n"
    if message:
        raise ValueError(f"field_names does not include all dataclass fields.\n{message}")
    return field_names


def register_dataclass(
    cls: Any,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Register a dataclass, or a class that is made by passing its fields by keyword.

    Fields that are None are part of the structure, not leaves.

    Parameters
    ----------
    cls
        The class.
    field_names
        The fields that are children; those of a dataclass by default.
    drop_field_names
        Fields of a dataclass that `field_names` leaves out.
    serialized_type_name
        The name of the class in the result of `treespec_dumps`.

    Raises
    ------
    ValueError
        If `field_names` are needed, or do not match the fields.

    Examples
    --------
    >>> import dataclasses
    >>> from candelabra import pytree
    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: int
    ...     y: int
    >>> pytree.register_dataclass(Point)
    >>> pytree.tree_map(lambda value: value + 1, Point(1, 2)).y
    3
    """
    names = _field_names(cls, field_names, drop_field_names or [])

    def flatten(obj: Any) -> tuple[list[Any], Context]:
        values = {name: getattr(obj, name) for name in names}
        given = [name for name in names if values[name] is not None]
        return [values[name] for name in given], [given, [name for name in names if values[name] is None]]

    def unflatten(values: Iterable[Any], context: Context) -> Any:
        given, absent = context
        return cls(**dict(zip(given, values, strict=True)), **dict.fromkeys(absent))

    def flatten_with_keys(obj: Any) -> tuple[list[tuple[KeyEntry, Any]], Context]:
        values, context = flatten(obj)
        return [(GetAttrKey(name), value) for name, value in zip(context[0], values, strict=True)], context

    define(cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=flatten_with_keys)


def register_constant(cls: Any) -> None:
    """Register a type as a container without children: its objects are part of the structure.

    Parameters
    ----------
    cls
        A type with its own ``__eq__`` and ``__hash__``.

    Raises
    ------
    TypeError
        If it has none.
    """
    if cls.__eq__ is object.__eq__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` implementation.")
    if cls.__hash__ is None:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__hash__` implementation.")

    def flatten(obj: Any) -> tuple[list[Any], Context]:
        return [], ConstantNode(obj)

    with _LOCK:
        define(cls, flatten, lambda _, context: context.value, flatten_with_keys_fn=flatten)
        CONSTANT_NODES.add(cls)


def is_constant_class(cls: Any) -> bool:
    """Return whether a type was registered with `register_constant`."""
    return isinstance(cls, type) and cls in CONSTANT_NODES
