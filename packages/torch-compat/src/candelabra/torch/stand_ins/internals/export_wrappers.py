"""``torch._export.wrappers``: the mark of constructors of tensor subclasses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["mark_subclass_constructor_exportable_experimental"]


def mark_subclass_constructor_exportable_experimental(constructor: Callable[..., Any]) -> Callable[..., Any]:
    """Return an ``__init__`` unchanged. In PyTorch the mark matters to the export of subclasses.

    Raises
    ------
    RuntimeError
        If the function is no ``__init__``.
    """
    if getattr(constructor, "__name__", None) != "__init__":
        raise RuntimeError(
            "torch._export.wrappers.mark_constructor_exportable_experimental can only be applied on subclass tensor.__init__. But, you "
            f"are adding it on {getattr(constructor, '__name__', constructor)} which is not supported."
        )
    return constructor
