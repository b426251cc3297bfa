"""Flattening of containers by a structure that is known: generated code flattens its arguments so.

A dictionary may have its keys in another order than that of the structure, and more keys.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from candelabra import pytree

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]

FlattenSpec = Callable[[Any, pytree.TreeSpec], "list[Any]"]
ExactMatch = Callable[[Any, pytree.TreeSpec], bool]

_FLATTEN: dict[Any, FlattenSpec] = {}
_EXACT_MATCH: dict[Any, ExactMatch] = {}


def register_pytree_flatten_spec(
    cls: type, flatten_fn_spec: FlattenSpec, flatten_fn_exact_match_spec: ExactMatch | None = None
) -> None:
    """Register how a container of a type is flattened by a structure.

    Parameters
    ----------
    cls
        The type of the container.
    flatten_fn_spec
        Takes a container and a structure, and returns the children of the container.
    flatten_fn_exact_match_spec
        Takes the same, and returns whether the container has the keys of the structure, no others.
    """
    _FLATTEN[cls] = flatten_fn_spec
    if flatten_fn_exact_match_spec is not None:
        _EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def tree_flatten_spec(pytree: Any, spec: Any) -> list[Any]:
    """Return the leaves of a container in the order of a structure.

    Raises
    ------
    RuntimeError
        If there is no function that flattens containers of this type.

    Examples
    --------
    >>> from candelabra import fx, pytree
    >>> _, spec = pytree.tree_flatten({"a": 1, "b": [2, 3]})
    >>> fx.flatten_spec.tree_flatten_spec({"b": [5, 6], "a": 4}, spec)
    [4, 5, 6]
    """
    if spec.is_leaf():
        return [pytree]
    if spec.type not in _FLATTEN:
        raise RuntimeError(
            f"{type(pytree)} does not have a flatten_fn_spec associated with it: register one with "
            "candelabra.fx.flatten_spec.register_pytree_flatten_spec"
        )
    children = _FLATTEN[spec.type](pytree, spec)
    return [
        leaf for child, part in zip(children, spec.children(), strict=True) for leaf in tree_flatten_spec(child, part)
    ]


def _in_order(values: Any, spec: Any) -> list[Any]:
    return list(values)[: spec.num_children]


register_pytree_flatten_spec(
    dict,
    lambda entries, spec: [entries[key] for key in spec.context],
    lambda entries, spec: len(entries) == spec.num_children,
)
for _kind in (list, tuple, namedtuple):
    register_pytree_flatten_spec(
        _kind,  # type: ignore[arg-type]
        _in_order,
        lambda values, spec: len(values) == spec.num_children,
    )
