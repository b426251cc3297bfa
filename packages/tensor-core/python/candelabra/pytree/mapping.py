"""Functions applied to the leaves of nested containers."""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Callable
from typing import Any

from .registry import PyTree
from .traversal import IsLeaf, tree_flatten, tree_flatten_with_path, tree_iter

#: A type, a tuple or a union of types; or a function that says which leaves are meant.
TypeAny = type[Any] | tuple[type[Any], ...] | types.UnionType
Selection = TypeAny | Callable[[Any], bool]


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Apply a function to every leaf of a nested container.

    Parameters
    ----------
    func
        Takes a leaf, and the corresponding part of each of `rests`.
    tree
        The container.
    *rests
        Containers that `tree` is a prefix of.
    is_leaf
        Called with every node; where it returns True, the node is a leaf.

    Returns
    -------
    Any
        A container of the structure of `tree`, with the results.

    Raises
    ------
    ValueError
        If one of `rests` does not match.

    Examples
    --------
    >>> from candelabra import pytree
    >>> pytree.tree_map(lambda x, y: x + len(y), {"a": 1, "b": (2, 3)}, {"b": ("", "xy"), "a": [1, 2, 3]})
    {'a': 4, 'b': (2, 5)}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call a function with every leaf of a nested container, and return the container itself; see
    `tree_map`.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    deque(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)), maxlen=0)
    return tree


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Apply a function to the key path and the value of every leaf; see `tree_map`.

    Examples
    --------
    >>> from candelabra import pytree
    >>> pytree.tree_map_with_path(lambda path, x: f"{pytree.keystr(path)}={x}", {"a": [1, 2]})
    {'a': ["['a'][0]=1", "['a'][1]=2"]}
    """
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = [path for path, _ in pairs], [leaf for _, leaf in pairs]
    return spec.unflatten(map(func, paths, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def map_only(type_or_types_or_pred: Selection, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return a decorator for functions that change some values and return the others.

    Parameters
    ----------
    type_or_types_or_pred
        The type of the values to change, a tuple or a union of types, or a function that says
        whether a value is changed.

    Raises
    ------
    TypeError
        If it is none of these.

    Examples
    --------
    >>> from candelabra import pytree
    >>> pytree.map_only(int)(lambda x: x + 1)(1), pytree.map_only(int)(lambda x: x + 1)("a")
    (2, 'a')
    """
    selection: Any = type_or_types_or_pred
    if isinstance(selection, type | tuple | types.UnionType):

        def chosen(value: Any) -> bool:
            return isinstance(value, selection)

    elif callable(selection):
        chosen = selection
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def decorate(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(func)
        def wrapped(value: Any) -> Any:
            return func(value) if chosen(value) else value

        return wrapped

    return decorate


def tree_map_only(
    type_or_types_or_pred: Selection, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """Apply a function to the leaves of some types; see `tree_map` and `map_only`.

    Examples
    --------
    >>> from candelabra import pytree
    >>> pytree.tree_map_only(int, lambda x: -x, [1, "a", (2.0, 3)])
    [-1, 'a', (2.0, -3)]
    """
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Selection, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """Call a function with the leaves of some types, and return the container itself."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Return whether a condition holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Return whether a condition holds for any leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: TypeAny, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Return whether a condition holds for all leaves of some types."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types: TypeAny, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Return whether a condition holds for any leaf of some types."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))
