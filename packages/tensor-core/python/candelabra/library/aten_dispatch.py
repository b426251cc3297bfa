"""Which overload of ATen's a call is: what ``__torch_dispatch__`` is given as the operator."""

from __future__ import annotations

from candelabra import _C

from .aten import ATEN, OpOverload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Rule = Callable[[Sequence[Any], dict[str, Any]], str]


def _is_tensor(args: Sequence[Any], place: int) -> bool:
    return len(args) > place and isinstance(args[place], _C.Tensor)


def _by_operand(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    return "Tensor" if _is_tensor(args, 1) else "Scalar"


def _by_both_operands(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    if not _is_tensor(args, 0):
        return "Scalar"
    return "Tensor_Tensor" if _is_tensor(args, 1) else "Tensor_Scalar"


def _by_value(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    return "Tensor" if _is_tensor(args, 2) else "Scalar"


def _by_filled_value(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    return "int_Tensor" if _is_tensor(args, 3) else "int_Scalar"


def _by_rounding(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    return "Tensor_mode" if kwargs.get("rounding_mode") is not None else "Tensor"


def _dim(args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    return args[1] if len(args) > 1 else kwargs.get("dim")


def _by_dim(name: str) -> Rule:
    return lambda args, kwargs: "default" if _dim(args, kwargs) is None else name


def _by_dims(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    dim = _dim(args, kwargs)
    return "default" if dim is None else "dim" if isinstance(dim, int) else "dims"


def _by_bound(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    bounds = [*args[1:3], kwargs.get("min"), kwargs.get("max")]
    return "Tensor" if any(isinstance(bound, _C.Tensor) for bound in bounds) else "default"


#: Rules by name: an in-place operator has that of its functional one. Numbers are tensors to the
#: operators of arithmetic, as their first overload takes both.
_RULES: dict[str, Rule] = {
    **dict.fromkeys(
        ("eq", "ge", "gt", "le", "lt", "ne", "bitwise_and", "bitwise_or", "bitwise_xor", "fmod", "remainder"), _by_operand
    ),
    **dict.fromkeys(("add", "copysign", "mul", "sub", "xlogy"), lambda args, kwargs: "Tensor"),
    **dict.fromkeys(("lerp", "masked_fill"), _by_value),
    **dict.fromkeys(("all", "any", "squeeze"), _by_dims),
    **dict.fromkeys(("std", "var"), lambda args, kwargs: "correction"),
    "clamp": _by_bound,
    "div": _by_rounding,
    "index_fill": _by_filled_value,
    "mean": _by_dim("dim"),
    "pow": _by_both_operands,
    "prod": _by_dim("dim_int"),
    "scatter": lambda args, kwargs: "src",
    "sum": _by_dim("dim_IntList"),
}  # fmt: skip
#: Overloads of TorchScript, which no tensor takes.
_OF_NUMBERS = frozenset({"int", "float", "float_float", "Scalar_Scalar", "Scalar"})


def overload_of(operator: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return the overload that a call of an operator is; the operator itself if ATen has none.

    Parameters
    ----------
    operator : Operator
        The operator.
    args, kwargs
        The arguments that ``__torch_dispatch__`` is given.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.library.aten_dispatch import overload_of
    >>> overload_of(candelabra.ops.mul, (candelabra.ones(2), 2), {})
    <OpOverload(op='aten.mul', overload='Tensor')>
    """
    name = operator.name
    packet = getattr(ATEN, name, None)
    if packet is None or packet.operator is not operator:
        return operator
    names = packet.overloads()
    functional = name if operator.functional is None else operator.functional.name
    rule = _RULES.get(functional)
    overload = "default" if rule is None else rule(args, kwargs)
    if overload not in names:
        # Of several, those of numbers are ATen's only where it has no other.
        of_tensors = [other for other in names if other not in _OF_NUMBERS and not other.endswith("out")]
        overload = next(iter(of_tensors or names))
    if "out" in kwargs:
        overload = next((out for out in (f"{overload}_out", "out") if out in names), overload)
    return getattr(packet, overload)


def operator_of(function: Any) -> Any:
    """Return the operator whose overload ``__torch_dispatch__`` was given.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.library.aten_dispatch import operator_of
    >>> operator_of(candelabra.ops.aten.mul.Tensor) is candelabra.ops.mul
    True
    """
    return function.overloadpacket.operator if isinstance(function, OpOverload) else function
