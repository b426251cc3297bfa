"""Nested state as flat names, and back: the keys on the way to a value, joined by dots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from candelabra import Tensor

from .sharded import Sharded


def is_tensor(value: Any) -> bool:
    """Return whether a value is a tensor, sharded or not."""
    return isinstance(value, (Tensor, Sharded))


def _is_leaf(value: Any) -> bool:
    """Return whether a value is stored as one: lists and tuples are, unless they hold tensors."""
    if isinstance(value, Mapping):
        return False
    if isinstance(value, (list, tuple)):
        return not any(
            is_tensor(item) or (isinstance(item, (Mapping, list, tuple)) and not _is_leaf(item)) for item in value
        )
    return True


def flatten(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of nested containers by their flat names.

    Raises
    ------
    ValueError
        Two values have the same name.

    Examples
    --------
    >>> from candelabra.distributed.checkpoint.flattening import flatten
    >>> flatten({"optimizer": {"groups": [{"lr": 0.1}]}, "names": ["a", "b"]})
    {'optimizer.groups.0.lr': 0.1, 'names': ['a', 'b']}
    """
    found: dict[str, Any] = {}

    def visit(name: str, value: Any) -> Any:
        if name in found:
            raise ValueError(f"duplicate key {name}: two values of the state have this name")
        found[name] = value
        return value

    fill(state, visit)
    return found


def fill(state: Any, visit: Callable[[str, Any], Any], name: str = "") -> Any:
    """Replace each value in nested containers by ``visit(name, value)``; return the container, or
    another where it is a tuple.
    """
    if is_tensor(state) or (name and _is_leaf(state)):
        return visit(name, state)
    prefix = f"{name}." if name else ""
    if isinstance(state, tuple):
        items = [fill(item, visit, f"{prefix}{at}") for at, item in enumerate(state)]
        if all(new is old for new, old in zip(items, state, strict=True)):
            return state
        return type(state)(*items) if hasattr(state, "_fields") else type(state)(items)
    for key, item in list(state.items() if isinstance(state, Mapping) else enumerate(state)):
        new = fill(item, visit, f"{prefix}{key}")
        if new is not item:
            state[key] = new
    return state
