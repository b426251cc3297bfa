"""Nested containers (pytrees): flatten them to a list of leaves, map over them, rebuild them.

The names and the behaviour are those of ``torch.utils._pytree``.
"""

from __future__ import annotations

from .containers import BUILTIN_TYPES, STANDARD_DICT_TYPES
from .keys import GetAttrKey, KeyEntry, KeyPath, MappingKey, SequenceKey, key_get, keystr
from .mapping import (
    map_only,
    tree_all,
    tree_all_only,
    tree_any,
    tree_any_only,
    tree_map,
    tree_map_,
    tree_map_only,
    tree_map_only_,
    tree_map_with_path,
)
from .named_tuples import (
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
)
from .registry import (
    CONSTANT_NODES,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES,
    ConstantNode,
    Context,
    DumpableContext,
    FlattenFn,
    FlattenWithKeysFn,
    FromDumpableContextFn,
    NodeDef,
    PyTree,
    ToDumpableContextFn,
    UnflattenFn,
    is_constant_class,
    register_constant,
    register_dataclass,
    register_pytree_node,
)
from .serialization import treespec_dumps, treespec_loads
from .specs import LeafSpec, PyTreeSpec, TreeSpec, treespec_dict, treespec_leaf, treespec_pprint, treespec_tuple
from .traversal import (
    arg_tree_leaves,
    tree_flatten,
    tree_flatten_with_path,
    tree_is_leaf,
    tree_iter,
    tree_leaves,
    tree_leaves_with_path,
    tree_structure,
    tree_unflatten,
)

__all__ = [
    "BUILTIN_TYPES", "CONSTANT_NODES", "SERIALIZED_TYPE_TO_PYTHON_TYPE", "STANDARD_DICT_TYPES", "SUPPORTED_NODES",
    "SUPPORTED_SERIALIZED_TYPES", "ConstantNode", "Context", "DumpableContext", "FlattenFn", "FlattenWithKeysFn", "FromDumpableContextFn",
    "GetAttrKey", "KeyEntry", "KeyPath", "LeafSpec", "MappingKey", "NodeDef", "PyTree", "PyTreeSpec", "SequenceKey", "ToDumpableContextFn",
    "TreeSpec", "UnflattenFn", "arg_tree_leaves", "is_constant_class", "is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance",
    "is_structseq", "is_structseq_class", "is_structseq_instance", "key_get", "keystr", "map_only", "register_constant",
    "register_dataclass", "register_pytree_node", "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten",
    "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_",
    "tree_map_only", "tree_map_only_", "tree_map_with_path", "tree_structure", "tree_unflatten", "treespec_dict", "treespec_dumps",
    "treespec_leaf", "treespec_loads", "treespec_pprint", "treespec_tuple",
]  # fmt: skip
