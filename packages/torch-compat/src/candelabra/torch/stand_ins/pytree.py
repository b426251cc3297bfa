"""``torch.utils._pytree``: PyTorch's private and deprecated names; `candelabra.pytree` has the
rest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from candelabra import _C
from candelabra.pytree import containers, named_tuples, registry, serialization, specs, traversal
from candelabra.pytree.mapping import tree_map_

__all__ = [
    "DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL", "EnumEncoder", "FlattenFunc", "FlattenWithKeysFunc", "NO_SERIALIZED_TYPE_NAME_FOUND",
    "UnflattenFunc", "_LEAF_SPEC", "_broadcast_to_and_flatten", "_cxx_pytree_dynamo_traceable", "_cxx_pytree_exists",
    "_cxx_pytree_imported", "_deregister_pytree_node", "_dict_flatten", "_dict_flatten_with_keys", "_dict_unflatten",
    "_generate_key_paths", "_get_node_type", "_is_constant_holder", "_is_leaf", "_is_namedtuple_instance", "_list_flatten",
    "_list_flatten_with_keys", "_list_unflatten", "_namedtuple_flatten", "_namedtuple_unflatten", "_odict_flatten", "_odict_unflatten",
    "_ordereddict_flatten", "_ordereddict_unflatten", "_private_register_pytree_node", "_register_namedtuple", "_register_pytree_node",
    "_retrieve_constant", "_tuple_flatten", "_tuple_flatten_with_keys", "_tuple_unflatten", "enum_object_hook", "pytree_to_str",
    "str_to_pytree",
]  # fmt: skip

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = serialization.PROTOCOL
NO_SERIALIZED_TYPE_NAME_FOUND = registry.NO_SERIALIZED_TYPE_NAME_FOUND
EnumEncoder, enum_object_hook = serialization.EnumEncoder, serialization.enum_object_hook
FlattenFunc, UnflattenFunc = registry.FlattenFn, registry.UnflattenFn
FlattenWithKeysFunc = registry.FlattenWithKeysFn
_LEAF_SPEC = specs.LEAF
_get_node_type = specs.node_type
_generate_key_paths = traversal.paths_of
_private_register_pytree_node = registry.define
_deregister_pytree_node = registry.forget
_register_namedtuple = containers.register_namedtuple
#: There is one implementation of pytrees, in Python.
_cxx_pytree_exists = _cxx_pytree_imported = _cxx_pytree_dynamo_traceable = False


def _functions_of(kind: Any) -> tuple[Any, Any, Any]:
    node = registry.SUPPORTED_NODES[kind]
    return node.flatten_fn, node.unflatten_fn, node.flatten_with_keys_fn


_tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys = _functions_of(tuple)
_list_flatten, _list_unflatten, _list_flatten_with_keys = _functions_of(list)
_dict_flatten, _dict_unflatten, _dict_flatten_with_keys = _functions_of(dict)
_ordereddict_flatten, _ordereddict_unflatten, _ = _functions_of(containers.OrderedDict)
_odict_flatten, _odict_unflatten = _ordereddict_flatten, _ordereddict_unflatten
_namedtuple_flatten, _namedtuple_unflatten = containers.flatten_namedtuple, containers.unflatten_namedtuple


def _register_pytree_node(
    cls: Any,
    flatten_fn: registry.FlattenFn,
    unflatten_fn: registry.UnflattenFn,
    to_str_fn: Any = None,
    maybe_from_str_fn: Any = None,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: registry.ToDumpableContextFn | None = None,
    from_dumpable_context: registry.FromDumpableContextFn | None = None,
    flatten_with_keys_fn: registry.FlattenWithKeysFn | None = None,
) -> None:
    """Register a container type, also one that is registered already; deprecated."""
    _C.warn(
        "`torch.utils._pytree._register_pytree_node` is deprecated. Please use `torch.utils._pytree.register_pytree_node` instead.",
        FutureWarning,
    )
    if to_str_fn is not None or maybe_from_str_fn is not None:
        _C.warn(
            "`to_str_fn` and `maybe_from_str_fn` is deprecated. Please use `to_dumpable_context` and `from_dumpable_context` instead.",
            FutureWarning,
        )
    registry.define(
        cls, flatten_fn, unflatten_fn, serialized_type_name=serialized_type_name, to_dumpable_context=to_dumpable_context,
        from_dumpable_context=from_dumpable_context, flatten_with_keys_fn=flatten_with_keys_fn,
    )  # fmt: skip


def _renamed(old: str, new: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(new)
    def deprecated(*arguments: Any, **keywords: Any) -> Any:
        _C.warn(
            f"`torch.utils._pytree.{old}` is deprecated. Please use `torch.utils._pytree.{new.__name__}` instead.",
            FutureWarning,
        )
        return new(*arguments, **keywords)

    deprecated.__name__ = deprecated.__qualname__ = old
    return deprecated


_is_leaf = _renamed("_is_leaf", traversal.tree_is_leaf)
_is_namedtuple_instance = _renamed("_is_namedtuple_instance", named_tuples.is_namedtuple_instance)
pytree_to_str = _renamed("pytree_to_str", serialization.treespec_dumps)
str_to_pytree = _renamed("str_to_pytree", serialization.treespec_loads)


def _is_constant_holder(spec: specs.TreeSpec) -> bool:
    """Return whether a structure is that of an object whose type is a registered constant."""
    return isinstance(spec.context, registry.ConstantNode)


def _retrieve_constant(spec: specs.TreeSpec) -> Any:
    """Return the object whose type is a registered constant."""
    if not _is_constant_holder(spec):
        raise AssertionError("spec does not correspond to a registered constant pytree")
    return spec.unflatten([])


def _broadcast_to_and_flatten(tree: Any, treespec: specs.TreeSpec, is_leaf: traversal.IsLeaf = None) -> Any:
    """Return one entry of `tree` per leaf of a structure that it is a prefix of, or None."""
    found: list[Any] = []

    def repeat(entry: Any, part: Any) -> None:
        found.extend([entry] * traversal.tree_structure(part, is_leaf).num_leaves)

    try:
        tree_map_(repeat, tree, treespec.unflatten([0] * treespec.num_leaves), is_leaf=is_leaf)
    except ValueError:
        return None
    return found
