"""Lists and dictionaries that cannot change: the arguments of nodes are made of them, so that a
node notices every change of its arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from candelabra import pytree

__all__ = ["immutable_dict", "immutable_list"]


def _refusing(kind: str, name: str) -> Callable[..., NoReturn]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            f"{kind!r} object does not support mutation. If you are attempting to modify the kwargs or args of a Node, "
            "create a new copy and assign it to the node: node.args = (...)"
        )

    refuse.__name__ = name
    return refuse


class immutable_list(list[Any]):
    """A list that cannot change.

    Examples
    --------
    >>> from candelabra.fx.immutable_collections import immutable_list
    >>> immutable_list([1, 2])[0]
    1
    """

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return immutable_list, (tuple(self),)


class immutable_dict(dict[Any, Any]):
    """A dictionary that cannot change."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return immutable_dict, (dict(self),)


for _kind, _names in (
    (
        immutable_list,
        "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse sort",
    ),
    (immutable_dict, "__delitem__ __ior__ __setitem__ clear pop popitem setdefault update"),
):
    for _name in _names.split():
        setattr(_kind, _name, _refusing(_kind.__name__, _name))

pytree.register_pytree_node(
    immutable_list,
    lambda values: (list(values), None),
    lambda values, context: immutable_list(values),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
)
pytree.register_pytree_node(
    immutable_dict,
    lambda entries: (list(entries.values()), list(entries)),
    lambda values, context: immutable_dict(zip(context, values, strict=True)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
)
