"""Attributes of modules by dotted paths."""

from __future__ import annotations

from typing import Any

import candelabra.nn as nn
from candelabra import Tensor

__all__ = ["assign", "copy_attribute", "delete", "fetch", "has"]


def fetch(module: Any, path: str) -> Any:
    """Return an attribute.

    Raises
    ------
    RuntimeError
        If there is none.
    """
    atoms = path.split(".")
    found = module
    for position, atom in enumerate(atoms):
        if not hasattr(found, atom):
            raise RuntimeError(f"Node referenced nonexistent target {'.'.join(atoms[: position + 1])}")
        found = getattr(found, atom)
    return found


def has(module: Any, path: str) -> bool:
    """Return whether there is an attribute."""
    for atom in path.split("."):
        if not hasattr(module, atom):
            return False
        module = getattr(module, atom)
    return True


def assign(value: Any, module: Any, path: str) -> None:
    """Set an attribute; modules on the way are made. Tensors become buffers."""
    *way, name = path.split(".")
    for atom in way:
        child = getattr(module, atom, None)
        if child is None:
            child = nn.Module()
            setattr(module, atom, child)
        module = child
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


def copy_attribute(source: Any, target: Any, path: str) -> None:
    """Set an attribute to that of another module; what is there is kept on the way."""
    *way, name = path.split(".")
    for atom in way:
        child, copied = getattr(source, atom), getattr(target, atom, None)
        if child is copied:
            # It was copied as a whole.
            return
        if copied is None:
            copied = nn.Module()
            setattr(target, atom, copied)
        source, target = child, copied
    value = getattr(source, name)
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        is_persistent = name not in getattr(source, "_non_persistent_buffers_set", ())
        if not hasattr(target, name) or name in target._buffers:
            target.register_buffer(name, value, persistent=is_persistent)
            return
    setattr(target, name, value)


def delete(module: Any, path: str) -> None:
    """Delete an attribute."""
    *way, name = path.split(".")
    delattr(fetch(module, ".".join(way)) if way else module, name)
