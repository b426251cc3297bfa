"""Nested containers (pytrees): flatten them to lists and rebuild them.

Tuples, lists, dictionaries, named tuples and the types that a program registers with
`candelabra.pytree` are containers. Everything else is a leaf.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any, NamedTuple

from candelabra import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Structure(NamedTuple):
    """The structure of a nested container: its type (None for a leaf), context and children."""

    kind: Any
    context: Any
    parts: tuple[Structure, ...]

    @property
    def size(self) -> int:
        """The number of leaves."""
        return 1 if self.kind is None else sum(part.size for part in self.parts)


LEAF = Structure(None, None, ())


def _registered(kind: Any) -> Any:
    """Return how a type that a program has registered is flattened and rebuilt, or None."""
    registry = sys.modules.get("candelabra.pytree.registry")
    if registry is None or kind is deque or kind is Size:
        return None
    return registry.SUPPORTED_NODES.get(kind)


def _children(value: Any) -> tuple[Any, list[Any]] | None:
    """Return the context and the children of a container, or None for a leaf."""
    kind = type(value)
    if kind is tuple or kind is list:
        return None, list(value)
    if kind in (dict, OrderedDict):
        return list(value), list(value.values())
    if kind is defaultdict:
        return (value.default_factory, list(value)), list(value.values())
    if isinstance(value, tuple) and (hasattr(value, "_fields") or hasattr(kind, "n_fields")):
        return None, list(value)
    node = _registered(kind)
    if node is None:
        return None
    children, context = node.flatten_fn(value)
    return context, list(children)


def flatten(value: Any) -> tuple[list[Any], Structure]:
    """Flatten nested containers.

    Returns
    -------
    tuple
        The leaves, from left to right, and the structure.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.autograd.structure.flatten({"a": 1, "b": (2, [3])})[0]
    [1, 2, 3]
    """
    leaves: list[Any] = []
    return leaves, _visit(value, leaves)


# These are module-level functions, because a recursive closure is a reference cycle. A cycle would
# keep its variables alive, tensors included, until the garbage collector runs.
def _visit(part: Any, leaves: list[Any]) -> Structure:
    found = _children(part)
    if found is None:
        leaves.append(part)
        return LEAF
    context, children = found
    return Structure(type(part), context, tuple([_visit(child, leaves) for child in children]))


def unflatten(leaves: Any, structure: Structure) -> Any:
    """Rebuild nested containers from leaves: the inverse of :func:`flatten`."""
    return _build(structure, iter(leaves))


def _build(part: Structure, rest: Iterator[Any]) -> Any:
    if part.kind is None:
        return next(rest)
    children = [_build(child, rest) for child in part.parts]
    kind = part.kind
    if kind is tuple or kind is list:
        return kind(children)
    if kind is dict or kind is OrderedDict:
        return kind(zip(part.context, children, strict=True))
    if kind is defaultdict:
        return defaultdict(part.context[0], zip(part.context[1], children, strict=True))
    if hasattr(kind, "_fields"):
        return kind(*children)
    node = None if issubclass(kind, tuple) else _registered(kind)
    return kind(children) if node is None else node.unflatten_fn(children, part.context)


def map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply `function` to every leaf of nested containers."""
    leaves, structure = flatten(value)
    return unflatten([function(leaf) for leaf in leaves], structure)


def broadcast_prefix(prefix: Any, structure: Structure) -> list[Any] | None:
    """Return one entry of `prefix` per leaf of `structure`, or None if the two do not match.

    An entry of `prefix` may apply to a whole subtree.
    """
    found = _children(prefix)
    if found is None:
        return [prefix] * structure.size
    context, children = found
    if type(prefix) is not structure.kind and not ({type(prefix), structure.kind} <= {tuple, list}):
        return None
    if len(children) != len(structure.parts) or (context is not None and context != structure.context):
        return None
    entries: list[Any] = []
    for child, part in zip(children, structure.parts, strict=True):
        below = broadcast_prefix(child, part)
        if below is None:
            return None
        entries += below
    return entries
