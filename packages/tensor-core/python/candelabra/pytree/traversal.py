"""Flattening of nested containers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .keys import KeyPath
from .registry import SUPPORTED_NODES, PyTree
from .specs import LEAF, TreeSpec, node_type

IsLeaf = Callable[[PyTree], bool] | None


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Return whether something is a leaf: not of a registered type, or one to `is_leaf`.

    Examples
    --------
    >>> from candelabra import pytree
    >>> pytree.tree_is_leaf(1), pytree.tree_is_leaf([1]), pytree.tree_is_leaf(None)
    (True, False, True)
    """
    return (is_leaf is not None and is_leaf(tree)) or node_type(tree) not in SUPPORTED_NODES


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """Flatten a nested container.

    Parameters
    ----------
    tree
        Tuples, lists, dictionaries, named tuples, deques and registered types, nested. Everything
        else is a leaf, None too.
    is_leaf
        Called with every node; where it returns True, the node is a leaf.

    Returns
    -------
    tuple
        The leaves from left to right, and the structure.

    Examples
    --------
    >>> from candelabra import pytree
    >>> leaves, spec = pytree.tree_flatten({"a": 1, "b": [2, (3,)]})
    >>> leaves
    [1, 2, 3]
    >>> pytree.tree_unflatten([10, 20, 30], spec)
    {'a': 10, 'b': [20, (30,)]}
    """
    leaves: list[Any] = []
    return leaves, _visit(tree, leaves, is_leaf)


# A module-level function: a recursive closure is a reference cycle, which keeps the leaves alive
# until the garbage collector runs.
def _visit(node: PyTree, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    kind = node_type(node)
    known = SUPPORTED_NODES.get(kind)
    if (is_leaf is not None and is_leaf(node)) or known is None:
        leaves.append(node)
        return LEAF
    children, context = known.flatten_fn(node)
    return TreeSpec(kind, context, [_visit(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """Rebuild a nested container: the inverse of `tree_flatten`.

    Parameters
    ----------
    leaves
        The leaves.
    treespec
        The structure. The two may be given in the other order.

    Raises
    ------
    TypeError
        If neither is a structure.
    ValueError
        If there are too few leaves, or too many.
    """
    if not isinstance(treespec, TreeSpec):
        if not isinstance(leaves, TreeSpec):
            raise TypeError(
                f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}."
            )
        leaves, treespec = treespec, leaves
    return treespec.unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """Iterate over the leaves of a nested container; see `tree_flatten`."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of a nested container; see `tree_flatten`."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """Return the structure of a nested container; see `tree_flatten`."""
    return _visit(tree, [], is_leaf)


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """Return the leaves of the arguments of a call."""
    return [leaf for argument in (*args, *kwargs.values()) for leaf in tree_iter(argument)]


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """Return the leaves of a nested container, each with its key path.

    Raises
    ------
    ValueError
        If a container's type was registered without `flatten_with_keys_fn`.
    """
    return list(paths_of((), tree, is_leaf))


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Flatten a nested container as `tree_flatten` does, to pairs of key path and leaf.

    Raises
    ------
    ValueError
        If a container's type was registered without `flatten_with_keys_fn`.

    Examples
    --------
    >>> from candelabra import pytree
    >>> pytree.tree_flatten_with_path({"a": [1]})[0]
    [((MappingKey(key='a'), SequenceKey(idx=0)), 1)]
    """
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def paths_of(path: KeyPath, tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[tuple[KeyPath, Any]]:
    """Iterate over the leaves of what is at a key path, each with its whole path."""
    kind = node_type(tree)
    known = SUPPORTED_NODES.get(kind)
    if (is_leaf is not None and is_leaf(tree)) or known is None:
        yield path, tree
        return
    if known.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in known.flatten_with_keys_fn(tree)[0]:
        yield from paths_of((*path, key), child, is_leaf)
