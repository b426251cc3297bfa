"""``torch.overrides``: names of functions begin with ``torch``."""

from __future__ import annotations

from typing import Any

from candelabra import overrides

__all__ = ["resolve_name"]


def resolve_name(f: Any) -> str | None:
    """Return the name of a function that ``__torch_function__`` was given; None if there is
    none.
    """
    name = overrides.resolve_name(f)
    return None if name is None else f"torch{name.removeprefix('candelabra')}"
