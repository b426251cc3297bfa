"""``torch.utils._contextlib``: context managers that are decorators too."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from candelabra.grad_mode import _decorated

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager", "context_decorator"]


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs in a context: in `ctx`, or in the one it returns."""
    make = ctx if callable(ctx) and not hasattr(ctx, "__enter__") else lambda: ctx
    return _decorated(make, func)  # type: ignore[no-any-return]


class _DecoratorContextManager:
    """A base of context managers that can decorate functions and generator functions."""

    def __call__(self, orig_func: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isclass(orig_func):
            raise TypeError(
                f"{type(self).__name__} decorates functions and methods, but got the class {orig_func.__name__}"
            )
        return context_decorator(self.clone, orig_func)

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """Return another context with the same settings; each call of a decorated function has
        one.
        """
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A context without settings, which decorates without brackets."""

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)
