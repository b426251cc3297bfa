"""``torch._logging``: contexts that hide some warnings."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["hide_warnings", "safe_grad_filter", "user_warning_filter"]


def safe_grad_filter(message: Any, category: type[Warning], *where: Any) -> bool:
    """Return False for the warning that a tensor whose ``grad`` is read is no leaf."""
    return "The .grad attribute of a Tensor" not in str(message)


def user_warning_filter(message: Any, category: type[Warning], *where: Any) -> bool:
    """Return False for warnings of the category UserWarning."""
    return category is not UserWarning


@contextlib.contextmanager
def hide_warnings(filter_fn: Callable[..., bool] = lambda *warning: True) -> Iterator[None]:
    """Show only the warnings for which a function returns True.

    Parameters
    ----------
    filter_fn
        Takes what `warnings.showwarning` takes.
    """
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_some(
            message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
        ) -> None:
            if filter_fn(message, category, filename, lineno, file, line):
                show(message, category, filename, lineno, file, line)

        warnings.showwarning = show_some
        yield
