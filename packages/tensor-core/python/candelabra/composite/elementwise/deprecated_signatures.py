"""PyTorch's deprecated signatures, with factors by position: ``addcmul(input, 2, tensor1, tensor2)``."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NUMBERS = (int, float, complex)


def _factor_second(operator: Any, keyword: str, count: int) -> Any:
    """Return a fallback for a factor as second of `count` arguments."""

    def respelled(*arguments: Any, **names: Any) -> Any:
        if len(arguments) != count or keyword in names or not isinstance(arguments[1], _NUMBERS):
            return NotImplemented
        first, factor, *rest = arguments
        if not all(isinstance(tensor, _C.Tensor) for tensor in (first, *rest)):
            return NotImplemented
        return operator(first, *rest, **{keyword: factor}, **names)

    respelled.is_deprecated = True  # type: ignore[attr-defined]  # the stubs keep the documented signature
    return respelled


def beta_first(arguments: tuple[Any, ...], is_method: bool) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return three tensors, and beta and alpha by name, from the arguments of a deprecated call.

    Such a call is ``addmm(beta, input, mat1, mat2)``, ``addmm(beta, input, alpha, mat1, mat2)``, or a
    method with `self` instead of `input`, before beta.
    """
    given = list(arguments)
    if is_method and len(given) > 1:
        given[:2] = given[1], given[0]
    if len(given) not in (4, 5) or not isinstance(given[0], _NUMBERS):
        return None
    names = {"beta": given.pop(0)}
    if len(given) == 4:
        if not isinstance(given[1], _NUMBERS):
            return None
        names["alpha"] = given.pop(1)
    return (tuple(given), names) if all(isinstance(tensor, _C.Tensor) for tensor in given) else None


def _beta_first(operator: Any) -> Any:
    def respelled(*arguments: Any, **names: Any) -> Any:
        found = beta_first(arguments, bool(arguments) and isinstance(arguments[0], _C.Tensor))
        if found is None or names.keys() & {"alpha", "beta"}:
            return NotImplemented
        tensors, factors = found
        return operator(*tensors, **factors, **names)

    respelled.is_deprecated = True  # type: ignore[attr-defined]  # the stubs keep the documented signature
    return respelled


for _name, _keyword, _count in (
    ("add", "alpha", 3),
    ("sub", "alpha", 3),
    ("addcmul", "value", 4),
    ("addcdiv", "value", 4),
):
    for _operator in (OPERATORS[_name], OPERATORS[_name].inplace):
        _operator.fallback = _factor_second(_operator, _keyword, _count)
for _name in ("addmm", "baddbmm"):
    for _operator in (OPERATORS[_name], OPERATORS[_name].inplace):
        _operator.fallback = _beta_first(_operator)
