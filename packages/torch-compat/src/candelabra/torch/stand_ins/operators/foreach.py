"""``torch._foreach_*``: one operator on each tensor of a list.

Libraries' optimizers use them. Here each tensor has its own call of the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import candelabra
from candelabra import Tensor

_UNARY = [
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "frac",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "neg",
    "reciprocal",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]
#: Of two lists, or of a list and a number, numbers, or a tensor of one element; by the function for
#: tensors and the one for numbers.
_BINARY = {
    "add": ("add", "add"), "clamp_max": ("minimum", "clamp_max"), "clamp_min": ("maximum", "clamp_min"), "div": ("div", "div"),
    "maximum": ("maximum", "clamp_min"), "minimum": ("minimum", "clamp_max"), "mul": ("mul", "mul"), "pow": ("pow", "pow"), "sub": ("sub", "sub"),
}  # fmt: skip


def _listed(function: str, name: str, position: int, value: Any) -> Sequence[Tensor]:
    if not isinstance(value, list | tuple):
        raise TypeError(
            f"{function}(): argument '{name}' (position {position}) must be tuple of Tensors, not {type(value).__name__}"
        )
    if position == 1 and not value:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return value


def _spread(count: int, value: Any) -> Sequence[Any]:
    """Return an operand for each tensor of a list."""
    if isinstance(value, Tensor):
        if value.ndim == 1 and count > 1 and len(value) == count:
            return value.unbind()
        if value.numel() != 1:
            raise RuntimeError(
                f"scalar tensor expected to be 0 dim but it has {value.ndim} dimensions and {value.numel()} elements."
            )
        return [value.reshape(())] * count
    if not isinstance(value, list | tuple):
        return [value] * count
    if len(value) != count:
        if value and isinstance(value[0], Tensor):
            raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {len(value)}")
        raise RuntimeError("Tensor list must have same number of elements as scalar list.")
    return value


def _assign(tensors: Sequence[Tensor], made: Sequence[Tensor]) -> Sequence[Tensor]:
    for tensor, value in zip(tensors, made, strict=True):
        tensor.copy_(value)
    return tensors


def _unary(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    function, method = getattr(candelabra, name), getattr(Tensor, f"{name}_")

    def new(self: Any) -> tuple[Tensor, ...]:
        return tuple(function(tensor) for tensor in _listed(f"_foreach_{name}", "self", 1, self))

    def in_place(self: Any) -> Sequence[Tensor]:
        for tensor in _listed(f"_foreach_{name}_", "self", 1, self):
            method(tensor)
        return self  # type: ignore[no-any-return]

    return new, in_place


def _binary(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    of_tensors, of_numbers = (getattr(candelabra, each) for each in _BINARY[name])

    def compute(self: Any, other: Any, options: dict[str, Any]) -> list[Tensor]:
        if name == "pow" and not isinstance(self, list | tuple):
            return [candelabra.pow(self, exponent) for exponent in _listed("_foreach_pow", "exponent", 2, other)]
        tensors = _listed(f"_foreach_{name}", "self", 1, self)
        return [
            (of_tensors if isinstance(operand, Tensor) else of_numbers)(tensor, operand, **options)
            for tensor, operand in zip(tensors, _spread(len(tensors), other), strict=True)
        ]

    def new(self: Any, other: Any, **options: Any) -> tuple[Tensor, ...]:
        return tuple(compute(self, other, options))

    def in_place(self: Any, other: Any, **options: Any) -> Sequence[Tensor]:
        method = getattr(Tensor, f"{name}_", None)
        if method is None or name.startswith("clamp"):
            return _assign(self, compute(self, other, options))
        tensors = _listed(f"_foreach_{name}_", "self", 1, self)
        for tensor, operand in zip(tensors, _spread(len(tensors), other), strict=True):
            method(tensor, operand, **options)
        return tensors

    return new, in_place


def _ternary(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    function, method = getattr(candelabra, name), getattr(Tensor, f"{name}_")

    def operands(self: Any, tensor1: Any, tensor2: Any, value: Any, scalars: Any) -> Any:
        tensors = _listed(f"_foreach_{name}", "self", 1, self)
        count = len(tensors)
        values = _spread(count, value if scalars is None else scalars)
        return zip(tensors, _spread(count, tensor1), _spread(count, tensor2), values, strict=True)

    def new(self: Any, tensor1: Any, tensor2: Any, value: Any = 1, *, scalars: Any = None) -> tuple[Tensor, ...]:
        return tuple(
            function(a, b, c, value=_number(v)) for a, b, c, v in operands(self, tensor1, tensor2, value, scalars)
        )

    def in_place(self: Any, tensor1: Any, tensor2: Any, value: Any = 1, *, scalars: Any = None) -> Sequence[Tensor]:
        for a, b, c, v in operands(self, tensor1, tensor2, value, scalars):
            method(a, b, c, value=_number(v))
        return self  # type: ignore[no-any-return]

    return new, in_place


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


def _foreach_lerp(self: Any, tensors1: Any, weight: Any) -> tuple[Tensor, ...]:
    tensors = _listed("_foreach_lerp", "self", 1, self)
    weights = _spread(len(tensors), weight)
    return tuple(
        candelabra.lerp(a, b, w) for a, b, w in zip(tensors, _spread(len(tensors), tensors1), weights, strict=True)
    )


def _foreach_lerp_(self: Any, tensors1: Any, weight: Any) -> Sequence[Tensor]:
    tensors = _listed("_foreach_lerp_", "self", 1, self)
    weights = _spread(len(tensors), weight)
    for a, b, w in zip(tensors, _spread(len(tensors), tensors1), weights, strict=True):
        a.lerp_(b, w)
    return tensors


def _foreach_norm(self: Any, ord: float = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    tensors = _listed("_foreach_norm", "self", 1, self)
    return tuple(candelabra.linalg.vector_norm(tensor, ord, dtype=dtype) for tensor in tensors)


def _foreach_powsum(self: Any, ord: float = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    tensors = _listed("_foreach_powsum", "self", 1, self)
    return tuple(tensor.abs().pow(ord).sum(dtype=dtype) for tensor in tensors)


def _foreach_max(self: Any) -> tuple[Tensor, ...]:
    return tuple(tensor.max() for tensor in _listed("_foreach_max", "self", 1, self))


def _foreach_mm(self: Any, mat2: Any) -> tuple[Tensor, ...]:
    tensors = _listed("_foreach_mm", "self", 1, self)
    return tuple(candelabra.mm(a, b) for a, b in zip(tensors, _spread(len(tensors), mat2), strict=True))


def _foreach_clone(self: Any, *, memory_format: Any = candelabra.preserve_format) -> tuple[Tensor, ...]:
    return tuple(tensor.clone(memory_format=memory_format) for tensor in _listed("_foreach_clone", "self", 1, self))


def _foreach_copy_(self: Any, src: Any, non_blocking: bool = False) -> Sequence[Tensor]:
    tensors = _listed("_foreach_copy_", "self", 1, self)
    for tensor, value in zip(tensors, _spread(len(tensors), _listed("_foreach_copy_", "src", 2, src)), strict=True):
        tensor.copy_(value, non_blocking)
    return tensors


def _foreach_zero_(self: Any) -> Sequence[Tensor]:
    tensors = _listed("_foreach_zero_", "self", 1, self)
    for tensor in tensors:
        tensor.zero_()
    return tensors


for _names, _make in ((_UNARY, _unary), (_BINARY, _binary), (("addcdiv", "addcmul"), _ternary)):
    for _name in _names:
        for _suffix, _function in zip(("", "_"), _make(_name), strict=True):
            _function.__name__ = _function.__qualname__ = f"_foreach_{_name}{_suffix}"
            globals()[_function.__name__] = _function
__all__ = sorted(name for name in globals() if name.startswith("_foreach_"))
