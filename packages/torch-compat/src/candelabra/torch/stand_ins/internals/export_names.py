"""``torch._export.wrappers``: a mark of constructors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["mark_subclass_constructor_exportable_experimental"]


def mark_subclass_constructor_exportable_experimental(constructor_subclass: Callable[..., Any]) -> Callable[..., Any]:
    """Mark the ``__init__`` of a subclass of Tensor; it runs as it is.

    Raises
    ------
    RuntimeError
        If it is another function.
    """
    if not callable(constructor_subclass) or getattr(constructor_subclass, "__name__", "") != "__init__":
        raise RuntimeError(
            f"torch._export.wrappers.mark_subclass_constructor_exportable_experimental can only be applied on "
            f"subclass tensor.__init__ But, you are adding it on {getattr(constructor_subclass, '__name__', constructor_subclass)} "
            "which is not supported."
        )

    @functools.wraps(constructor_subclass)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        constructor_subclass(*args, **kwargs)

    return wrapper
