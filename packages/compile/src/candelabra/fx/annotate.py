"""Types of values."""

from __future__ import annotations

from typing import Any

from .proxy import Proxy

__all__ = ["annotate"]


def annotate(val: Any, type: Any) -> Any:
    """Annotate the node of a proxy with a type, and return the value.

    Raises
    ------
    RuntimeError
        If the node has a type.
    """
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(
                f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type}"
            )
        val.node.type = type
    return val
