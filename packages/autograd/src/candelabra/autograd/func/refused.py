"""What PyTorch has here for its compiler, and this library has no use for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> NoReturn:
    """Refuse: there is no compiler here that in-place operations would have to be removed for.

    Raises
    ------
    NotImplementedError
        Always.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.func.functionalize(candelabra.sin)
    Traceback (most recent call last):
    ...
    NotImplementedError: functionalize is a step of PyTorch's compiler; the transformations here
    take functions with in-place operations
    """
    raise NotImplementedError(
        "functionalize is a step of PyTorch's compiler; the transformations here take functions with in-place operations"
    )
