"""Functions that PyTorch provides for its compiler, not supported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> NoReturn:
    """Raise an error: there is no compiler that would need functionalization.

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
