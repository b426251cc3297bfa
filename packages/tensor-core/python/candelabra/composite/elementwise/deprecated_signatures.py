"""PyTorch's deprecated signatures, with factors by position: ``addcmul(input, 2, tensor1,
tensor2)``.
"""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..factors_by_position import NUMBERS, beta_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _factor_second(operator: Any, name: str, keyword: str, count: int) -> Any:
    """Return a fallback for a factor as second of `count` arguments."""

    def respelled(*arguments: Any, **names: Any) -> Any:
        if len(arguments) != count or keyword in names or not isinstance(arguments[1], NUMBERS):
            return NotImplemented
        first, factor, *rest = arguments
        if not all(isinstance(tensor, _C.Tensor) for tensor in (first, *rest)):
            return NotImplemented
        tensors = "Tensor other" if count == 3 else "Tensor tensor1, Tensor tensor2"
        _C.warn(
            f"This overload of {name} is deprecated:\n\t{name}(Tensor input, Number {keyword}, {tensors})\n"
            f"Consider using one of the following signatures instead:\n\t{name}(Tensor input, {tensors}, *, Number {keyword} = 1)"
        )
        return operator(first, *rest, **{keyword: factor}, **names)

    respelled.is_deprecated = True  # type: ignore[attr-defined]  # the stubs keep the documented signature
    return respelled


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
    for _operator, _called in ((OPERATORS[_name], _name), (OPERATORS[_name].inplace, f"{_name}_")):
        _operator.fallback = _factor_second(_operator, _called, _keyword, _count)
for _name in ("addmm", "baddbmm"):
    for _operator in (OPERATORS[_name], OPERATORS[_name].inplace):
        _operator.fallback = _beta_first(_operator)
