"""Structures of nested containers without their leaves."""

from __future__ import annotations

import dataclasses
from collections import defaultdict, deque, namedtuple
from collections.abc import Iterable, Mapping
from typing import Any

from candelabra import _C

from .containers import BUILTIN_TYPES, STANDARD_DICT_TYPES
from .named_tuples import is_namedtuple_class
from .registry import SUPPORTED_NODES, ConstantNode, Context, PyTree


def node_type(tree: PyTree) -> Any:
    """Return the type under which a container is registered: for all named tuples, the function
    `namedtuple`.
    """
    kind = type(tree)
    return namedtuple if is_namedtuple_class(kind) else kind


@dataclasses.dataclass(init=False, frozen=True, eq=False, repr=False, slots=True)
class TreeSpec:
    """The structure of a nested container.

    Parameters
    ----------
    type
        The registered type of the outermost container; None for a leaf.
    context
        What its `flatten_fn` returned besides the children.
    children_specs
        The structures of its children.

    Examples
    --------
    >>> from candelabra import pytree
    >>> spec = pytree.tree_structure({"a": 1, "b": (2, 3)})
    >>> spec.num_leaves, spec.num_nodes
    (3, 5)
    >>> spec.unflatten("xyz")
    {'a': 'x', 'b': ('y', 'z')}
    """

    type: Any
    _context: Context
    _children: list[TreeSpec]
    #: The number of nodes, leaves included.
    num_nodes: int = dataclasses.field(init=False)
    num_leaves: int = dataclasses.field(init=False)
    num_children: int = dataclasses.field(init=False)

    def __init__(self, type: Any, context: Context, children_specs: list[Any]) -> None:
        if type is None and (context is not None or children_specs):
            raise AssertionError("leaf node should not have a context or children")
        nodes, leaves = 1, 1 if type is None else 0
        for child in children_specs:
            nodes += child.num_nodes
            leaves += child.num_leaves
        put = object.__setattr__
        put(self, "type", type)
        put(self, "_context", context)
        put(self, "_children", children_specs)
        put(self, "num_nodes", nodes)
        put(self, "num_leaves", leaves)
        put(self, "num_children", len(children_specs))

    @property
    def context(self) -> Context:
        """What the outermost container's `flatten_fn` returned besides the children."""
        return self._context

    @property
    def children_specs(self) -> list[Any]:
        """The structures of the children; deprecated, use `children`."""
        _C.warn(
            "`treespec.children_specs` is deprecated. Use `treespec.child(index)` to access a single child, or `treespec.children()` to "
            "get all children.",
            FutureWarning,
        )
        return self._children

    def children(self) -> list[Any]:
        """Return the structures of the children."""
        return self._children.copy()

    def child(self, index: int) -> Any:
        """Return the structure of one child."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Return whether this is the structure of a leaf."""
        return self.num_nodes == 1 and self.num_leaves == 1

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """Rebuild a container.

        Raises
        ------
        ValueError
            If there are too few leaves, or too many.
        """
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that holds "
                f"{self.num_leaves} items ({self})."
            )
        return _build(self, iter(leaves))

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """Return the parts of a container that are where this structure has its leaves.

        Raises
        ------
        ValueError
            If the structure is not a prefix of the container's.
        """
        parts: list[PyTree] = []
        _take_apart(self, tree, parts)
        return parts

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        indent += 2
        inner = (",\n" + " " * indent).join(child.__repr__(indent) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self._context}, [{inner}])"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other.__class__ is not self.__class__:
            return NotImplemented
        assert isinstance(other, TreeSpec)
        return (
            str(self.type) == str(other.type) and self._context == other._context and self._children == other._children
        )

    def __hash__(self) -> int:
        context: Any = None
        if self.type is defaultdict:
            context = (self._context[0], tuple(self._context[1]))
        elif self.type in STANDARD_DICT_TYPES:
            context = tuple(self._context)
        elif self.type in BUILTIN_TYPES:
            context = self._context
        elif isinstance(self._context, ConstantNode):
            context = self._context.value
        # Other contexts need not be hashable.
        return hash((self.type, context, tuple(self._children)))


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The structure of a leaf; deprecated, see `treespec_leaf` and `TreeSpec.is_leaf`."""

    __slots__ = ()

    def __new__(cls) -> LeafSpec:
        _C.warn(
            "`isinstance(treespec, LeafSpec)` is deprecated, use `isinstance(treespec, TreeSpec) and treespec.is_leaf()` instead.",
            FutureWarning,
        )
        return object.__new__(cls)

    def __init__(self) -> None:
        super().__init__(None, None, [])

    def __reduce__(self) -> Any:
        return treespec_leaf, ()


def _one_leaf() -> LeafSpec:
    made = object.__new__(LeafSpec)
    LeafSpec.__init__(made)
    return made


#: All leaves have this structure.
LEAF = _one_leaf()


def treespec_leaf() -> LeafSpec:
    """Return the structure of a leaf."""
    return LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """Return the structure of a tuple, from those of its entries."""
    children = list(iterable)
    if not all(isinstance(child, TreeSpec) for child in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(
    mapping: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (), /, **kwargs: TreeSpec
) -> TreeSpec:
    """Return the structure of a dict, from those of its values."""
    entries = dict(mapping, **kwargs)
    if not all(isinstance(child, TreeSpec) for child in entries.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {entries!r}.")
    return TreeSpec(dict, list(entries), list(entries.values()))


class _Asterisk:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """Return a structure as the text of its container, with an asterisk for each leaf.

    Examples
    --------
    >>> from candelabra import pytree
    >>> pytree.treespec_pprint(pytree.tree_structure({"a": 1, "b": (2, 3)}))
    "{'a': *, 'b': (*, *)}"
    """
    return repr(treespec.unflatten([_Asterisk()] * treespec.num_leaves))


def _build(spec: TreeSpec, leaves: Any) -> PyTree:
    if spec.type is None:
        return next(leaves)
    children = [_build(child, leaves) for child in spec._children]
    return SUPPORTED_NODES[spec.type].unflatten_fn(children, spec._context)


def _take_apart(spec: TreeSpec, tree: PyTree, parts: list[PyTree]) -> None:
    if spec.is_leaf():
        parts.append(tree)
        return
    kind = node_type(tree)
    both_dicts = spec.type in STANDARD_DICT_TYPES and kind in STANDARD_DICT_TYPES
    if kind != spec.type and not both_dicts:
        label = "Node type mismatch" if spec.type in BUILTIN_TYPES else "Type mismatch"
        raise ValueError(f"{label}; expected {spec.type!r}, but got {kind!r}.")
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != spec.num_children:
        raise ValueError(f"Node arity mismatch; expected {spec.num_children}, but got {len(children)}.")
    if both_dicts:
        keys = spec._context[1] if spec.type is defaultdict else spec._context
        children = _values_at(tree, keys)
    elif kind is not deque and context != spec._context:
        # Deques match whatever their `maxlen`.
        if spec.type not in BUILTIN_TYPES:
            raise ValueError(f"Node context mismatch for custom node type {spec.type!r}.")
        raise ValueError(
            f"Node context mismatch for node type {spec.type!r}; expected {spec._context!r}, but got {context!r}."
        )
    for child_spec, child in zip(spec._children, children, strict=True):
        _take_apart(child_spec, child, parts)


def _values_at(tree: Any, keys: list[Any]) -> list[Any]:
    if set(tree) != set(keys):
        message = ""
        if missing := set(keys) - set(tree):
            message += f"; missing key(s): {missing}"
        if extra := set(tree) - set(keys):
            message += f"; extra key(s): {extra}"
        raise ValueError(f"Node keys mismatch{message}.")
    return [tree[key] for key in keys]
