"""The factors beta and alpha by position, in PyTorch's deprecated signatures."""

from __future__ import annotations

import functools

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

NUMBERS = (int, float, complex)


def beta_first(arguments: tuple[Any, ...], is_method: bool) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return three tensors, and beta and alpha by name, from the arguments of a deprecated call.

    Such a call is ``addmm(beta, input, mat1, mat2)``, ``addmm(beta, input, alpha, mat1, mat2)``, or
    a method with `self` instead of `input`, before beta.
    """
    given = list(arguments)
    if is_method and len(given) > 1:
        given[:2] = given[1], given[0]
    if len(given) not in (4, 5) or not isinstance(given[0], NUMBERS):
        return None
    names = {"beta": given.pop(0)}
    if len(given) == 4:
        if not isinstance(given[1], NUMBERS):
            return None
        names["alpha"] = given.pop(1)
    return (tuple(given), names) if all(isinstance(tensor, _C.Tensor) for tensor in given) else None


def takes_beta_first(function: Function) -> Function:
    """Let a function of three tensors also take the arguments of its deprecated signature."""

    @functools.wraps(function)
    def call(*arguments: Any, **names: Any) -> Any:
        if len(arguments) > 3 and not names.keys() & {"alpha", "beta"}:
            found = beta_first(arguments, isinstance(arguments[0], _C.Tensor))
            if found is not None:
                tensors, factors = found
                return function(*tensors, **factors, **names)
        return function(*arguments, **names)

    return call  # type: ignore[return-value]  # of the same signature, and more
