"""Registration of Python's own containers, and of the named results of operators."""

from __future__ import annotations

import importlib
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any

from candelabra import return_types
from candelabra._C import Size

from .keys import GetAttrKey, KeyEntry, MappingKey, SequenceKey
from .named_tuples import is_structseq_class
from .registry import (
    NO_SERIALIZED_TYPE_NAME_FOUND,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    SUPPORTED_SERIALIZED_TYPES,
    Context,
    DumpableContext,
    FlattenFn,
    define,
)

#: Dictionaries that match each other where their keys are the same.
STANDARD_DICT_TYPES: frozenset[Any] = frozenset({dict, OrderedDict, defaultdict})
#: Named tuples of all types are registered as the function `namedtuple`.
BUILTIN_TYPES: frozenset[Any] = frozenset({tuple, list, namedtuple, deque}) | STANDARD_DICT_TYPES


def _keyed(
    flatten: FlattenFn, keys: Callable[[list[Any], Context], Iterable[KeyEntry]]
) -> Callable[[Any], tuple[list[tuple[KeyEntry, Any]], Context]]:
    def flatten_with_keys(node: Any) -> tuple[list[tuple[KeyEntry, Any]], Context]:
        values, context = flatten(node)
        return list(zip(keys(values, context), values, strict=True)), context

    return flatten_with_keys


def _positions(values: list[Any], context: Context) -> Iterable[KeyEntry]:
    return map(SequenceKey, range(len(values)))


def _flatten_sequence(node: Any) -> tuple[list[Any], Context]:
    return list(node), None


def _flatten_dict(node: Any) -> tuple[list[Any], Context]:
    return list(node.values()), list(node)


def _flatten_defaultdict(node: Any) -> tuple[list[Any], Context]:
    return list(node.values()), [node.default_factory, list(node)]


def _flatten_deque(node: Any) -> tuple[list[Any], Context]:
    return list(node), node.maxlen


def flatten_namedtuple(node: Any) -> tuple[list[Any], Context]:
    """Return the fields of a named tuple, and its type."""
    return list(node), type(node)


def unflatten_namedtuple(values: Iterable[Any], context: Context) -> Any:
    """Return a named tuple of a type."""
    return context(*values)


def _dump_namedtuple(context: Context) -> DumpableContext:
    known = SUPPORTED_SERIALIZED_TYPES.get(context)
    if known is None or known.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {context} because we didn't register a serializated_type_name. "
            "Please register using `_register_namedtuple`."
        )
    return known.serialized_type_name


def _load_namedtuple(dumped: DumpableContext) -> Context:
    if dumped not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {dumped} because we couldn't find a serializated name."
        )
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[dumped]


def register_namedtuple(cls: Any, *, serialized_type_name: str) -> None:
    """Name a type of named tuples, so that `treespec_dumps` can write structures that contain one.

    All named tuples are containers without that.
    """
    define(cls, serialized_type_name=serialized_type_name, **_NAMEDTUPLE)


def _dump_defaultdict(context: Context) -> DumpableContext:
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def _load_defaultdict(dumped: DumpableContext) -> Context:
    expected = {"default_factory_module", "default_factory_name", "dict_context"}
    if not isinstance(dumped, dict) or set(dumped) != expected:
        raise AssertionError(f"dumpable_context must be a dict with the keys {expected}, got {dumped!r}")
    module, name = dumped["default_factory_module"], dumped["default_factory_name"]
    if not isinstance(module, str) or not isinstance(name, str):
        raise AssertionError("default_factory_module and default_factory_name must be strings")
    return [getattr(importlib.import_module(module), name), dumped["dict_context"]]


_NAMEDTUPLE: dict[str, Any] = {
    "flatten_fn": flatten_namedtuple,
    "unflatten_fn": unflatten_namedtuple,
    "to_dumpable_context": _dump_namedtuple,
    "from_dumpable_context": _load_namedtuple,
    "flatten_with_keys_fn": _keyed(flatten_namedtuple, lambda _, context: map(GetAttrKey, context._fields)),
}


def _define_sequence(cls: Any, name: str | None) -> None:
    define(
        cls, _flatten_sequence, lambda values, _: cls(values), serialized_type_name=name,
        flatten_with_keys_fn=_keyed(_flatten_sequence, _positions),
    )  # fmt: skip


def _define_dict(cls: Any, name: str) -> None:
    define(
        cls, _flatten_dict, lambda values, context: cls(zip(context, values, strict=True)), serialized_type_name=name,
        flatten_with_keys_fn=_keyed(_flatten_dict, lambda _, context: map(MappingKey, context)),
    )  # fmt: skip


_define_sequence(tuple, "builtins.tuple")
_define_sequence(list, "builtins.list")
_define_dict(dict, "builtins.dict")
define(namedtuple, serialized_type_name="collections.namedtuple", **_NAMEDTUPLE)
_define_dict(OrderedDict, "collections.OrderedDict")
define(
    defaultdict, _flatten_defaultdict, lambda values, context: defaultdict(context[0], zip(context[1], values, strict=True)),
    serialized_type_name="collections.defaultdict", to_dumpable_context=_dump_defaultdict, from_dumpable_context=_load_defaultdict,
    flatten_with_keys_fn=_keyed(_flatten_defaultdict, lambda _, context: map(MappingKey, context[1])),
)  # fmt: skip
define(
    deque, _flatten_deque, lambda values, context: deque(values, maxlen=context), serialized_type_name="collections.deque",
    flatten_with_keys_fn=_keyed(_flatten_deque, _positions),
)  # fmt: skip
# PyTorch rebuilds a Size as a tuple: mapped values need not be numbers.
define(
    Size, _flatten_sequence, lambda values, _: tuple(values), serialized_type_name="torch.Size",
    flatten_with_keys_fn=_keyed(_flatten_sequence, _positions),
)  # fmt: skip
for _result_type in {value for value in vars(return_types).values() if is_structseq_class(value)}:
    _define_sequence(_result_type, None)
